"""Hamiltonian trajectories outside of a compiled loop, for a few moves of a few particles.

In the coordinates ``z`` of a normal density, ``x = m + S z``, the leapfrog integrator follows
``-log f + p'p / 2`` for a quarter of a period of a standard normal density, with step sizes

    eps ~ U(1/2, 1) d^(-1/4)

(Neal 2011, sections 5.2 and 5.3.3; Beskos et al. 2013 for the power of d). Only the gradient of a
batch is compiled, which climbs use too.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.paths.references import GaussianReference

# Quarter of a period.
_LENGTH = np.pi / 2


class _State(NamedTuple):
    """Positions in the coordinates of the normal density, log densities, gradients."""

    z: np.ndarray
    value: np.ndarray
    slope: np.ndarray


def move_by_trajectories(
    target: TargetDensity,
    position: np.ndarray,
    normal: GaussianReference,
    seed: np.random.SeedSequence,
    moves: int,
) -> np.ndarray:
    """Move particles of a target, which leaves it invariant.

    Parameters
    ----------
    position : ndarray, shape (n, d)
    normal
        A normal density near to the target, or to its largest mode, with a matrix as its scale.
    moves
        Trajectories of each particle.

    Returns
    -------
    ndarray, shape (n, d)
    """
    mean, scale = np.asarray(normal.mean), np.asarray(normal.scale)

    def evaluate(z: np.ndarray) -> _State:
        value, slope = target.value_and_gradient(mean + z @ scale.T)
        return _State(z, value.copy(), slope @ scale)

    rng = np.random.default_rng(seed)
    state = evaluate((position - mean) @ np.asarray(normal.whitening).T)
    for _ in range(moves):
        momentum = rng.standard_normal(state.z.shape)
        step = rng.uniform(0.5, 1.0, len(position)) * position.shape[1] ** -0.25
        with np.errstate(over="ignore", invalid="ignore"):  # a trajectory that leaves the numbers
            end, last = _follow(evaluate, state, momentum, step[:, None])
            energy = end.value - state.value
            energy += (np.square(momentum) - np.square(last)).sum(axis=1) / 2
        accepted = np.log(rng.uniform(size=len(position))) < energy  # never where it is NaN
        for own, new in zip(state, end, strict=True):
            own[accepted] = new[accepted]
    return np.asarray(mean + state.z @ scale.T)


def _follow(
    evaluate: Callable[[np.ndarray], _State], state: _State, momentum: np.ndarray, step: np.ndarray
) -> tuple[_State, np.ndarray]:
    """Follow the flow for a quarter of a period, with step sizes of shape ``(n, 1)``."""
    momentum = momentum + step / 2 * state.slope
    count = int(np.ceil(_LENGTH / step.max()))
    for i in range(count):
        state = evaluate(state.z + step * momentum)
        momentum = momentum + (step if i < count - 1 else step / 2) * state.slope
    return state, momentum

"""Stretch moves of an ensemble: a Markov chain that needs no gradient and nothing to tune.

A walker ``x_k`` of ``d`` coordinates moves along the line to another one, ``x_j``,

    y = x_j + s (x_k - x_j),    g(s) ~ s^(-1/2) on [1/2, 2],

and the move is accepted with probability ``min(1, s^(d-1) f(y) / f(x_k))``. It is invariant under
affine maps of the coordinates, so that scales and correlations of the target do not matter. The
walkers of one half move towards those of the other, all at once.

Reference: Goodman & Weare (2010), Ensemble samplers with affine invariance, eq. 7 to 9;
Foreman-Mackey, Hogg, Lang & Goodman (2013), section 2, for the halves.
"""

from collections.abc import Callable

import numpy as np

# Largest stretch, of both references.
_STRETCH = 2.0

# From positions, shape ``(n, d)``, to log densities, shape ``(n,)``, -inf where there is none.
LogDensity = Callable[[np.ndarray], np.ndarray]


def stretch(
    log_density: LogDensity, position: np.ndarray, rng: np.random.Generator, sweeps: int
) -> np.ndarray:
    """Move the walkers of an ensemble, shape ``(n, d)``, so many times each."""
    position, value = position.copy(), log_density(position)
    for _ in range(sweeps):
        halves = np.array_split(rng.permutation(len(position)), 2)
        for own, other in (halves, halves[::-1]):
            _move(log_density, position, value, own, other, rng)
    return position


def _move(
    log_density: LogDensity,
    position: np.ndarray,
    value: np.ndarray,
    own: np.ndarray,
    other: np.ndarray,
    rng: np.random.Generator,
) -> None:
    """Move some walkers towards others, in place."""
    factor = ((_STRETCH - 1) * rng.random(len(own)) + 1) ** 2 / _STRETCH
    centre = position[rng.choice(other, len(own))]
    proposal = centre + factor[:, None] * (position[own] - centre)
    proposed = log_density(proposal)
    gain = (position.shape[1] - 1) * np.log(factor) + proposed - value[own]
    accepted = np.log(rng.random(len(own))) < gain
    position[own[accepted]], value[own[accepted]] = proposal[accepted], proposed[accepted]

"""Hamiltonian Monte Carlo with jittered trajectories.

The momentum is refreshed, ``p ~ N(0, I)``, and the Hamiltonian ``-log f_beta(S z) + p'p/2``
followed for ``n_steps`` steps of size

    eps ~ U((1 - jitter) step_size, step_size)

drawn afresh for every particle. The jitter matters: the log likelihood is an even function of a
Gaussian coordinate, so trajectories of a fixed length near half a period would never change it.

A step is the two-stage splitting of Blanes, Casas & Sanz-Serna (2014), of two gradients,

    drift a eps,  kick eps/2,  drift (1 - 2a) eps,  kick eps/2,  drift a eps,    a = (3 - sqrt 3)/6,

whose energy error for steps of length 1 to 2 is many times below that of two leapfrog steps.
Gradients are needed only inside a step: nothing but the log densities is carried from one
temperature to the next, for any path.

References: Neal (2011), MCMC using Hamiltonian dynamics, sections 3.2 and 5.3; Blanes, Casas &
Sanz-Serna (2014), Numerical integrators for the hybrid Monte Carlo method, section 4.
"""

import math

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.contracts import (
    KernelState,
    Parameter,
    Path,
    Scalar,
    StepInfo,
    Transition,
    Tuning,
    gradient,
)
from pymc_anneal.transitions.metropolis import (
    accept_reject,
    apply_scale,
    apply_transposed_scale,
    nan_without_divergence,
    normal_and_uniform,
)

_FIRST_DRIFT = (3 - math.sqrt(3)) / 6
# Trajectory length at effort level 0, a tenth of a period at unit scale, and its growth by level.
_SHORTEST, _GROWTH = 0.6, 1.25
# Level of a quarter of a period, about 1.8: a trajectory of independent draws at unit scale.
_QUARTER_PERIOD = 5


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class HMC(Transition):
    """Hamiltonian Monte Carlo; parameters left at None are set by the pilot.

    Parameters
    ----------
    step_size : float, optional
        Largest step, in units of ``scale``.
    n_steps : int, optional
        Integrator steps per transition, of two gradients each.
    scale : float or Array of shape (d,) or (d, d), optional
        Scale of the density: a factor, one for each coordinate, or a lower triangular matrix.
    jitter : float
        Step sizes are uniform between ``1 - jitter`` and 1 times ``step_size``.
    target_accept : float
        Mean acceptance probability to which the pilot sets ``step_size``.
    single_precision : bool
        Whether gradients are computed with 32-bit numbers, in less than half the time for large
        models. The transition leaves the density invariant all the same, because log densities
        keep 64 bits; where single precision is too coarse, more proposals are rejected.
    """

    step_size: Parameter = None
    n_steps: Parameter = None
    scale: Parameter = None
    jitter: float = field(default=0.5, metadata={"static": True})
    target_accept: float = field(default=0.92, metadata={"static": True})
    single_precision: bool = field(default=False, metadata={"static": True})

    @property
    def tuning(self) -> Tuning:
        """Step size, number of steps and scale."""
        return Tuning(
            {"step_size": self.step_size, "n_steps": self.n_steps, "scale": self.scale},
            target_accept=self.target_accept,
            # The neck of a funnel holds few particles, for which steps are too long first.
            max_stuck_share=0.001,
            uses_gradient=True,
            first_level=_QUARTER_PERIOD,
        )

    def effort(self, level: int, step_limit: float) -> tuple[float, int]:
        """Return step size and number of steps of a trajectory length."""
        return divide_trajectory(level, step_limit)

    def cost(self, betas: np.ndarray) -> np.ndarray:
        """Return two gradients a step and the density at the end, shape ``(K,)``."""
        return np.broadcast_to(2 * np.asarray(self.n_steps) + 1, np.shape(betas))

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Follow one trajectory and accept or reject its end."""
        start = state.position
        momentum, uniform = normal_and_uniform(key, start, 2)
        shrink = 1 - self.jitter * uniform[:, :1]
        force = partial(gradient, path, beta=beta, single_precision=self.single_precision)
        position, end = integrate(
            force, start, momentum, self.step_size * shrink, self.n_steps, self.scale
        )
        proposal = KernelState(position, path.evaluate(position), ())
        gain = kinetic_energy(end) - kinetic_energy(momentum)
        change = path.log_density(proposal.terms, beta) - path.log_density(state.terms, beta)
        new, accept = accept_reject(uniform[:, 1], change - gain, proposal, state)
        return new, StepInfo(accept, nan_without_divergence(path, beta, proposal, gain), position)


def divide_trajectory(level: int, step_limit: float) -> tuple[float, int]:
    """Divide a trajectory of length ``0.6 * 1.25^level`` into steps not above a limit."""
    length = _SHORTEST * _GROWTH**level
    n_steps = max(1, math.ceil(length / step_limit))
    return length / n_steps, n_steps


def kinetic_energy(momentum: jax.Array) -> jax.Array:
    """Return the kinetic energy of each particle, shape ``(n,)``."""
    return 0.5 * (momentum**2).sum(axis=-1)


def integrate(
    force: Callable[[jax.Array], jax.Array],
    position: jax.Array,
    momentum: jax.Array,
    step_size: jax.Array,
    n_steps: Parameter,
    scale: Parameter,
) -> tuple[jax.Array, jax.Array]:
    """Follow Hamiltonian dynamics for so many steps of the two-stage splitting.

    The force is the gradient of the log density, positions and momenta have the shape ``(n, d)``,
    step sizes ``(n, 1)``; the number of steps may be traced.
    """
    scale = jnp.asarray(scale)

    def drift(position: jax.Array, momentum: jax.Array, share: Scalar) -> jax.Array:
        moved: jax.Array = position + share * step_size * apply_scale(scale, momentum)
        return moved

    def kick(position: jax.Array, momentum: jax.Array) -> jax.Array:
        push = apply_transposed_scale(scale, force(position))
        return momentum + 0.5 * step_size * push

    def stage(i: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        position, momentum = carry
        momentum = kick(position, momentum)
        # Between two kicks of a step, or the last drift of a step and the first of the next.
        share = jnp.where(i % 2 == 0, 1 - 2 * _FIRST_DRIFT, 2 * _FIRST_DRIFT)
        return drift(position, momentum, share), momentum

    position = drift(position, momentum, _FIRST_DRIFT)
    position, momentum = jax.lax.fori_loop(0, 2 * n_steps, stage, (position, momentum))
    return drift(position, momentum, -_FIRST_DRIFT), momentum

"""Hamiltonian Monte Carlo with jittered trajectories.

The momentum is refreshed, ``p ~ N(0, I)``, and the Hamiltonian ``-log f_beta(S z) + p'p/2``
followed for ``n_steps`` steps of size

    eps ~ U((1 - jitter) step_size, step_size)

drawn afresh for every particle. The jitter matters: the log likelihood is an even function of a
Gaussian coordinate, so trajectories of a fixed length near half a period would never change it.

A step is the two-stage splitting of Blanes, Casas & Sanz-Serna (2014), of two gradients,

    drift a eps,  kick eps/2,  drift (1 - 2a) eps,  kick eps/2,  drift a eps,    a = (3 - sqrt 3)/6,

whose energy error for steps of length 1 to 2 is many times below that of two leapfrog steps. It
asks for gradients inside the step only: nothing but the log densities is carried from one
temperature to the next, for any path.

References: Neal (2011), MCMC using Hamiltonian dynamics, sections 3.2 and 5.3; Blanes, Casas &
Sanz-Serna (2014), Numerical integrators for the hybrid Monte Carlo method, section 4.
"""

import math

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp

from pymc_anneal.base.contracts import KernelState, Parameter, Path, Scalar, StepInfo, gradient
from pymc_anneal.transitions.metropolis import (
    Memoryless,
    accept_reject,
    nan_without_divergence,
    scaled,
    scaled_transpose,
)

_FIRST_DRIFT = (3 - math.sqrt(3)) / 6


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class HMC(Memoryless):
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
    """

    step_size: Parameter = None
    n_steps: Parameter = None
    scale: Parameter = None
    jitter: float = field(default=0.5, metadata={"static": True})
    target_accept: float = field(default=0.92, metadata={"static": True})

    @property
    def max_stuck_share(self) -> float:
        """Largest share of particles that may reject nearly always, by their own acceptance.

        A funnel has few particles in its neck, for which the steps of all the others are too
        long; a mean acceptance does not notice them.
        """
        return 0.001

    @property
    def start_rung(self) -> int:
        """Where the pilot begins on the ladder: a quarter of a period at unit scale."""
        return 5

    @property
    def uses_gradient(self) -> bool:
        """Whether the log density has to be differentiable."""
        return True

    def cost(self, n_steps: int) -> int:
        """Return the evaluations of gradient or density of a transition."""
        return 2 * n_steps + 1

    def effort(self, rung: int, step_limit: float) -> tuple[float, int]:
        """Return step size and number of steps of a rung of the ladder of trajectory lengths."""
        return trajectory(rung, step_limit)

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Follow one trajectory and accept or reject its end."""
        key_momentum, key_jitter, key_accept = jax.random.split(key, 3)
        start = state.position
        momentum = jax.random.normal(key_momentum, start.shape, start.dtype)
        shrink = jax.random.uniform(
            key_jitter, (start.shape[0], 1), start.dtype, minval=1 - self.jitter
        )
        position, end = integrate(
            path, beta, start, momentum, self.step_size * shrink, self.n_steps, self.scale
        )
        proposal = KernelState(position, path.evaluate(position), ())
        gain = kinetic(end) - kinetic(momentum)
        change = path.log_density(proposal.terms, beta) - path.log_density(state.terms, beta)
        new, accept = accept_reject(key_accept, change - gain, proposal, state)
        return new, StepInfo(accept, nan_without_divergence(path, beta, proposal, gain), position)


def trajectory(rung: int, step_limit: float) -> tuple[float, int]:
    """Divide a trajectory of length ``0.6 * 1.25^rung`` into steps not above a limit."""
    length = 0.6 * 1.25**rung
    n_steps = max(1, math.ceil(length / step_limit))
    return length / n_steps, n_steps


def kinetic(momentum: jax.Array) -> jax.Array:
    """Kinetic energy of each particle, shape ``(n,)``."""
    return 0.5 * (momentum**2).sum(axis=-1)


def integrate(
    path: Path,
    beta: Scalar,
    position: jax.Array,
    momentum: jax.Array,
    step_size: jax.Array,
    n_steps: Parameter,
    scale: Parameter,
) -> tuple[jax.Array, jax.Array]:
    """Integrate Hamilton's equations by the two-stage splitting.

    Parameters
    ----------
    path, beta
        The density.
    position, momentum : Array, shape (n, d)
    step_size : Array, shape (n, 1)
    n_steps
        Number of steps, two gradients each; it may be traced.
    scale
        ``S``.

    Returns
    -------
    position, momentum : Array, shape (n, d)
    """
    scale = jnp.asarray(scale)

    def drift(position, momentum, share):
        return position + share * step_size * scaled(scale, momentum)

    def kick(position, momentum):
        force = scaled_transpose(scale, gradient(path, position, beta))
        return momentum + 0.5 * step_size * force

    def stage(i, carry):
        position, momentum = carry
        momentum = kick(position, momentum)
        # Between two kicks of a step, or the last drift of a step and the first of the next.
        share = jnp.where(i % 2 == 0, 1 - 2 * _FIRST_DRIFT, 2 * _FIRST_DRIFT)
        return drift(position, momentum, share), momentum

    position = drift(position, momentum, _FIRST_DRIFT)
    position, momentum = jax.lax.fori_loop(0, 2 * n_steps, stage, (position, momentum))
    return drift(position, momentum, -_FIRST_DRIFT), momentum

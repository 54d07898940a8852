"""Hamiltonian Monte Carlo with partial momentum refreshment (Horowitz 1991).

The momentum persists and is mixed with fresh noise,

    p <- persistence p + sqrt(1 - persistence^2) xi,    xi ~ N(0, I),

then one short trajectory is followed; a rejection reverses the momentum. Within annealing this is
the kernel of Hamiltonian AIS (Sohl-Dickstein & Culpepper 2012): the state is ``(x, p)``, its
density ``f_beta(x) N(p; 0, I)`` at every temperature, and the momentum cancels from the weights.
"""

from dataclasses import dataclass, field
from typing import Self

import jax
import jax.numpy as jnp

from pymc_anneal.base import KernelState, Parameter, Path, Scalar, StepInfo
from pymc_anneal.transitions.hmc import integrate, kinetic, trajectory
from pymc_anneal.transitions.metropolis import select, sound_nan

__all__ = ["PartialRefreshmentHMC"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PartialRefreshmentHMC:
    """HMC with a persistent momentum; parameters left at None are set by the pilot.

    Parameters
    ----------
    step_size, n_steps, scale
        As for :class:`HMC`.
    persistence : float
        Autocorrelation of the momentum from one transition to the next, in [0, 1).
    jitter, target_accept : float
        As for :class:`HMC`.
    """

    step_size: Parameter = None
    n_steps: Parameter = None
    scale: Parameter = None
    persistence: Parameter = 0.8
    jitter: float = field(default=0.7, metadata={"static": True})
    target_accept: float = field(default=0.95, metadata={"static": True})

    @property
    def start_rung(self) -> int:
        """Where the pilot begins on the ladder: the momentum carries on from step to step."""
        return 0

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

    def init(self, key: jax.Array, position: jax.Array) -> jax.Array:
        """Draw the momentum, shape ``(n, d)``."""
        return jax.random.normal(key, position.shape, position.dtype)

    def at(self, beta: Scalar) -> Self:
        """Return the kernel itself: its parameters do not depend on ``beta``."""
        return self

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Refresh the momentum in part, follow a trajectory, accept or turn back."""
        key_noise, key_jitter, key_accept = jax.random.split(key, 3)
        start, dtype = state.position, state.position.dtype
        noise = jax.random.normal(key_noise, start.shape, dtype)
        momentum = self.persistence * state.auxiliary + noise * jnp.sqrt(1 - self.persistence**2)
        shrink = jax.random.uniform(key_jitter, (len(start), 1), dtype, minval=1 - self.jitter)
        position, end = integrate(
            path, beta, start, momentum, self.step_size * shrink, self.n_steps, self.scale
        )
        proposal = KernelState(position, path.evaluate(position), end)
        current = KernelState(start, state.terms, -momentum)
        gain = kinetic(end) - kinetic(momentum)
        change = path.log_density(proposal.terms, beta) - path.log_density(state.terms, beta)
        new, accept = select(key_accept, change - gain, proposal, current)
        return new, StepInfo(accept, sound_nan(path, beta, proposal, gain), position)

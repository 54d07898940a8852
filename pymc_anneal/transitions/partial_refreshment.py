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

from pymc_anneal.base import KernelState, Path, StepInfo
from pymc_anneal.transitions.hmc import kinetic, leapfrog
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

    step_size: float | jax.Array | None = None
    n_steps: int | jax.Array | None = None
    scale: float | jax.Array | None = None
    persistence: float = 0.8
    jitter: float = field(default=0.7, metadata={"static": True})
    target_accept: float = field(default=0.95, metadata={"static": True})

    def init(self, key: jax.Array, position: jax.Array) -> jax.Array:
        """Draw the momentum, shape ``(n, d)``."""
        return jax.random.normal(key, position.shape, position.dtype)

    def at(self, beta: jax.Array) -> Self:
        """Return the kernel itself: its parameters do not depend on ``beta``."""
        return self

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: jax.Array
    ) -> tuple[KernelState, StepInfo]:
        """Refresh the momentum in part, follow a trajectory, accept or turn back."""
        key_noise, key_jitter, key_accept = jax.random.split(key, 3)
        start, dtype = state.position, state.position.dtype
        noise = jax.random.normal(key_noise, start.shape, dtype)
        momentum = self.persistence * state.auxiliary + noise * jnp.sqrt(1 - self.persistence**2)
        shrink = jax.random.uniform(key_jitter, (len(start), 1), dtype, minval=1 - self.jitter)
        position, end = leapfrog(
            path, beta, start, momentum, self.step_size * shrink, self.n_steps, self.scale
        )
        proposal = KernelState(position, path.evaluate(position), end)
        current = KernelState(start, state.terms, -momentum)
        gain = kinetic(end) - kinetic(momentum)
        change = path.log_density(proposal.terms, beta) - path.log_density(state.terms, beta)
        new, accept = select(key_accept, change - gain, proposal, current)
        return new, StepInfo(accept, sound_nan(path, beta, proposal, gain), position)

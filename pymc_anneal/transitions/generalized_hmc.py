"""Hamiltonian Monte Carlo with partial momentum refreshment (Horowitz 1991).

The momentum persists and is mixed with fresh noise,

    p <- momentum_persistence p + sqrt(1 - momentum_persistence^2) xi,    xi ~ N(0, I),

then one short trajectory is followed; a rejection reverses the momentum. Within annealing this is
the kernel of Hamiltonian AIS (Sohl-Dickstein & Culpepper 2012): the state is ``(x, p)``, its
density ``f_beta(x) N(p; 0, I)`` at every temperature, and the momentum cancels from the weights.

The transition is the product of three steps that are each reversible, refreshment, Metropolis step
to the reversed end of the trajectory, reversal of the momentum: run in the other order they make
its own reversal, which is another transition.
"""

from dataclasses import dataclass, field
from typing import Self

import jax
import jax.numpy as jnp

from pymc_anneal.base.contracts import KernelState, Parameter, Path, Scalar, StepInfo
from pymc_anneal.transitions.hmc import integrate, kinetic, trajectory
from pymc_anneal.transitions.metropolis import accept_reject, nan_without_divergence


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GeneralizedHMC:
    """HMC with a persistent momentum; parameters left at None are set by the pilot.

    Parameters
    ----------
    step_size, n_steps, scale
        As for :class:`HMC`.
    momentum_persistence : float
        Autocorrelation of the momentum from one transition to the next, in [0, 1).
    jitter, target_accept : float
        As for :class:`HMC`.
    """

    step_size: Parameter = None
    n_steps: Parameter = None
    scale: Parameter = None
    momentum_persistence: Parameter = 0.8
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
        key_noise, key_move = jax.random.split(key)
        state, info = self.metropolis(key_move, self.refreshed(key_noise, state), path, beta)
        return flip_momentum(state), info

    def reversal(self) -> "ReversedGeneralizedHMC":
        """Return the transition of the reversed chain."""
        return ReversedGeneralizedHMC(self)

    def refreshed(self, key: jax.Array, state: KernelState) -> KernelState:
        """Mix the momentum with noise."""
        noise = jax.random.normal(key, state.auxiliary.shape, state.auxiliary.dtype)
        kept, fresh = self.momentum_persistence, jnp.sqrt(1 - self.momentum_persistence**2)
        return state._replace(auxiliary=kept * state.auxiliary + fresh * noise)

    def metropolis(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Accept the end of a trajectory with its momentum reversed, or stay: an involution."""
        key_jitter, key_accept = jax.random.split(key)
        start, momentum = state.position, state.auxiliary
        shape = (len(start), 1)
        shrink = jax.random.uniform(key_jitter, shape, start.dtype, minval=1 - self.jitter)
        position, end = integrate(
            path, beta, start, momentum, self.step_size * shrink, self.n_steps, self.scale
        )
        proposal = KernelState(position, path.evaluate(position), -end)
        gain = kinetic(end) - kinetic(momentum)
        change = path.log_density(proposal.terms, beta) - path.log_density(state.terms, beta)
        new, accept = accept_reject(key_accept, change - gain, proposal, state)
        return new, StepInfo(accept, nan_without_divergence(path, beta, proposal, gain), position)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ReversedGeneralizedHMC:
    """The reversal of :class:`GeneralizedHMC`: the same three steps in the other order.

    Parameters
    ----------
    forward : GeneralizedHMC
    """

    forward: GeneralizedHMC

    def init(self, key: jax.Array, position: jax.Array) -> jax.Array:
        """Draw the momentum, shape ``(n, d)``."""
        return self.forward.init(key, position)

    def at(self, beta: Scalar) -> Self:
        """Return the kernel itself: its parameters do not depend on ``beta``."""
        return self

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Reverse the momentum, follow a trajectory, refresh."""
        key_noise, key_move = jax.random.split(key)
        state, info = self.forward.metropolis(key_move, flip_momentum(state), path, beta)
        return self.forward.refreshed(key_noise, state), info

    def reversal(self) -> GeneralizedHMC:
        """Return the forward transition."""
        return self.forward


def flip_momentum(state: KernelState) -> KernelState:
    """Reverse the momentum."""
    return state._replace(auxiliary=-state.auxiliary)

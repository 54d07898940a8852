"""Generalized Hamiltonian Monte Carlo: partial momentum refreshment (Horowitz 1991).

The momentum persists and is mixed with fresh noise,

    p <- a p + sqrt(1 - a^2) xi,    xi ~ N(0, I),    a = momentum_persistence,

then one short trajectory is followed; a rejection reverses the momentum. Within annealing this is
the kernel of Hamiltonian AIS (Sohl-Dickstein & Culpepper 2012): the state is ``(x, p)``, its
density ``f_beta(x) N(p; 0, I)`` at every temperature, and the momentum cancels from the weights.

The transition is the product of three steps that are each reversible: refreshment, Metropolis step
to the reversed end of the trajectory, reversal of the momentum. In the opposite order they are its
time reversal, which is another transition.
"""

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
from pymc_anneal.transitions.hmc import divide_trajectory, integrate, kinetic_energy
from pymc_anneal.transitions.metropolis import accept_reject, nan_without_divergence


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GeneralizedHMC(Transition):
    """HMC with a persistent momentum; parameters left at None are set by the pilot.

    Parameters
    ----------
    step_size, n_steps, scale
        As for :class:`HMC`.
    momentum_persistence : float
        Autocorrelation of the momentum from one transition to the next, in [0, 1).
    jitter, target_accept : float
    single_precision : bool
        As for :class:`HMC`.
    """

    step_size: Parameter = None
    n_steps: Parameter = None
    scale: Parameter = None
    momentum_persistence: Parameter = 0.8
    jitter: float = field(default=0.7, metadata={"static": True})
    target_accept: float = field(default=0.95, metadata={"static": True})
    single_precision: bool = field(default=False, metadata={"static": True})

    @property
    def tuning(self) -> Tuning:
        """Step size, number of steps and scale; short trajectories are continued by the next."""
        return Tuning(
            {"step_size": self.step_size, "n_steps": self.n_steps, "scale": self.scale},
            target_accept=self.target_accept,
            uses_gradient=True,
        )

    def effort(self, level: int, step_limit: float) -> tuple[float, int]:
        """Return step size and number of steps of a trajectory length."""
        return divide_trajectory(level, step_limit)

    def cost(self, betas: np.ndarray) -> np.ndarray:
        """Return two gradients a step and the density at the end, shape ``(K,)``."""
        return np.broadcast_to(2 * np.asarray(self.n_steps) + 1, np.shape(betas))

    def init(self, key: jax.Array, position: jax.Array) -> jax.Array:
        """Draw the momentum, shape ``(n, d)``."""
        return jax.random.normal(key, position.shape, position.dtype)

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Refresh the momentum in part, follow a trajectory, accept or turn back."""
        key_noise, key_move = jax.random.split(key)
        state, info = self.metropolis(key_move, self.refresh(key_noise, state), path, beta)
        return flip_momentum(state), info

    def reversal(self) -> "ReversedGeneralizedHMC":
        """Return the transition of the time-reversed chain."""
        return ReversedGeneralizedHMC(self)

    def refresh(self, key: jax.Array, state: KernelState) -> KernelState:
        """Mix the momentum with noise."""
        noise = jax.random.normal(key, state.auxiliary.shape, state.auxiliary.dtype)
        persistent, fresh = self.momentum_persistence, jnp.sqrt(1 - self.momentum_persistence**2)
        return state._replace(auxiliary=persistent * state.auxiliary + fresh * noise)

    def metropolis(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Accept the end of a trajectory with its momentum reversed, or stay: an involution."""
        start, momentum = state.position, state.auxiliary
        uniform = jax.random.uniform(key, (len(start), 2), start.dtype)
        shrink = 1 - self.jitter * uniform[:, :1]
        force = partial(gradient, path, beta=beta, single_precision=self.single_precision)
        position, end = integrate(
            force, start, momentum, self.step_size * shrink, self.n_steps, self.scale
        )
        proposal = KernelState(position, path.evaluate(position), -end)
        gain = kinetic_energy(end) - kinetic_energy(momentum)
        change = path.log_density(proposal.terms, beta) - path.log_density(state.terms, beta)
        new, accept = accept_reject(uniform[:, 1], change - gain, proposal, state)
        return new, StepInfo(accept, nan_without_divergence(path, beta, proposal, gain), position)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ReversedGeneralizedHMC(Transition):
    """Time reversal of :class:`GeneralizedHMC`: the same three steps in the opposite order.

    Parameters
    ----------
    forward : GeneralizedHMC
    """

    forward: GeneralizedHMC

    def init(self, key: jax.Array, position: jax.Array) -> jax.Array:
        """Draw the momentum, shape ``(n, d)``."""
        return self.forward.init(key, position)

    def cost(self, betas: np.ndarray) -> np.ndarray:
        """Return the cost of the forward transition, shape ``(K,)``."""
        return self.forward.cost(betas)

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Reverse the momentum, follow a trajectory, refresh."""
        key_noise, key_move = jax.random.split(key)
        state, info = self.forward.metropolis(key_move, flip_momentum(state), path, beta)
        return self.forward.refresh(key_noise, state), info

    def reversal(self) -> GeneralizedHMC:
        """Return the forward transition."""
        return self.forward


def flip_momentum(state: KernelState) -> KernelState:
    """Reverse the momentum."""
    return state._replace(auxiliary=-state.auxiliary)

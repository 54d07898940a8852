"""Metropolis-adjusted Langevin algorithm (Roberts & Tweedie 1996).

In the coordinates ``z`` with ``x = S z``,

    z' = z + step_size^2 / 2 grad log f_beta + step_size xi,    xi ~ N(0, I),

accepted with the Metropolis-Hastings ratio, ``n_steps`` times.
"""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp

from pymc_anneal.base.contracts import KernelState, Parameter, Path, Scalar, StepInfo, gradient
from pymc_anneal.transitions.metropolis import (
    Memoryless,
    accept_reject,
    nan_without_divergence,
    proposals,
    repeat,
    scaled,
    scaled_transpose,
)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MALA(Memoryless):
    """Metropolis-adjusted Langevin algorithm.

    Parameters
    ----------
    step_size, scale
        As for :class:`HMC`; None: set by the pilot.
    n_steps : int, optional
        Proposals per transition; None: set by the pilot.
    target_accept : float
        Mean acceptance probability to which the pilot sets ``step_size``; 0.574 is optimal in
        high dimensions (Roberts & Rosenthal 1998).
    """

    step_size: Parameter = None
    n_steps: Parameter = None
    scale: Parameter = None
    target_accept: float = field(default=0.6, metadata={"static": True})

    @property
    def uses_gradient(self) -> bool:
        """Whether the log density has to be differentiable."""
        return True

    def cost(self, n_steps: int) -> int:
        """Return the evaluations of gradient or density of a transition."""
        return 2 * n_steps + 1

    def effort(self, rung: int, step_limit: float) -> tuple[float, int]:
        """Return step size and number of proposals of a rung of the pilot's ladder."""
        return step_limit, proposals(rung)

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Make ``n_steps`` proposals."""
        scale = jnp.asarray(self.scale)

        def drift(position: jax.Array) -> jax.Array:
            return 0.5 * self.step_size * scaled_transpose(scale, gradient(path, position, beta))

        def move(key: jax.Array, state: KernelState) -> tuple[KernelState, StepInfo]:
            key_noise, key_accept = jax.random.split(key)
            start, forward = state.position, state.auxiliary  # drift at the start
            noise = jax.random.normal(key_noise, start.shape, start.dtype)
            position = start + self.step_size * scaled(scale, noise + forward)
            proposal = KernelState(position, path.evaluate(position), drift(position))
            back = noise + forward + proposal.auxiliary  # minus the noise of the way back
            change = path.log_density(proposal.terms, beta) - path.log_density(state.terms, beta)
            gain = 0.5 * (back**2 - noise**2).sum(axis=-1)
            new, accept = accept_reject(key_accept, change - gain, proposal, state)
            return new, StepInfo(
                accept, nan_without_divergence(path, beta, proposal, gain), position
            )

        # The drift is cached between the proposals of one temperature and dropped after them.
        start = KernelState(state.position, state.terms, drift(state.position))
        state, info = repeat(move, key, start, self.n_steps)
        return KernelState(state.position, state.terms, ()), info

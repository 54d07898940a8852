"""Metropolis-adjusted Langevin algorithm (Roberts & Tweedie 1996).

In the coordinates ``z`` with ``x = S z``,

    z' = z + step_size^2 / 2 grad log f_beta + step_size xi,    xi ~ N(0, I),

accepted with the Metropolis-Hastings ratio, ``n_steps`` times.
"""

from dataclasses import dataclass, field

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
    repeat,
)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MALA(Transition):
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
    single_precision : bool
        As for :class:`HMC`.
    """

    step_size: Parameter = None
    n_steps: Parameter = None
    scale: Parameter = None
    target_accept: float = field(default=0.6, metadata={"static": True})
    single_precision: bool = field(default=False, metadata={"static": True})

    @property
    def tuning(self) -> Tuning:
        """Step size, number of proposals and scale."""
        return Tuning(
            {"step_size": self.step_size, "n_steps": self.n_steps, "scale": self.scale},
            target_accept=self.target_accept,
            uses_gradient=True,
        )

    def cost(self, betas: np.ndarray) -> np.ndarray:
        """Return a gradient and a density a proposal, and the first gradient, shape ``(K,)``."""
        return np.broadcast_to(2 * np.asarray(self.n_steps) + 1, np.shape(betas))

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Make ``n_steps`` proposals."""
        scale = jnp.asarray(self.scale)

        def drift(position: jax.Array) -> jax.Array:
            slope = gradient(path, position, beta, self.single_precision)
            return jnp.multiply(0.5 * self.step_size, apply_transposed_scale(scale, slope))

        def move(key: jax.Array, state: KernelState) -> tuple[KernelState, StepInfo]:
            start, forward = state.position, state.auxiliary  # drift at the start
            noise, uniform = normal_and_uniform(key, start, 1)
            position = start + self.step_size * apply_scale(scale, noise + forward)
            proposal = KernelState(position, path.evaluate(position), drift(position))
            back = noise + forward + proposal.auxiliary  # minus the noise of the way back
            change = path.log_density(proposal.terms, beta) - path.log_density(state.terms, beta)
            gain = 0.5 * (back**2 - noise**2).sum(axis=-1)
            new, accept = accept_reject(uniform[:, 0], change - gain, proposal, state)
            nan = nan_without_divergence(path, beta, proposal, gain)
            return new, StepInfo(accept, nan, position)

        # The drift is cached between the proposals of one temperature and dropped after them.
        start = KernelState(state.position, state.terms, drift(state.position))
        state, info = repeat(move, key, start, self.n_steps)
        return KernelState(state.position, state.terms, ()), info

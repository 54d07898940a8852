"""Random-walk Metropolis: ``x' = x + step_size S xi``, ``xi ~ N(0, I)``, ``n_steps`` times."""

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
)
from pymc_anneal.transitions.metropolis import (
    accept_reject,
    apply_scale,
    nan_without_divergence,
    normal_and_uniform,
    repeat,
)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RandomWalkMetropolis(Transition):
    """Gaussian random walk, for densities without gradients.

    Parameters
    ----------
    step_size, scale
        As for :class:`HMC`; None: set by the pilot.
    n_steps : int, optional
        Proposals per transition; None: set by the pilot.
    target_accept : float
        Mean acceptance probability to which the pilot sets ``step_size``; 0.234 is optimal in
        high dimensions (Roberts, Gelman & Gilks 1997).
    """

    step_size: Parameter = None
    n_steps: Parameter = None
    scale: Parameter = None
    target_accept: float = field(default=0.3, metadata={"static": True})

    @property
    def tuning(self) -> Tuning:
        """Step size, number of proposals and scale."""
        return Tuning(
            {"step_size": self.step_size, "n_steps": self.n_steps, "scale": self.scale},
            target_accept=self.target_accept,
        )

    def cost(self, betas: np.ndarray) -> np.ndarray:
        """Return a density a proposal, shape ``(K,)``."""
        return np.broadcast_to(np.asarray(self.n_steps), np.shape(betas))

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Make ``n_steps`` proposals."""

        def move(key: jax.Array, state: KernelState) -> tuple[KernelState, StepInfo]:
            start = state.position
            noise, uniform = normal_and_uniform(key, start, 1)
            position = start + self.step_size * apply_scale(jnp.asarray(self.scale), noise)
            proposal = KernelState(position, path.evaluate(position), ())
            change = path.log_density(proposal.terms, beta) - path.log_density(state.terms, beta)
            new, accept = accept_reject(uniform[:, 0], change, proposal, state)
            nan = nan_without_divergence(path, beta, proposal, jnp.zeros(len(start)))
            return new, StepInfo(accept, nan, position)

        return repeat(move, key, state, self.n_steps)

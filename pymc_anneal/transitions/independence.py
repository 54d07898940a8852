"""Independence Metropolis-Hastings: proposals that do not depend on the state.

    x' ~ q,    accept with probability min(1, f_beta(x') q(x) / (f_beta(x) q(x'))).

Near to its proposals a density needs neither gradients nor tuning: the autocorrelation time is
about ``E_f[f / q]``, that is ``exp(D)`` for a discrepancy ``D`` (Tierney 1994, section 2.3.3;
Liu 1996).
"""

from dataclasses import dataclass
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.contracts import KernelState, Parameter, Path, Scalar, StepInfo, Transition
from pymc_anneal.transitions.metropolis import accept_reject, nan_without_divergence, repeat


class Proposal(Protocol):
    """A normalised density with exact draws, both in JAX; a pytree of its parameters."""

    def log_density(self, position: jax.Array) -> jax.Array:
        """Return the log density in nats, shape ``(n,)``, at ``(n, d)`` positions."""

    def draw(self, key: jax.Array, draws: int) -> jax.Array:
        """Draw from the density, shape ``(draws, d)``."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class IndependenceMetropolis(Transition):
    """Independence Metropolis-Hastings: proposals from one density, for targets near to it.

    It takes no gradients. :func:`sample_ais` proposes from a fitted mixture that is very near to
    the posterior where gradients take long.

    Parameters
    ----------
    proposal
        The density, with the methods ``log_density(position)`` and ``draw(key, draws)`` in JAX:
        :class:`GaussianReference`, :class:`StudentTReference`, :class:`MixtureReference`.
    n_steps : int
        Proposals per transition, each an evaluation of the density.

    References
    ----------
    Tierney (1994), Markov chains for exploring posterior distributions, section 2.3.3; Liu (1996),
    Metropolized independent sampling with comparisons to rejection sampling and importance
    sampling.
    """

    proposal: Proposal
    n_steps: Parameter = 1

    def cost(self, betas: np.ndarray) -> np.ndarray:
        """Return a density a proposal, shape ``(K,)``."""
        return np.broadcast_to(np.asarray(self.n_steps), np.shape(betas))

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Make ``n_steps`` proposals for each particle."""

        def move(key: jax.Array, state: KernelState) -> tuple[KernelState, StepInfo]:
            key_draw, key_accept = jax.random.split(key)
            position = self.proposal.draw(key_draw, len(state.position))
            proposal = KernelState(position, path.evaluate(position), ())
            log_ratio, other = (
                path.log_density(s.terms, beta) - self.proposal.log_density(s.position)
                for s in (proposal, state)
            )
            uniform = jax.random.uniform(key_accept, log_ratio.shape, log_ratio.dtype)
            new, accept = accept_reject(uniform, log_ratio - other, proposal, state)
            nan = nan_without_divergence(path, beta, proposal, jnp.zeros(len(position)))
            return new, StepInfo(accept, nan, position)

        return repeat(move, key, state, self.n_steps)

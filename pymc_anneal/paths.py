"""Paths of densities from the reference to the target.

Geometric path from the prior (power posteriors):

    log f_beta(x) = log prior(x) + beta V(x),    v_beta(x) = V(x),

the exponential family with the prior as base measure and the log likelihood ``V`` as statistic, so
``d/dbeta E_beta[V] = Var_beta[V] = g(beta)`` (Grosse, Maddison & Salakhutdinov 2013, section 3).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp

from pymc_anneal.base import LogTerms, Path, Scalar

__all__ = ["GeometricPath", "gradient"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GeometricPath:
    """Geometric path from the prior to the posterior.

    Parameters
    ----------
    log_terms
        JAX function of one position of shape ``(d,)`` to :class:`~pymc_anneal.base.LogTerms`;
        :attr:`CompiledModel.log_terms` is one.
    """

    log_terms: Callable[[jax.Array], LogTerms] = field(metadata={"static": True})

    def evaluate(self, position: jax.Array) -> LogTerms:
        """Return log prior and log likelihood, shape ``(n,)`` each, at ``(n, d)`` positions."""
        return jax.vmap(self.log_terms)(position)

    def log_density(self, terms: LogTerms, beta: Scalar) -> jax.Array:
        """Return ``log prior + beta V``; the prior alone at ``beta = 0``, also where V = -inf."""
        return terms.log_prior + jnp.where(beta == 0, 0.0, beta * terms.log_likelihood)

    def log_ratio(self, terms: LogTerms, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``(stop - start) V``."""
        return jnp.where(stop == start, 0.0, (stop - start) * terms.log_likelihood)

    def velocity(self, terms: LogTerms, beta: Scalar) -> jax.Array:
        """Return ``V``."""
        return terms.log_likelihood


def gradient(path: Path, position: jax.Array, beta: Scalar) -> jax.Array:
    """Return the gradient of ``log f_beta``, shape ``(n, d)``.

    Particles do not interact, so the gradient of the sum is the gradient of each.
    """
    return jax.grad(lambda x: path.log_density(path.evaluate(x), beta).sum())(position)

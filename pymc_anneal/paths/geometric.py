"""Paths of densities from the reference to the target.

Geometric path from the prior (power posteriors):

    log f_beta(x) = log prior(x) + beta V(x),    v_beta(x) = V(x),

the exponential family with the prior as base measure and the log likelihood ``V`` as statistic, so
``d/dbeta E_beta[V] = Var_beta[V] = g(beta)`` (Grosse, Maddison & Salakhutdinov 2013, section 3).
Geometric path from another normalised reference ``r``:

    log f_beta(x) = (1 - beta) log r(x) + beta (log prior(x) + V(x)),

with ``log prior + V - log r`` in the place of ``V``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pymc_anneal.base.contracts import LogTerms, Scalar


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


class ReferenceTerms(NamedTuple):
    """Log densities of the reference and of prior times likelihood."""

    log_reference: jax.Array
    log_target: jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ReferencePath:
    """Geometric path from a reference other than the prior to the posterior.

    Parameters
    ----------
    log_terms
        As for :class:`GeometricPath`.
    reference : Reference
        A normalised density, see :func:`fit_reference`.
    """

    log_terms: Callable[[jax.Array], LogTerms] = field(metadata={"static": True})
    reference: Any

    def evaluate(self, position: jax.Array) -> ReferenceTerms:
        """Return the log densities of both ends, shape ``(n,)`` each, at ``(n, d)`` positions."""
        log_target = jax.vmap(self.log_terms)(position).log_posterior
        return ReferenceTerms(self.reference.log_density(position), log_target)

    def log_density(self, terms: ReferenceTerms, beta: Scalar) -> jax.Array:
        """Return ``(1 - beta) log r + beta log target``; ``log r`` alone at ``beta = 0``."""
        return (1 - beta) * terms.log_reference + jnp.where(beta == 0, 0.0, beta * terms.log_target)

    def log_ratio(self, terms: ReferenceTerms, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``(stop - start) (log target - log r)``."""
        return jnp.where(stop == start, 0.0, (stop - start) * self.velocity(terms, stop))

    def velocity(self, terms: ReferenceTerms, beta: Scalar) -> jax.Array:
        """Return ``log target - log r``."""
        return terms.log_target - terms.log_reference

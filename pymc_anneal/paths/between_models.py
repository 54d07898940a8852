"""Geometric path between two unnormalised densities on the same space.

    log f_beta(x) = (1 - beta) log f_0(x) + beta log f_1(x),    v_beta = log f_1 - log f_0.

With the densities of two models, prior times likelihood, at its ends, the log ratio of the
normalisers is the log Bayes factor (Lartillot & Philippe 2006, eq. 11, the model-switch path).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from pymc_anneal.base.contracts import Scalar
from pymc_anneal.paths.geometric import as_pytree


class EndTerms(NamedTuple):
    """Log densities of both ends.

    Attributes
    ----------
    log_first, log_second : Array, shape () or (n,)
        In nats, up to a constant each.
    """

    log_first: jax.Array
    log_second: jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BetweenModels:
    """Geometric path between two unnormalised densities.

    Parameters
    ----------
    log_ends : callable
        JAX function of one position of shape ``(d,)`` that returns :class:`EndTerms`.

    References
    ----------
    Lartillot & Philippe (2006), Computing Bayes factors using thermodynamic integration, eq. 11.
    Baele, Lemey & Vansteelandt (2013), Make the most of your samples: Bayes factor estimators for
    high-dimensional models of sequence evolution.
    """

    log_ends: Callable[[jax.Array], EndTerms]

    def __post_init__(self) -> None:
        object.__setattr__(self, "log_ends", as_pytree(self.log_ends))  # type: ignore[arg-type]

    def evaluate(self, position: jax.Array) -> EndTerms:
        """Return the log densities of both ends at ``(n, d)`` positions."""
        return jax.vmap(self.log_ends)(position)

    def log_density(self, terms: EndTerms, beta: Scalar) -> jax.Array:
        """Return ``log f_beta``, shape ``(n,)``; at the ends that end alone, even beside -inf."""
        first = jnp.where(beta == 1, 0.0, (1 - beta) * terms.log_first)
        second = jnp.where(beta == 0, 0.0, beta * terms.log_second)
        return jnp.asarray(first + second)

    def log_ratio(self, terms: EndTerms, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``(stop - start) v``, shape ``(n,)``."""
        return jnp.where(stop == start, 0.0, (stop - start) * self.velocity(terms, stop))

    def velocity(self, terms: EndTerms, beta: Scalar) -> jax.Array:
        """Return ``log f_1 - log f_0``, shape ``(n,)``; -inf where both densities are zero."""
        change = terms.log_second - terms.log_first
        return jnp.where(jnp.isneginf(terms.log_second), -jnp.inf, change)

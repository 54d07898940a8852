"""Paths through a tilted prior: natural parameters linear between knots.

At knots that match averaged moments this is the moment-average spline of Grosse, Maddison &
Salakhutdinov (2013, section 4); any natural parameters make a valid path.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from pymc_anneal.base.contracts import Scalar
from pymc_anneal.paths.tilted_prior import TiltedPrior, TiltedTerms, inner_product


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class MomentSplinePath:
    """Path through a tilted prior whose natural parameters are linear between knots.

    Parameters
    ----------
    family : TiltedPrior
    knots : Array, shape (m + 1,)
        Increasing from 0; knots above 1 are never reached.
    natural : Array, shape (m + 1, p)
        Natural parameters at the knots.
    """

    family: TiltedPrior
    knots: Any
    natural: Any

    def at(self, beta: Scalar) -> jax.Array:
        """Return the natural parameter at ``beta``, shape ``(p,)``."""
        segment, share = self._segment(beta)
        natural = jnp.asarray(self.natural)
        return (1 - share) * natural[segment] + share * natural[segment + 1]

    def evaluate(self, position: jax.Array) -> TiltedTerms:
        """Return the family's terms at ``(n, d)`` positions."""
        return self.family.evaluate(position)

    def log_density(self, terms: TiltedTerms, beta: Scalar) -> jax.Array:
        """Return ``log prior + eta(beta).T``, shape ``(n,)``."""
        return terms.log_base + inner_product(self.at(beta), terms.statistics)

    def log_ratio(self, terms: TiltedTerms, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``(eta(stop) - eta(start)).T``, shape ``(n,)``."""
        (first, _), (last, _) = self._segment(start), self._segment(stop)
        inside = self._slope(first) * (stop - start)  # to all digits, however short the step
        change = jnp.where(first == last, inside, self.at(stop) - self.at(start))
        return inner_product(change, terms.statistics)

    def velocity(self, terms: TiltedTerms, beta: Scalar) -> jax.Array:
        """Return ``eta'(beta).T``, shape ``(n,)``; at a knot, the derivative from the left."""
        return inner_product(self._slope(self._segment(beta)[0]), terms.statistics)

    def _slope(self, segment: jax.Array) -> jax.Array:
        knots, natural = jnp.asarray(self.knots), jnp.asarray(self.natural)
        return (natural[segment + 1] - natural[segment]) / (knots[segment + 1] - knots[segment])

    def _segment(self, beta: Scalar) -> tuple[jax.Array, jax.Array]:
        knots = jnp.asarray(self.knots)
        segment = jnp.clip(jnp.searchsorted(knots, beta, side="left") - 1, 0, len(knots) - 2)
        return segment, (beta - knots[segment]) / (knots[segment + 1] - knots[segment])

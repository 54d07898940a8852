"""Paths through a tilted prior: natural parameters that are linear between knots.

If the natural parameters at the knots match averaged moments, this is the moment-average spline of
Grosse, Maddison & Salakhutdinov (2013, section 4). Any natural parameters make a valid path.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.contracts import Scalar
from pymc_anneal.base.knots import segment_of, share_of, width_of
from pymc_anneal.paths.tilted_prior import TiltedPrior, TiltedTerms, inner_product


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class MomentSplinePath:
    """Path through a tilted prior whose natural parameters are linear between knots.

    Parameters
    ----------
    family : TiltedPrior
    knots : Array, shape (m + 1,)
        Inverse temperatures, increasing from 0; knots above 1 are allowed and have no effect.
    natural : Array, shape (m + 1, p)
        Natural parameters at the knots.
    """

    family: TiltedPrior
    knots: jax.Array | np.ndarray
    natural: jax.Array | np.ndarray

    def at(self, beta: Scalar) -> jax.Array:
        """Return the natural parameters at ``beta``, shape ``(p,)``."""
        segment = self._segment(beta)
        share = share_of(self.knots, segment, beta)
        natural = jnp.asarray(self.natural)
        return (1 - share) * natural[segment] + share * natural[segment + 1]

    def evaluate(self, position: jax.Array) -> TiltedTerms:
        """Return the terms of the family at ``(n, d)`` positions."""
        return self.family.evaluate(position)

    def log_density(self, terms: TiltedTerms, beta: Scalar) -> jax.Array:
        """Return ``log prior + eta(beta).T``, shape ``(n,)``."""
        return terms.log_base + inner_product(self.at(beta), terms.statistics)

    def log_ratio(self, terms: TiltedTerms, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``(eta(stop) - eta(start)).T``, shape ``(n,)``."""
        first, last = self._segment(start), self._segment(stop)
        inside = self._slope(first) * (stop - start)  # exact to all digits for a short step
        change = jnp.where(first == last, inside, self.at(stop) - self.at(start))
        return inner_product(change, terms.statistics)

    def velocity(self, terms: TiltedTerms, beta: Scalar) -> jax.Array:
        """Return ``eta'(beta).T``, shape ``(n,)``; at a knot, the derivative from the left."""
        return inner_product(self._slope(self._segment(beta)), terms.statistics)

    def _segment(self, beta: Scalar) -> jax.Array:
        return segment_of(self.knots, beta, side="left")

    def _slope(self, segment: jax.Array) -> jax.Array:
        """Return ``eta'`` on a segment, shape ``(p,)``."""
        natural = jnp.asarray(self.natural)
        return (natural[segment + 1] - natural[segment]) / width_of(self.knots, segment)

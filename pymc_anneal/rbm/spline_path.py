"""Spline paths of restricted Boltzmann machines.

Natural parameters ``(a, b, W)`` are given at knots and linear between them. With two knots this is
the geometric path between any two RBMs; with more, the moment-average spline of Grosse, Maddison &
Salakhutdinov (2013), section 4. Two matrix products, the fields at the first knot of a segment and
their increment to the second, serve every temperature of the segment.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.contracts import Scalar
from pymc_anneal.base.knots import segment_of, share_of, width_of
from pymc_anneal.rbm.model import RBM
from pymc_anneal.rbm.paths import RBMPath, as_type_of, sum_softplus_increments
from pymc_anneal.rbm.products import product_with_biases
from pymc_anneal.schedules.validate import check_schedule


class SplineTerms(NamedTuple):
    """Terms of a spline path on one segment, the same for all configurations.

    Attributes
    ----------
    position : Array, shape (n, n_visible)
    segment : Array of int, shape (n,)
        Index of the segment, ``n`` times.
    base, linear : Array, shape (n,)
        ``a.v`` at the segment's first knot, and its increment to the second.
    field, slope : Array, shape (n, n_hidden)
        ``b + v W`` at the first knot, and its increment to the second.
    """

    position: jax.Array
    segment: jax.Array
    base: jax.Array
    linear: jax.Array
    field: jax.Array
    slope: jax.Array


# Segment, terms on it, and the sum of the increments before it.
_Carry = tuple[jax.Array, SplineTerms, jax.Array]


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class SplineRBMPath(RBMPath):
    """Path of natural parameters that are linear between knots, see :meth:`through`.

    Parameters
    ----------
    knots : Array, shape (m + 1,)
        Temperatures of the knots, from 0 to 1.
    start : RBM
        Parameters at the first knot of each segment; leaves of shape ``(m, ...)``.
    change : RBM
        Increments of the parameters along each segment; leaves of shape ``(m, ...)``.
    """

    knots: np.ndarray
    start: RBM
    change: RBM

    @classmethod
    def through(cls, knots: np.ndarray, models: list[RBM]) -> "SplineRBMPath":
        """Return the path through given RBMs.

        Parameters
        ----------
        knots : array_like, shape (m + 1,)
            Temperatures, increasing from 0 to 1.
        models : list of RBM
            The RBMs at the knots.

        Raises
        ------
        ValueError
            The knots do not increase from 0 to 1, or the RBMs differ in number or shape.
        """
        knots = check_schedule(np.asarray(knots))
        shapes = {m.weights.shape for m in models}
        if len(models) != len(knots) or len(shapes) != 1:
            raise ValueError(
                f"Found {len(models)} RBMs of shapes {sorted(shapes)} for {len(knots)} knots; "
                "expected one RBM per knot, all of the same shape."
            )
        dtype = np.result_type(*(m.weights.dtype for m in models))
        double = jax.tree.map(lambda *x: np.stack([np.asarray(i, np.float64) for i in x]), *models)
        # NumPy arrays: JAX arrays would be in single precision unless the caller enabled double.
        first = jax.tree.map(lambda x: x[:-1].astype(dtype), double)
        change = jax.tree.map(lambda x: np.diff(x, axis=0).astype(dtype), double)
        return cls(knots, first, change)

    def evaluate(self, position: jax.Array) -> SplineTerms:
        """Return the terms of configurations ``(n, n_visible)`` on the first segment."""
        return self._evaluate(position, jnp.zeros((), jnp.int32))

    def evaluate_at(self, position: jax.Array, beta: Scalar) -> SplineTerms:
        """Return the terms on the segment of ``beta``."""
        return self._evaluate(position, self._segment(beta))

    def at(self, terms: SplineTerms, beta: Scalar) -> SplineTerms:
        """Return the terms on the segment of ``beta``, evaluated only if the segment differs."""
        return self._on_segment(terms, self._segment(beta))

    def log_density(self, terms: SplineTerms, beta: Scalar) -> jax.Array:
        """Return ``log f_beta``, shape ``(n,)``, in nats."""
        terms = self.at(terms, beta)
        share = self._share(terms.segment[0], beta, terms.field)
        hidden = jnp.logaddexp(0, terms.field + share * terms.slope).sum(axis=-1)
        return terms.base + share * terms.linear + hidden

    def log_ratio(self, terms: SplineTerms, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``log f_stop - log f_start``, shape ``(n,)``, in nats, summed over segments."""
        knots = jnp.asarray(self.knots)
        sign = jnp.where(stop < start, -1, 1).astype(terms.base.dtype)
        start, stop = jnp.minimum(start, stop), jnp.maximum(start, stop)
        last = self._segment(stop)

        def add(carry: _Carry) -> _Carry:
            segment, terms, total = carry
            terms = self._on_segment(terms, segment)
            low = jnp.maximum(start, knots[segment])
            high = jnp.minimum(stop, knots[segment + 1])
            return segment + 1, terms, total + self._increment(terms, low, high)

        carry = add((self._segment(start), terms, jnp.zeros_like(terms.base)))
        _, _, total = jax.lax.while_loop(lambda carry: carry[0] <= last, add, carry)
        return jnp.asarray(sign * total)

    def velocity(self, terms: SplineTerms, beta: Scalar) -> jax.Array:
        """Return the derivative of ``log f_beta`` in ``beta``, shape ``(n,)``."""
        terms = self.at(terms, beta)
        width = as_type_of(self._width(terms.segment[0]), terms.field)
        hidden = jax.nn.sigmoid(self.hidden_field(terms, beta))
        return (terms.linear + (hidden * terms.slope).sum(axis=-1)) / width

    def hidden_field(self, terms: SplineTerms, beta: Scalar) -> jax.Array:
        """Return the log odds of the hidden units, ``(n, n_hidden)``, from ``at(terms, beta)``."""
        return terms.field + self._share(terms.segment[0], beta, terms.field) * terms.slope

    def model_at(self, beta: Scalar) -> RBM:
        """Return the RBM at ``beta``."""
        segment = self._segment(beta)
        share = self._share(segment, beta, self.start.weights)
        model: RBM = jax.tree.map(
            lambda s, c: s[segment] + share * c[segment], self.start, self.change
        )
        return model

    def _segment(self, beta: Scalar) -> jax.Array:
        """Return the index of the segment that contains ``beta``, shape ``()``."""
        return segment_of(self.knots, beta, "right")

    def _width(self, segment: jax.Array) -> jax.Array:
        return width_of(self.knots, segment)

    def _share(self, segment: jax.Array, beta: Scalar, like: jax.Array | np.ndarray) -> jax.Array:
        """Return the position of ``beta`` in its segment, from 0 to 1, shape ``()``."""
        return as_type_of(share_of(self.knots, segment, beta), like)

    def _evaluate(self, position: jax.Array, segment: jax.Array) -> SplineTerms:
        start, change = (jax.tree.map(lambda x: x[segment], m) for m in (self.start, self.change))
        both = jnp.concatenate([start.weights, change.weights], axis=1)
        product, base, linear = product_with_biases(
            position, both, start.visible_bias, change.visible_bias
        )
        field, slope = jnp.split(product, 2, axis=1)
        return SplineTerms(
            position=position,
            segment=jnp.broadcast_to(segment.astype(jnp.int32), len(position)),
            base=base,
            linear=linear,
            field=field + start.hidden_bias,
            slope=slope + change.hidden_bias,
        )

    def _on_segment(self, terms: SplineTerms, segment: jax.Array) -> SplineTerms:
        """Return the terms on a segment; matrix products only if it is another one."""
        result: SplineTerms = jax.lax.cond(
            terms.segment[0] == segment,
            lambda: terms,
            lambda: self._evaluate(terms.position, segment),
        )
        return result

    def _increment(self, terms: SplineTerms, low: jax.Array, high: jax.Array) -> jax.Array:
        """Return ``log f_high - log f_low``, shape ``(n,)``, within the segment of the terms."""
        segment = terms.segment[0]
        step = as_type_of((high - low) / self._width(segment), terms.field)
        field = terms.field + self._share(segment, high, terms.field) * terms.slope
        return step * terms.linear + sum_softplus_increments(field, terms.slope, step)

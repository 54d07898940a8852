"""Paths between restricted Boltzmann machines, hidden units summed out.

**Geometric**, from a reference of independent units (``W = 0``, ``b = 0``, visible bias ``a_0``):

    log f_beta(v) = ((1 - beta) a_0 + beta a).v + sum_j softplus(beta (b_j + (v W)_j)),

so that one matrix product ``v W`` serves the weight and the next hidden units.

**Spline**: natural parameters ``(a, b, W)`` given at knots and linear between them: the geometric
path between any two machines (two knots), or the moment-average spline of Grosse, Maddison &
Salakhutdinov (2013), section 4. On a segment the fields of its first knot and the difference to
its second, two products, serve every temperature.

Increments of the log density are computed from ``e^{d} - 1`` of the increment ``d`` of each unit's
field, not as differences of log densities: a hundred thousand of them add up without loss in
single precision.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.contracts import Scalar
from pymc_anneal.rbm.model import RBM
from pymc_anneal.schedules.validate import check_schedule


def softplus_increment(x: jax.Array, d: jax.Array) -> jax.Array:
    """``softplus(x + d) - softplus(x)`` to the relative precision of ``d``, element by element.

    ``log(1 + sigmoid(x) (e^d - 1))`` from the lower end, where nothing cancels; a difference where
    the step is large and ``e^d`` may overflow.
    """
    size = jnp.abs(d)
    small = jnp.log1p(jax.nn.sigmoid(jnp.minimum(x, x + d)) * jnp.expm1(jnp.minimum(size, 1.0)))
    large = jnp.logaddexp(0, x + d) - jnp.logaddexp(0, x)
    return jnp.where(size < 1, jnp.sign(d) * small, large)


class GeometricTerms(NamedTuple):
    """What a configuration contributes at any temperature.

    Attributes
    ----------
    base, linear : Array, shape (n,)
        ``a_0.v`` and ``(a - a_0).v``.
    field : Array, shape (n, n_hidden)
        ``b + v W``.
    """

    base: jax.Array
    linear: jax.Array
    field: jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class GeometricRBMPath:
    """Geometric path from independent visible units to a machine.

    Parameters
    ----------
    reference_bias : Array, shape (n_visible,)
        ``a_0``.
    model : RBM
        The target.
    """

    reference_bias: Any
    model: RBM

    def evaluate(self, position: jax.Array) -> GeometricTerms:
        """Return the terms of ``n`` configurations."""
        model = self.model
        return GeometricTerms(
            base=_dot(position, self.reference_bias),
            linear=_dot(position, model.visible_bias - self.reference_bias),
            field=model.hidden_bias + position @ model.weights,
        )

    def evaluate_at(self, position: jax.Array, beta: Scalar) -> GeometricTerms:
        """Return the terms, which are the same at every ``beta``."""
        return self.evaluate(position)

    def at(self, terms: GeometricTerms, beta: Scalar) -> GeometricTerms:
        """Return the terms, which are the same at every ``beta``."""
        return terms

    def log_density(self, terms: GeometricTerms, beta: Scalar) -> jax.Array:
        """Return ``log f_beta``, shape ``(n,)``."""
        beta = _cast(beta, terms.field)
        hidden = jnp.logaddexp(0, beta * terms.field).sum(axis=-1)
        return terms.base + beta * terms.linear + hidden

    def log_ratio(self, terms: GeometricTerms, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``log f_stop - log f_start``, shape ``(n,)``."""
        step, start = _cast(stop - start, terms.field), _cast(start, terms.field)
        hidden = softplus_increment(start * terms.field, step * terms.field).sum(axis=-1)
        return step * terms.linear + hidden

    def velocity(self, terms: GeometricTerms, beta: Scalar) -> jax.Array:
        """Return ``(a - a_0).v + sum_j sigmoid(beta x_j) x_j``, ``x = b + v W``."""
        hidden = jax.nn.sigmoid(_cast(beta, terms.field) * terms.field)
        return terms.linear + (hidden * terms.field).sum(axis=-1)

    def hidden_field(self, terms: GeometricTerms, beta: Scalar) -> jax.Array:
        """Return the log odds of the hidden units, shape ``(n, n_hidden)``."""
        return _cast(beta, terms.field) * terms.field

    def visible_field(self, hidden: jax.Array, beta: Scalar) -> jax.Array:
        """Return the log odds of the visible units, shape ``(n, n_visible)``."""
        beta = _cast(beta, hidden)
        bias = (1 - beta) * self.reference_bias + beta * self.model.visible_bias
        return bias + beta * (hidden @ self.model.weights.T)

    def model_at(self, beta: Scalar) -> RBM:
        """Return the machine at ``beta``."""
        beta = _cast(beta, self.model.weights)
        return RBM.of(
            (1 - beta) * self.reference_bias + beta * self.model.visible_bias,
            beta * self.model.hidden_bias,
            beta * self.model.weights,
        )


class SplineTerms(NamedTuple):
    """What a configuration contributes on one segment.

    Attributes
    ----------
    position : Array, shape (n, n_visible)
    segment : Array of int, shape ()
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


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class SplineRBMPath:
    """Path of natural parameters that are linear between knots.

    Parameters
    ----------
    knots : Array, shape (m + 1,)
        Temperatures of the knots, from 0 to 1.
    start : RBM
        Machines at the first knot of each segment; leaves of shape ``(m, ...)``.
    change : RBM
        Increments of the parameters along each segment; leaves of shape ``(m, ...)``.
    """

    knots: Any
    start: RBM
    change: RBM

    @classmethod
    def through(cls, knots: np.ndarray, models: list[RBM]) -> "SplineRBMPath":
        """Return the path through machines at knots.

        Raises
        ------
        ValueError
            The knots do not increase from 0 to 1, or the machines differ in number or shape.
        """
        knots = check_schedule(np.asarray(knots))
        shapes = {m.weights.shape for m in models}
        if len(models) != len(knots) or len(shapes) != 1:
            raise ValueError(
                f"Found {len(models)} machines of shapes {sorted(shapes)} for {len(knots)} knots; "
                "expected one for each, all of the same shape."
            )
        dtype = np.result_type(*(m.weights.dtype for m in models))
        double = jax.tree.map(lambda *x: np.stack([np.asarray(i, np.float64) for i in x]), *models)
        # NumPy arrays: JAX ones would be single precision unless the caller has asked for double.
        first = jax.tree.map(lambda x: x[:-1].astype(dtype), double)
        change = jax.tree.map(lambda x: np.diff(x, axis=0).astype(dtype), double)
        return cls(knots, first, change)

    def segment(self, beta: Scalar) -> jax.Array:
        """Return the number of the segment in which ``beta`` lies."""
        inside = jnp.searchsorted(jnp.asarray(self.knots), beta, side="right") - 1
        return jnp.clip(inside, 0, len(self.knots) - 2)

    def share(self, segment: jax.Array, beta: Scalar, like: jax.Array) -> jax.Array:
        """Return how far along a segment ``beta`` lies."""
        knots = jnp.asarray(self.knots)
        return _cast((beta - knots[segment]) / (knots[segment + 1] - knots[segment]), like)

    def evaluate(self, position: jax.Array) -> SplineTerms:
        """Return the terms of ``n`` configurations on the first segment."""
        return self._evaluate(position, jnp.zeros((), jnp.int32))

    def _evaluate(self, position: jax.Array, segment: jax.Array) -> SplineTerms:
        start, change = (jax.tree.map(lambda x: x[segment], m) for m in (self.start, self.change))
        return SplineTerms(
            position=position,
            segment=segment.astype(jnp.int32),
            base=_dot(position, start.visible_bias),
            linear=_dot(position, change.visible_bias),
            field=start.hidden_bias + position @ start.weights,
            slope=change.hidden_bias + position @ change.weights,
        )

    def evaluate_at(self, position: jax.Array, beta: Scalar) -> SplineTerms:
        """Return the terms on the segment of ``beta``."""
        return self._evaluate(position, self.segment(beta))

    def at(self, terms: SplineTerms, beta: Scalar) -> SplineTerms:
        """Return the terms on the segment of ``beta``; products only where it is another one."""
        return self._moved(terms, self.segment(beta))

    def _moved(self, terms: SplineTerms, segment: jax.Array) -> SplineTerms:
        return jax.lax.cond(
            terms.segment == segment,
            lambda: terms,
            lambda: self._evaluate(terms.position, segment),
        )

    def log_density(self, terms: SplineTerms, beta: Scalar) -> jax.Array:
        """Return ``log f_beta``, shape ``(n,)``."""
        terms = self._moved(terms, self.segment(beta))
        share = self.share(terms.segment, beta, terms.field)
        hidden = jnp.logaddexp(0, terms.field + share * terms.slope).sum(axis=-1)
        return terms.base + share * terms.linear + hidden

    def log_ratio(self, terms: SplineTerms, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``log f_stop - log f_start``, shape ``(n,)``, segment by segment."""
        knots = jnp.asarray(self.knots)
        sign = jnp.where(stop < start, -1, 1).astype(terms.base.dtype)
        start, stop = jnp.minimum(start, stop), jnp.maximum(start, stop)
        first, last = self.segment(start), self.segment(stop)

        def piece(carry):
            segment, terms, total = carry
            terms = self._moved(terms, segment)
            low = jnp.maximum(start, knots[segment])
            high = jnp.minimum(stop, knots[segment + 1])
            return segment + 1, terms, total + self._within(terms, low, high)

        zero = jnp.zeros(terms.base.shape, terms.base.dtype)
        carry = piece((first, terms, zero))
        return sign * jax.lax.while_loop(lambda c: c[0] <= last, piece, carry)[2]

    def _within(self, terms: SplineTerms, low: jax.Array, high: jax.Array) -> jax.Array:
        knots = jnp.asarray(self.knots)
        share = self.share(terms.segment, low, terms.field)
        width = knots[terms.segment + 1] - knots[terms.segment]
        step = _cast((high - low) / width, terms.field)
        field = terms.field + share * terms.slope
        return step * terms.linear + softplus_increment(field, step * terms.slope).sum(axis=-1)

    def velocity(self, terms: SplineTerms, beta: Scalar) -> jax.Array:
        """Return the derivative of ``log f_beta`` with respect to ``beta``, shape ``(n,)``."""
        terms = self._moved(terms, self.segment(beta))
        knots = jnp.asarray(self.knots)
        width = _cast(knots[terms.segment + 1] - knots[terms.segment], terms.field)
        hidden = jax.nn.sigmoid(self.hidden_field(terms, beta))
        return (terms.linear + (hidden * terms.slope).sum(axis=-1)) / width

    def hidden_field(self, terms: SplineTerms, beta: Scalar) -> jax.Array:
        """Return the log odds of the hidden units; the terms must be those of ``beta``."""
        return terms.field + self.share(terms.segment, beta, terms.field) * terms.slope

    def visible_field(self, hidden: jax.Array, beta: Scalar) -> jax.Array:
        """Return the log odds of the visible units, shape ``(n, n_visible)``."""
        model = self.model_at(beta)
        return model.visible_bias + hidden @ model.weights.T

    def model_at(self, beta: Scalar) -> RBM:
        """Return the machine at ``beta``."""
        segment = self.segment(beta)
        share = self.share(segment, beta, self.start.weights)
        return jax.tree.map(lambda s, c: s[segment] + share * c[segment], self.start, self.change)


def _dot(position: jax.Array, bias: jax.Array) -> jax.Array:
    """``bias.v`` of every row: a fused sum, several times faster than XLA's product on the CPU."""
    return (position * bias).sum(axis=-1)


def _cast(value: Scalar, like: jax.Array) -> jax.Array:
    """Return a temperature, computed in double precision, in the type of the machine."""
    return jnp.asarray(value).astype(like.dtype)

"""Paths of restricted Boltzmann machines, hidden units summed out: contract and geometric path.

The geometric path starts at a reference of independent units (``W = 0``, ``b = 0``, visible bias
``a_0``):

    log f_beta(v) = ((1 - beta) a_0 + beta a).v + sum_j softplus(beta (b_j + (v W)_j)),

so that one matrix product ``v W`` serves both the weight and the next hidden units.

Increments of the log density are computed from ``e^d - 1``, with ``d`` the increment of each
unit's field, not as differences of log densities: a hundred thousand of them add up in single
precision without loss.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.contracts import Path, PyTree, Scalar
from pymc_anneal.rbm.model import RBM
from pymc_anneal.rbm.products import binary_product, product_with_biases


def softplus_increment(x: jax.Array, d: jax.Array) -> jax.Array:
    """Return ``softplus(x + d) - softplus(x)`` to the relative precision of ``d``.

    If ``|d| < 1``, it is ``log(1 + sigmoid(x) (e^d - 1))`` from the lower end, where nothing
    cancels; for larger steps ``e^d`` may overflow, and the difference is precise enough.

    Parameters
    ----------
    x, d : Array, shapes that broadcast
        A field and its increment.

    Returns
    -------
    Array
        In nats.
    """
    size = jnp.abs(d)
    small = jnp.log1p(jax.nn.sigmoid(jnp.minimum(x, x + d)) * jnp.expm1(jnp.minimum(size, 1.0)))
    large = jnp.logaddexp(0, x + d) - jnp.logaddexp(0, x)
    return jnp.where(size < 1, jnp.sign(d) * small, large)


# Increments of fields up to which the series below is as precise as single precision.
_MAX_SERIES = 0.5


def sum_softplus_increments(x: jax.Array, slope: jax.Array, step: jax.Array) -> jax.Array:
    """Return the sum over units of ``softplus(x) - softplus(x - d)`` with ``d = step * slope``.

    On a CPU, functions of single precision that are exact for any increment take a third of the
    time of an annealing step; steps are small enough for a series nearly always. It takes the
    sigmoid of the field after the step, which the velocity and the hidden units need as well.

    Parameters
    ----------
    x : Array, shape (n, n_hidden)
        The field after the step.
    slope : Array, shape (n, n_hidden)
        Increment of the field in a step of 1.
    step : Array, shape ()

    Returns
    -------
    Array, shape (n,)
        In nats.
    """
    if x.dtype != jnp.float32:
        return _sum_exactly(x, slope, step)
    # On a GPU the choice would cost more than it saves.
    total: jax.Array = jax.lax.platform_dependent(
        x, slope, step, cpu=_sum_by_size, default=_sum_exactly
    )
    return total


def _sum_exactly(x: jax.Array, slope: jax.Array, step: jax.Array) -> jax.Array:
    d = step * slope
    return softplus_increment(x - d, d).sum(axis=-1)


def _sum_by_size(x: jax.Array, slope: jax.Array, step: jax.Array) -> jax.Array:
    small = jnp.abs(step) * jnp.abs(slope).max(initial=0.0) < _MAX_SERIES
    p = jax.nn.sigmoid(x)  # outside of the branch, so that others can share it
    total: jax.Array = jax.lax.cond(
        small, lambda: _sum_by_series(p, slope, step), lambda: _sum_exactly(x, slope, step)
    )
    return total


def _sum_by_series(p: jax.Array, slope: jax.Array, step: jax.Array) -> jax.Array:
    increment = softplus_increment_by_series(p, step * slope)
    # Fused with the sum, XLA evaluates the series four times as slowly.
    apart: jax.Array = jax.lax.optimization_barrier(increment)  # type: ignore[no-untyped-call]
    return apart.sum(axis=-1)


def softplus_increment_by_series(p: jax.Array, d: jax.Array) -> jax.Array:
    """Return ``softplus(x) - softplus(x - d)`` in single precision, for ``|d|`` of at most 1/2.

    With ``p = sigmoid(x)`` and ``y = p (e^-d - 1)`` it is ``-log(1 + y) = -2 artanh(y / (2 + y))``;
    ``e^-d - 1`` and ``artanh`` by their Taylor series.
    """
    growth = -d * _horner(-d, [1 / factorial(k) for k in range(1, 9)])
    y = p * growth
    z = y / (2 + y)
    return -2 * z * _horner(z * z, [1 / k for k in range(1, 11, 2)])


def _horner(x: jax.Array, coefficients: Sequence[float]) -> jax.Array:
    """Return the polynomial with the given coefficients, the constant one first."""
    value = jnp.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient
    return value


@runtime_checkable
class RBMPath(Path, Protocol):
    """A path of RBMs, hidden units summed out; positions are visible units, ``(n, n_visible)``.

    Derive paths from this class. `model_at`, `hidden_field` and the four methods of `Path`
    (`evaluate`, `log_density`, `log_ratio`, `velocity`) have to be written; the other methods have
    defaults. A path is a frozen dataclass registered by :func:`jax.tree_util.register_dataclass`.
    """

    @abstractmethod
    def model_at(self, beta: Scalar) -> RBM:
        """Return the RBM at ``beta``; at 0 it is the reference, at 1 the target."""

    @abstractmethod
    def hidden_field(self, terms: PyTree, beta: Scalar) -> jax.Array:
        """Return the log odds of the hidden units, shape ``(n, n_hidden)``.

        Parameters
        ----------
        terms
            As `at` or `evaluate_at` return them at ``beta``.
        beta
        """

    def visible_field(self, hidden: jax.Array, beta: Scalar) -> jax.Array:
        """Return the log odds of the visible units, shape ``(n, n_visible)``.

        Parameters
        ----------
        hidden : Array, shape (n, n_hidden)
        beta
        """
        model = self.model_at(beta)
        return binary_product(hidden, model.weights.T) + model.visible_bias

    def evaluate_at(self, position: jax.Array, beta: Scalar) -> PyTree:
        """Return the terms at ``n`` positions, as `at` returns them; by default `evaluate`."""
        return self.evaluate(position)

    def at(self, terms: PyTree, beta: Scalar) -> PyTree:
        """Return the terms in the form that is fastest at ``beta``; by default unchanged.

        Terms of any form are valid at every ``beta``, except in `hidden_field`.
        """
        return terms


def as_type_of(value: Scalar, like: jax.Array | np.ndarray) -> jax.Array:
    """Return a temperature, computed in double precision, in the floating type of the RBM."""
    return jnp.asarray(value).astype(like.dtype)


class GeometricTerms(NamedTuple):
    """Terms of a geometric path, the same at every temperature.

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
class GeometricRBMPath(RBMPath):
    """Geometric path from independent visible units to an RBM.

    Parameters
    ----------
    reference_bias : Array, shape (n_visible,)
        ``a_0``. The hidden units of the reference are Bernoulli(1/2).
    model : RBM
        The target.
    """

    reference_bias: np.ndarray
    model: RBM

    def evaluate(self, position: jax.Array) -> GeometricTerms:
        """Return the terms of configurations of shape ``(n, n_visible)``."""
        change = self.model.visible_bias - self.reference_bias
        field, base, linear = product_with_biases(
            position, self.model.weights, self.reference_bias, change
        )
        return GeometricTerms(base, linear, field + self.model.hidden_bias)

    def log_density(self, terms: GeometricTerms, beta: Scalar) -> jax.Array:
        """Return ``log f_beta``, shape ``(n,)``, in nats."""
        share = as_type_of(beta, terms.field)
        hidden = jnp.logaddexp(0, share * terms.field).sum(axis=-1)
        return terms.base + share * terms.linear + hidden

    def log_ratio(self, terms: GeometricTerms, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``log f_stop - log f_start``, shape ``(n,)``, in nats."""
        step, stop = as_type_of(stop - start, terms.field), as_type_of(stop, terms.field)
        hidden = sum_softplus_increments(stop * terms.field, terms.field, step)
        return step * terms.linear + hidden

    def velocity(self, terms: GeometricTerms, beta: Scalar) -> jax.Array:
        """Return ``(a - a_0).v + sum_j sigmoid(beta x_j) x_j`` with ``x = b + v W``, ``(n,)``."""
        hidden = jax.nn.sigmoid(self.hidden_field(terms, beta))
        return terms.linear + (hidden * terms.field).sum(axis=-1)

    def hidden_field(self, terms: GeometricTerms, beta: Scalar) -> jax.Array:
        """Return the log odds of the hidden units, shape ``(n, n_hidden)``."""
        return as_type_of(beta, terms.field) * terms.field

    def visible_field(self, hidden: jax.Array, beta: Scalar) -> jax.Array:
        """Return the log odds of the visible units, shape ``(n, n_visible)``."""
        share = as_type_of(beta, hidden)
        return self._visible_bias(share) + share * binary_product(hidden, self.model.weights.T)

    def model_at(self, beta: Scalar) -> RBM:
        """Return the RBM at ``beta``."""
        model, share = self.model, as_type_of(beta, self.model.weights)
        return RBM.from_jax(
            self._visible_bias(share), share * model.hidden_bias, share * model.weights
        )

    def _visible_bias(self, share: jax.Array) -> jax.Array:
        return (1 - share) * self.reference_bias + share * self.model.visible_bias

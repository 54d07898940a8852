"""Largest entries and log-sum-exp, with derivatives that compare no value with a recomputed one.

JAX differentiates ``m = max(x)`` as ``sum_i [x_i = m] dx_i / sum_i [x_i = m]``. XLA may compute the
``x_i`` of the comparison anew, rounded differently from those of the maximum; then none is equal,
and the derivative is 0/0. Here the entry is the one that `argmax` names. The derivative of

    log sum_i exp(x_i) = m + log sum_i exp(x_i - m)

does not depend on ``m``, which is a constant for it: two thirds of the time, and no comparison.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.scalar.basic import Exp, Log
from pytensor.tensor import special
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Max, Sum
from pytensor.tensor.type import TensorType

from pymc_anneal.model.jax_dispatch import jax_funcify
from pymc_anneal.model.underflow import scalar_op


class _Reduction(Op):  # type: ignore[misc]  # mypy does not see PyTensor's classes
    """A function of the entries along some axes, that is translated to JAX only."""

    __props__ = ("axis",)

    def __init__(self, axis: tuple[int, ...]):
        self.axis = axis

    def make_node(self, x: Variable) -> Apply:
        """Return a node whose output lacks the axes of the reduction."""
        kept = [n for i, n in enumerate(x.type.shape) if i not in self.axis]
        return Apply(self, [x], [TensorType(x.dtype, shape=kept)()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], outputs: Any) -> None:
        """Evaluate, for constants."""
        function = jax_funcify(self)
        with jax.enable_x64(True):
            outputs[0][0] = np.asarray(function(inputs[0]), node.outputs[0].dtype)


class LogSumExp(_Reduction):
    """Op that is translated to `log_sum_exp`."""


class Largest(_Reduction):
    """Maximum Op that is translated to `largest`."""


class Smallest(_Reduction):
    """Minimum Op that is translated to `smallest`."""


def log_sum_exp(x: jax.Array, axis: tuple[int, ...]) -> jax.Array:
    """Return ``log(sum(exp(x)))`` along some axes, where no exponential overflows.

    JAX's own also handles signs, and traces the derivative of the maximum before it drops it.
    """
    shift = jnp.max(jax.lax.stop_gradient(x), axis, keepdims=True)
    shift = jnp.where(jnp.isfinite(shift), shift, 0.0)
    return jnp.log(jnp.exp(x - shift).sum(axis)) + jnp.squeeze(shift, axis)


def largest(x: jax.Array, axis: tuple[int, ...]) -> jax.Array:
    """Return the largest entry along some axes; its derivative is that of the first such entry."""
    kept = [i for i in range(x.ndim) if i not in axis]
    rows = x.transpose(*kept, *axis).reshape(*(x.shape[i] for i in kept), -1)
    return _largest_of_row(rows)


def smallest(x: jax.Array, axis: tuple[int, ...]) -> jax.Array:
    """Return the smallest entry along some axes, as `largest`."""
    return -largest(-x, axis)


@jax.custom_jvp
def _largest_of_row(x: jax.Array) -> jax.Array:
    return x.max(axis=-1, initial=-np.inf)


@_largest_of_row.defjvp
def _differentiate(
    primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[jax.Array, jax.Array]:
    (x,), (tangent,) = primals, tangents
    first = jnp.arange(x.shape[-1]) == jnp.argmax(x, axis=-1)[..., None]
    return _largest_of_row(x), jnp.where(first, tangent, 0).sum(axis=-1)


jax_funcify.register(LogSumExp, lambda op, **kwargs: partial(log_sum_exp, axis=op.axis))
jax_funcify.register(Largest, lambda op, **kwargs: partial(largest, axis=op.axis))
jax_funcify.register(Smallest, lambda op, **kwargs: partial(smallest, axis=op.axis))


# PyTensor 3 has an Op for it, whose graph holds the maximum; PyTensor 2 writes the sum out.
OTHER_LOG_SUM_EXP: tuple[Any, ...] = tuple(filter(None, [getattr(special, "LogSumExp", None)]))


def use_log_sum_exp(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Rewrite ``log(sum(exp(x)))``, also with the axes of the sum kept."""
    if isinstance(node.op, OTHER_LOG_SUM_EXP):
        return [LogSumExp(tuple(node.op.axis))(*node.inputs)]
    if not isinstance(node.op.scalar_op, Log):
        return None
    total, kept = node.inputs[0], None
    if total.owner is not None and isinstance(total.owner.op, DimShuffle):
        kept, total = total.owner.op, total.owner.inputs[0]
    if total.owner is None or not isinstance(total.owner.op, Sum):
        return None
    terms = total.owner.inputs[0]
    if not isinstance(scalar_op(terms), Exp) or terms.owner.inputs[0].dtype != total.dtype:
        return None
    log = LogSumExp(_axes(total))(terms.owner.inputs[0])
    return [log if kept is None else kept(log)]


def use_own_extremes(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace a maximum or minimum of floating-point numbers."""
    if not node.outputs[0].dtype.startswith("float"):
        return None
    own = Largest if isinstance(node.op, Max) else Smallest
    return [own(_axes(node.outputs[0]))(*node.inputs)]


def _axes(reduced: Variable) -> tuple[int, ...]:
    """Return the axes that were reduced."""
    axis, ndim = reduced.owner.op.axis, reduced.owner.inputs[0].ndim
    return tuple(range(ndim)) if axis is None else tuple(axis)

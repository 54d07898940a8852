"""Rewrites of a PyTensor graph for its translation to JAX.

`EXACT_FORMS` run before PyTensor's own optimisation: checks on parameters become ``-inf``, as in
:func:`pymc.sample`, logarithms of values that underflow are taken of their forms
(`underflow.py`), and log-sum-exp becomes one Op (`extremes.py`). `FAST_FORMS` run after it: they
drop assertions and checks that cannot fail, and replace element-wise forms whose JAX translation is
slow by equally accurate ones:

- ``softplus(x) = max(x, 0) + log1p(exp(-|x|))`` with the logistic sigmoid as its derivative, in
  place of ``logaddexp(x, 0)``, whose guards against infinities cost five times the function;
- ``log(1 - exp(x))`` with the derivative ``-1 / expm1(-x)``, which JAX's own lacks near zero;
- ``switch(c, f(a), f(b)) = f(switch(c, a, b))``, which evaluates ``f`` once. Bernoulli and
  categorical likelihoods have this form, with ``f`` a softplus;
- Cholesky factors and triangular systems by blocks (`cholesky.py`);
- largest entries with another derivative than JAX's (`extremes.py`).

At last, branches that are not taken are made harmless for gradients (`untaken_branches.py`).
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytensor.tensor as pt

from pymc.logprob.utils import local_check_parameter_to_ninf_switch
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import GraphRewriter, in2out, node_rewriter
from pytensor.raise_op import Assert
from pytensor.scalar.basic import (
    AND,
    GE,
    LE,
    Abs,
    Add,
    Exp,
    Mul,
    ScalarOp,
    Second,
    Sqr,
    Sqrt,
    Switch,
    upgrade_to_float,
)
from pytensor.scalar.math import Log1mexp, Sigmoid, Softplus
from pytensor.tensor.basic import MakeVector
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import All, Max, Min

from pymc_anneal.model.cholesky import REPLACED, use_block_forms
from pymc_anneal.model.extremes import OTHER_LOG_SUM_EXP, use_log_sum_exp, use_own_extremes
from pymc_anneal.model.jax_dispatch import jax_funcify
from pymc_anneal.model.underflow import drop_sign_of_positive, drop_zero_guard, take_log_of_softmax
from pymc_anneal.model.untaken_branches import ProtectUntakenBranches


class FastSoftplus(Softplus):  # type: ignore[misc]  # mypy does not see PyTensor's classes
    """Softplus Op that is translated to `softplus`."""


@jax.custom_jvp
def softplus(x: jax.Array) -> jax.Array:
    """Compute ``log(1 + exp(x))``, accurate to a few units in the last place for every ``x``."""
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


softplus.defjvps(lambda tangent, _, x: tangent * jax.nn.sigmoid(x))
jax_funcify.register(FastSoftplus, lambda op, **kwargs: softplus)


class SafeLog1mexp(Log1mexp):  # type: ignore[misc]
    """Log1mexp Op that is translated to `log1mexp`."""


@jax.custom_jvp
def log1mexp(x: jax.Array) -> jax.Array:
    """Compute ``log(1 - exp(x))`` for negative ``x``."""
    return jnp.where(x < jnp.log(0.5), jnp.log1p(-jnp.exp(x)), jnp.log(-jnp.expm1(x)))


log1mexp.defjvps(lambda tangent, _, x: -tangent / jnp.expm1(-x))
jax_funcify.register(SafeLog1mexp, lambda op, **kwargs: log1mexp)


def _drop_assert(fgraph: FunctionGraph, node: Apply) -> list[Variable]:
    """Drop an assertion: compiled JAX code cannot raise, and shapes are known when it is traced."""
    return [node.inputs[0]]


def _use_own_form(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    own = {Softplus: FastSoftplus, Log1mexp: SafeLog1mexp}.get(type(node.op.scalar_op))
    if own is None:
        return None
    return [Elemwise(own(upgrade_to_float, name=own.__name__))(*node.inputs)]


def _drop_sigmoid_bound(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace ``sigmoid(x) >= 0`` and ``sigmoid(x) <= 1`` by true."""
    bound = {GE: 0, LE: 1}.get(type(node.op.scalar_op))
    if bound is None or not isinstance(_scalar_op(node.inputs[0]), Sigmoid):
        return None
    limit = getattr(node.inputs[1], "data", None)
    if limit is None or not np.all(limit == bound):
        return None
    return [pt.ones_like(node.inputs[0], dtype="bool")]


def _drop_true_check(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Drop a check that cannot fail.

    XLA finds that ``exp(x) >= 0`` holds, and then evaluates "all are true" entry by entry while it
    compiles: seconds for every million of observations times particles.
    """
    is_scalar = node.outputs[0].ndim == 0
    return [pt.constant(np.array(True))] if is_scalar and _is_true(node.inputs[0]) else None


def _move_switch_inside(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Rewrite ``switch(c, f(a), f(b))`` to ``f(switch(c, a, b))`` for unary ``f``."""
    if not isinstance(node.op.scalar_op, Switch):
        return None
    condition, left, right = node.inputs
    op_left, op_right = _scalar_op(left), _scalar_op(right)
    if op_left is None or op_left != op_right or len(left.owner.inputs) != 1:
        return None
    return [left.owner.op(pt.switch(condition, left.owner.inputs[0], right.owner.inputs[0]))]


def _is_true(variable: Variable) -> bool:
    """Whether a condition is certain to hold everywhere."""
    if isinstance(variable, Constant):
        return bool(np.all(variable.data))
    if variable.owner is None:
        return False
    inputs, op, scalar = variable.owner.inputs, variable.owner.op, _scalar_op(variable)
    if isinstance(scalar, Second):
        return _is_true(inputs[1])
    if isinstance(scalar, GE):
        value, bound = inputs
        below = isinstance(bound, Constant) and bool(np.all(bound.data <= 0))
        return below and _is_nonnegative(value)
    if isinstance(op, All | DimShuffle | MakeVector) or isinstance(scalar, AND):
        return all(map(_is_true, inputs))
    return False


def _is_nonnegative(variable: Variable) -> bool:
    """Whether every value of a variable is certain to be nonnegative or NaN."""
    if isinstance(variable, Constant):
        return bool(np.all(variable.data >= 0))
    if variable.owner is None:
        return False
    inputs, scalar = variable.owner.inputs, _scalar_op(variable)
    if isinstance(variable.owner.op, DimShuffle):
        return _is_nonnegative(inputs[0])
    if isinstance(scalar, Switch):
        return all(map(_is_nonnegative, inputs[1:]))
    if isinstance(scalar, Add):
        return all(map(_is_nonnegative, inputs))
    if isinstance(scalar, Mul):
        return _is_nonnegative_product(inputs)
    return isinstance(scalar, Abs | Exp | Sigmoid | Softplus | Sqr | Sqrt)


def _is_nonnegative_product(factors: list[Variable]) -> bool:
    """Whether the factors are positive constants and one nonnegative variable.

    No other product counts: 0 times infinity is NaN, which a check would catch.
    """
    variables = [v for v in factors if not isinstance(v, Constant)]
    least = np.array([np.min(v.data) for v in factors if isinstance(v, Constant)])
    positive = bool(np.all(least > 0) and np.all(np.isfinite(least)))
    return positive and len(variables) == 1 and _is_nonnegative(variables[0])


def _scalar_op(variable: Variable) -> ScalarOp | None:
    """Return the scalar Op of an element-wise variable."""
    owner = variable.owner
    return owner.op.scalar_op if owner is not None and isinstance(owner.op, Elemwise) else None


def _everywhere(rewrite: Callable[[FunctionGraph, Apply], Any], *ops: type) -> GraphRewriter:
    """Return the rewrite of a graph that applies a function to every node of some Ops."""
    return in2out(node_rewriter(ops)(rewrite), name=rewrite.__name__)


EXACT_FORMS: tuple[GraphRewriter, ...] = (
    in2out(local_check_parameter_to_ninf_switch, name="checks_to_ninf"),
    _everywhere(take_log_of_softmax, Elemwise),
    _everywhere(drop_zero_guard, Elemwise),
    _everywhere(drop_sign_of_positive, Elemwise),
    _everywhere(use_log_sum_exp, Elemwise, *OTHER_LOG_SUM_EXP),
)

FAST_FORMS: tuple[GraphRewriter, ...] = (
    _everywhere(_drop_assert, Assert),
    _everywhere(_use_own_form, Elemwise),
    _everywhere(_drop_sigmoid_bound, Elemwise),
    _everywhere(_drop_true_check, All),
    _everywhere(use_block_forms, *REPLACED),
    _everywhere(use_own_extremes, Max, Min),
    # Twice: each pass moves a switch inside one Op, and -softplus(.) is two Ops deep.
    _everywhere(_move_switch_inside, Elemwise),
    _everywhere(_move_switch_inside, Elemwise),
    ProtectUntakenBranches(),
)

"""Rewrites of a PyTensor graph for its translation to JAX.

Checks on parameters become ``-inf`` as in :func:`pymc.sample`, checks that can never fail are
dropped, and a few element-wise forms whose JAX translation is slow are exchanged for equally
accurate ones:

- ``softplus(x) = max(x, 0) + log1p(exp(-|x|))`` with the logistic sigmoid as its derivative, in
  place of ``logaddexp(x, 0)``, whose guards against infinities cost five times the function;
- ``switch(c, f(a), f(b)) = f(switch(c, a, b))``, which evaluates ``f`` once. Bernoulli and
  categorical likelihoods have this form, with ``f`` a softplus.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytensor.tensor as pt

from pymc.logprob.utils import local_check_parameter_to_ninf_switch
from pytensor.graph.basic import Constant, Variable
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
from pytensor.scalar.math import Sigmoid, Softplus
from pytensor.tensor.basic import MakeVector
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import All

from pymc_anneal.model.jax_dispatch import jax_funcify


class FastSoftplus(Softplus):
    """Softplus with a JAX form of its own (see the module's docstring)."""


@jax.custom_jvp
def softplus(x: jax.Array) -> jax.Array:
    """``log(1 + exp(x))``, accurate to a few units in the last place for every ``x``."""
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


softplus.defjvps(lambda tangent, _, x: tangent / (1 + jnp.exp(-x)))


@jax_funcify.register(FastSoftplus)
def _jax_softplus(op, **kwargs):
    return softplus


def _scalar_op(variable: Variable) -> ScalarOp | None:
    """Return the scalar Op of an element-wise variable."""
    owner = variable.owner
    return owner.op.scalar_op if owner is not None and isinstance(owner.op, Elemwise) else None


@node_rewriter([Elemwise])
def _fast_softplus(fgraph, node):
    if type(node.op.scalar_op) is not Softplus:
        return None
    return [Elemwise(FastSoftplus(upgrade_to_float, name="fast_softplus"))(*node.inputs)]


@node_rewriter([Elemwise])
def _sigmoid_within_unit_interval(fgraph, node):
    """Replace ``sigmoid(x) >= 0`` and ``sigmoid(x) <= 1`` by true."""
    bound = {GE: 0, LE: 1}.get(type(node.op.scalar_op))
    if bound is None or not isinstance(_scalar_op(node.inputs[0]), Sigmoid):
        return None
    limit = getattr(node.inputs[1], "data", None)
    if limit is None or not np.all(limit == bound):
        return None
    return [pt.ones_like(node.inputs[0], dtype="bool")]


_NEVER_NEGATIVE = (Abs, Exp, Sigmoid, Softplus, Sqr, Sqrt)


def _never_negative(variable: Variable) -> bool:
    """Whether every value of a variable is certain to be 0 or more, or NaN."""
    if isinstance(variable, Constant):
        return bool(np.all(variable.data >= 0))
    if variable.owner is None:
        return False
    inputs, op = variable.owner.inputs, variable.owner.op
    if isinstance(op, DimShuffle):
        return _never_negative(inputs[0])
    scalar = _scalar_op(variable)
    if isinstance(scalar, Switch):
        return all(map(_never_negative, inputs[1:]))
    if isinstance(scalar, Add):
        return all(map(_never_negative, inputs))
    if isinstance(scalar, Mul):
        # By positive numbers only: 0 times infinity is NaN, which a check would catch.
        factors = [v for v in inputs if not isinstance(v, Constant)]
        numbers = np.array([np.min(v.data) for v in inputs if isinstance(v, Constant)])
        positive = bool(np.all(numbers > 0) and np.all(np.isfinite(numbers)))
        return positive and len(factors) == 1 and _never_negative(factors[0])
    return isinstance(scalar, _NEVER_NEGATIVE)


def _certain(variable: Variable) -> bool:
    """Whether a check is certain to hold everywhere."""
    if isinstance(variable, Constant):
        return bool(np.all(variable.data))
    if variable.owner is None:
        return False
    inputs, op, scalar = variable.owner.inputs, variable.owner.op, _scalar_op(variable)
    if isinstance(scalar, Second):
        return _certain(inputs[1])
    if isinstance(scalar, GE):
        value, bound = inputs
        below = isinstance(bound, Constant) and bool(np.all(bound.data <= 0))
        return below and _never_negative(value)
    if isinstance(op, All | DimShuffle | MakeVector) or isinstance(scalar, AND):
        return all(map(_certain, inputs))
    return False


@node_rewriter([All])
def _certain_check(fgraph, node):
    """Drop a check that cannot fail.

    XLA finds that ``exp(x) >= 0`` holds, and then evaluates "all are true" while it compiles, entry
    by entry: seconds for every million of observations times particles.
    """
    out = node.outputs[0]
    return [pt.constant(np.array(True))] if out.ndim == 0 and _certain(node.inputs[0]) else None


@node_rewriter([Elemwise])
def _switch_inside(fgraph, node):
    """Rewrite ``switch(c, f(a), f(b))`` to ``f(switch(c, a, b))`` for unary ``f``."""
    if not isinstance(node.op.scalar_op, Switch):
        return None
    condition, left, right = node.inputs
    op_left, op_right = _scalar_op(left), _scalar_op(right)
    if op_left is None or op_left != op_right or len(left.owner.inputs) != 1:
        return None
    return [left.owner.op(pt.switch(condition, left.owner.inputs[0], right.owner.inputs[0]))]


@node_rewriter([Assert])
def _drop_assert(fgraph, node):
    """JAX cannot raise from compiled code; what PyTensor asserts are shapes, known here."""
    return [node.inputs[0]]


CHECKS: tuple[GraphRewriter, ...] = (
    in2out(local_check_parameter_to_ninf_switch, name="checks_to_ninf"),
)


FAST_FORMS: tuple[GraphRewriter, ...] = (
    in2out(_drop_assert, name="drop_assert"),
    in2out(_fast_softplus, name="fast_softplus"),
    in2out(_sigmoid_within_unit_interval, name="sigmoid_checks"),
    in2out(_certain_check, name="certain_checks"),
    # From the outputs inwards, twice: -softplus(.) is two unary Ops deep.
    in2out(_switch_inside, name="switch_inside"),
    in2out(_switch_inside, name="switch_inside_again"),
)

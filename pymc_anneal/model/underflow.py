"""Rewrites of densities whose arguments underflow while their logarithms are ordinary numbers.

A probability ``p_k = exp(z_k) / sum(exp(z))``, the form of a simplex transform and of a softmax, is
zero in floating point if ``z_k`` lies 745 below the largest. Its logarithm is then taken of the
form, ``log p_k = z_k - log(sum(exp(z)))``. Guards of the kind "minus infinity if ``x = 0``", or
"unless ``x > 0``", around a logarithm whose argument is positive by its form, are dropped: they
would cut the tail off. So are the signs of such arguments.
"""

import numpy as np
import pytensor.tensor as pt

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import EQ, GT, Exp, Log, Sign, Sub, Switch, TrueDiv
from pytensor.scalar.math import Sigmoid, Softplus
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

_VIEWS = (DimShuffle, Subtensor, AdvancedSubtensor)


def take_log_of_softmax(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Rewrite ``log(exp(z) / s)`` to ``z - log(s)``, also if entries are taken in between."""
    if not isinstance(node.op.scalar_op, Log):
        return None
    log = _log_softmax(node.inputs[0])
    return None if log is None or log.type != node.outputs[0].type else [log]


def drop_zero_guard(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Rewrite ``switch(x = 0, a, b)`` to ``b`` for an ``x`` that is zero only by underflow.

    And ``switch(x > 0, b, a)``. PyMC 5 has the first in powers, both lines have the second in the
    density of a log-normal variable.
    """
    if not isinstance(node.op.scalar_op, Switch):
        return None
    condition, first, second = node.inputs
    if not isinstance(scalar_op(condition), EQ | GT):
        return None
    value, bound = condition.owner.inputs
    if not (_is_constant(bound, 0) and _is_positive(value)):
        return None
    kept = second if isinstance(scalar_op(condition), EQ) else first
    return [kept] if kept.type == node.outputs[0].type else None


def drop_sign_of_positive(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Rewrite ``sign(x)`` to 1 for an ``x`` that is zero only by underflow.

    PyMC's standard deviation of a precision is ``sign(tau) / sqrt(abs(tau))``: 0/0 in place of
    infinity.
    """
    if not (isinstance(node.op.scalar_op, Sign) and _is_positive(node.inputs[0])):
        return None
    return [pt.ones_like(node.inputs[0])]


def scalar_op(variable: Variable) -> object:
    """Return the scalar Op of an element-wise variable, None of another one."""
    owner = variable.owner
    return owner.op.scalar_op if owner is not None and isinstance(owner.op, Elemwise) else None


def _log_softmax(variable: Variable) -> Variable | None:
    """Return ``z - log(s)`` of ``exp(z) / s``, or None for other forms."""
    if isinstance(scalar_op(variable), TrueDiv):
        numerator, denominator = variable.owner.inputs
        if isinstance(scalar_op(numerator), Exp):
            return numerator.owner.inputs[0] - pt.log(denominator)
    if variable.owner is not None and isinstance(variable.owner.op, _VIEWS):
        whole, *entries = variable.owner.inputs
        log = _log_softmax(whole)
        return None if log is None else variable.owner.op(log, *entries)
    return None


def _is_positive(variable: Variable) -> bool:
    """Whether a value is positive by its form, and its logarithm is computed from the form."""
    if variable.owner is None:
        return False
    op, inputs = scalar_op(variable), variable.owner.inputs
    if isinstance(variable.owner.op, _VIEWS):
        return _is_positive(inputs[0])
    if isinstance(op, Sub):
        return _is_constant(inputs[0], 1) and isinstance(scalar_op(inputs[1]), Sigmoid)
    return isinstance(op, Exp | Sigmoid | Softplus) or _log_softmax(variable) is not None


def _is_constant(variable: Variable, value: float) -> bool:
    """Whether all entries of a variable are a given constant."""
    if isinstance(variable, Constant):
        return bool(np.all(variable.data == value))
    owner = variable.owner
    return (
        owner is not None
        and isinstance(owner.op, DimShuffle)
        and _is_constant(owner.inputs[0], value)
    )

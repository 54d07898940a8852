"""How far positions are from where the likelihood is not zero, as far as the graph tells.

A log likelihood that is minus infinity under a condition,

    switch(a <= x, ..., -inf),

is the end of a stretch: ``max(a - x, 0)`` is zero where the condition holds, and elsewhere says how
much is lacking (the limit state function of subset simulation, Au & Beck 2001). Conditions that
have to hold together add up, of alternatives the nearest counts. It is a guide and no more: what it
leads to has to have a likelihood.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pytensor.graph.basic import Constant, Variable
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar import basic as scalar
from pytensor.tensor.basic import Alloc, Join, MakeVector
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import All, Any, Sum

from pymc_anneal.model.underflow import scalar_op

# Ops that leave the zeros of a density where they are.
_PASSED = Alloc | CheckAndRaise | DimShuffle | Sum


class _UnknownConditionError(Exception):
    """A condition of a form that has no distance."""


def violation_graph(model: pm.Model) -> Variable | None:
    """Return what is lacking until the likelihood is not zero, a scalar graph of the values.

    None if no condition of the likelihood has a known form.
    """
    found = []
    for condition, holds in _conditions(model.datalogp):
        try:
            found.append(pt.sum(_distance(condition, holds)))
        except _UnknownConditionError:
            continue
    return sum(found[1:], found[0]).astype("float64") if found else None


def _conditions(term: Variable) -> Iterator[tuple[Variable, bool]]:
    """Yield the conditions of a sum of log densities, and whether they have to hold."""
    node, op = term.owner, scalar_op(term)
    if node is None:
        return
    if isinstance(op, scalar.Switch):
        condition, yes, no = node.inputs
        if _is_zero_density(no) or _is_zero_density(yes):
            holds = _is_zero_density(no)
            yield condition, holds
            yield from _conditions(yes if holds else no)
    elif isinstance(op, scalar.Add) or isinstance(node.op, Join | MakeVector):
        for part in node.inputs:
            yield from _conditions(part)
    elif isinstance(op, scalar.Cast) or isinstance(node.op, _PASSED):
        yield from _conditions(node.inputs[0])


def _is_zero_density(term: Variable) -> bool:
    while term.owner is not None and isinstance(term.owner.op, DimShuffle):
        term = term.owner.inputs[0]
    return isinstance(term, Constant) and bool(np.all(np.isneginf(term.data)))


def _distance(condition: Variable, holds: bool) -> Variable:
    """Return how far a condition is from being true, or false."""
    node, op = condition.owner, scalar_op(condition)
    if node is None:
        raise _UnknownConditionError
    each: Callable[[Variable], Variable] = lambda v: _distance(v, holds)  # noqa: E731
    if isinstance(op, scalar.Invert):
        return _distance(node.inputs[0], not holds)
    if isinstance(op, scalar.LE | scalar.LT | scalar.GE | scalar.GT):
        low, high = node.inputs
        rising = isinstance(op, scalar.LE | scalar.LT) == holds
        return pt.maximum(low - high if rising else high - low, 0.0)
    if isinstance(op, scalar.AND | scalar.OR):
        first, second = map(each, node.inputs)
        together = isinstance(op, scalar.AND) == holds
        return first + second if together else pt.minimum(first, second)
    if isinstance(node.op, All | Any):
        inner, together = each(node.inputs[0]), isinstance(node.op, All) == holds
        return pt.sum(inner, node.op.axis) if together else pt.min(inner, node.op.axis)
    if isinstance(node.op, DimShuffle):
        return node.op(each(node.inputs[0]))
    raise _UnknownConditionError

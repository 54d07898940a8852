"""Checks of parameters, entry by entry.

PyMC makes a whole array of log densities -inf if any parameter is out of its range, by one number
``all(condition)``. The sum is the same if each condition makes the entries -inf to which it belongs
by its shape, and then depends on fewer variables.
"""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt

from pymc.logprob.utils import CheckParameterValue
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.basic import MakeVector, ScalarFromTensor
from pytensor.tensor.math import All


def checked_entry_by_entry(
    inputs: Sequence[Variable], outputs: Sequence[Variable]
) -> tuple[list[Variable], list[Variable]]:
    """Replace checks of all parameters of an array by checks of those of an entry.

    Sums over entries are the same as before wherever these are numbers.
    """
    graph = FunctionGraph(list(inputs), list(outputs), clone=True)
    for node in graph.toposort():
        if isinstance(node.op, CheckParameterValue) and node.op.can_be_replaced_by_ninf:
            graph.replace(node.outputs[0], _checked(*node.inputs), import_missing=True)
    return list(graph.inputs), list(graph.outputs)


def _checked(value: Variable, *checks: Variable) -> Variable:
    conditions = [c for check in checks for c in _conditions(check)]
    for condition in conditions:
        fitting = _fit(condition, value)
        value = pt.switch(fitting, value, -np.inf).astype(value.dtype)
    return value


def _conditions(check: Variable) -> list[Variable]:
    """Return the arrays of which a check is that all are true."""
    owner = check.owner
    if owner is not None and isinstance(owner.op, ScalarFromTensor):
        return _conditions(owner.inputs[0])
    if owner is None or not isinstance(owner.op, All):
        return [pt.as_tensor_variable(check)]
    (inner,) = owner.inputs
    if inner.owner is not None and isinstance(inner.owner.op, MakeVector):
        return [c for part in inner.owner.inputs for c in _conditions(part)]
    return [inner]


def _fit(condition: Variable, value: Variable) -> Variable:
    """Return a condition in a shape that does not enlarge a value: each part of it counts.

    Lengths that are not known before the program runs are taken to be those of the value.
    """
    while condition.ndim > value.ndim:  # parameters of several entries for a value, as of a simplex
        condition = pt.all(condition, axis=-1)
    pairs = zip(reversed(condition.type.shape), reversed(value.type.shape), strict=False)
    same = all(a in (1, b) or a is None or b is None for a, b in pairs)
    return condition if same else pt.all(condition)

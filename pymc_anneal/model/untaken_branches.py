"""Gradients of ``switch(c, a, b)`` that are finite wherever the branch that is taken is.

The derivative of the branch that is not taken is multiplied by zero, and zero times infinity is
NaN: a logarithm of zero or an overflow there spoils the gradient. JAX's remedy is an argument that
does no harm: ``f(x)`` in the branch ``a`` becomes ``f(switch(c, x, 1/2))``, which changes no value.
PyTensor needs no such remedy: its rewrites move the zero to the outside.

Branches beside a constant of minus infinity are left as they are if the result is a term of the
log density: where they are not taken the density is zero, and its gradient is not used. Inside a
mixture they are treated too.
"""

from collections.abc import Callable

import numpy as np
import pytensor.tensor as pt

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph, Output
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.scalar.basic import (
    Abs,
    Add,
    Cast,
    Identity,
    Maximum,
    Minimum,
    Neg,
    Second,
    Sub,
    Switch,
)
from pytensor.scalar.math import Log1mexp
from pytensor.tensor.basic import Alloc, Join
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Sum
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.subtensor import AdvancedSubtensor, IncSubtensor, Subtensor

from pymc_anneal.model.underflow import scalar_op

# An argument at which elementary and special functions have finite derivatives, and exceptions.
_HARMLESS = 0.5
_EXCEPTIONS: dict[type, float] = {Log1mexp: -0.5}

# Operations whose derivative is finite at any argument.
_LINEAR = (Abs, Add, Cast, Identity, Maximum, Minimum, Neg, Second, Sub, Switch)
# Operations that make a sum of log densities.
_TERMS = (
    Alloc,
    AdvancedSubtensor,
    DimShuffle,
    IncSubtensor,
    Join,
    Reshape,
    SpecifyShape,
    Subtensor,
    Sum,
)


class ProtectUntakenBranches(GraphRewriter):  # type: ignore[misc]  # mypy does not see PyTensor
    """Rewrite of all switches of a graph, the inner ones first."""

    def apply(self, fgraph: FunctionGraph) -> None:
        """Give the functions in each branch arguments that do no harm where it is not taken."""
        for node in fgraph.toposort():
            if node in fgraph.apply_nodes and isinstance(scalar_op(node.outputs[0]), Switch):
                _protect(fgraph, node)


def _protect(fgraph: FunctionGraph, node: Apply) -> None:
    condition, *branches = node.inputs
    new = []
    for i, branch in enumerate(branches):
        other = branches[1 - i]
        if _is_minus_infinity(other) and _is_term(fgraph, node.outputs[0]):
            new.append(branch)
            continue
        guard = _guard(condition, taken=i == 0)
        new.append(_rebuild(branch, _find_exclusive(fgraph, node, i + 1), guard))
    if any(a is not b for a, b in zip(new, branches, strict=True)):
        fgraph.replace(node.outputs[0], node.op(condition, *new), import_missing=True)


def _guard(condition: Variable, taken: bool) -> Callable[[Variable, float], Variable]:
    """Return a function that replaces arguments by a constant where a branch is not taken."""

    def guard(argument: Variable, harmless: float) -> Variable:
        if isinstance(argument, Constant) and np.isfinite(argument.data).all():
            return argument
        # A smaller argument would be evaluated once for every entry of the condition.
        pairs = zip(argument.type.broadcastable, condition.type.broadcastable, strict=True)
        if not argument.type.dtype.startswith("float") or any(a and not c for a, c in pairs):
            return argument
        constant = np.array(harmless, dtype=argument.type.dtype)
        return pt.switch(condition, *((argument, constant) if taken else (constant, argument)))

    return guard


def _find_exclusive(fgraph: FunctionGraph, switch: Apply, index: int) -> list[Apply]:
    """Return the element-wise nodes that serve one branch only, in topological order."""
    exclusive: dict[Apply, None] = {}

    def serves_branch(node: Apply) -> bool:
        clients = fgraph.clients[node.outputs[0]]
        return all((n is switch and i == index) or n in exclusive for n, i in clients)

    waiting = [switch.inputs[index]]
    while waiting:
        node = waiting.pop().owner
        if node is None or node in exclusive or scalar_op(node.outputs[0]) is None:
            continue
        if serves_branch(node):
            exclusive[node] = None
            waiting.extend(node.inputs)
    # A node is found after all its clients in the branch, so that the last found comes first.
    return list(exclusive)[::-1]


def _rebuild(
    branch: Variable, nodes: list[Apply], guard: Callable[[Variable, float], Variable]
) -> Variable:
    """Return a branch with guarded arguments; the branch itself if there is nothing to guard."""
    rebuilt: dict[Variable, Variable] = {}
    for node in nodes:
        inputs = [rebuilt.get(v, v) for v in node.inputs]
        operation = node.op.scalar_op
        if not isinstance(operation, _LINEAR):
            harmless = _EXCEPTIONS.get(type(operation), _HARMLESS)
            inputs = [guard(v, harmless) for v in inputs]
        if any(a is not b for a, b in zip(inputs, node.inputs, strict=True)):
            rebuilt[node.outputs[0]] = node.op(*inputs)
    return rebuilt.get(branch, branch)


def _is_minus_infinity(variable: Variable) -> bool:
    if isinstance(variable.owner, Apply) and isinstance(variable.owner.op, DimShuffle | Alloc):
        return _is_minus_infinity(variable.owner.inputs[0])
    return isinstance(variable, Constant) and bool(np.all(np.isneginf(variable.data)))


def _is_term(fgraph: FunctionGraph, variable: Variable) -> bool:
    """Whether a value reaches the outputs as a term of a sum only."""
    for node, _ in fgraph.clients[variable]:
        if isinstance(node.op, Output):
            continue
        linear = isinstance(
            scalar_op(node.outputs[0]), Add | Cast | Identity | Second | Sub | Switch
        )
        if not (linear or isinstance(node.op, _TERMS)) or not _is_term(fgraph, node.outputs[0]):
            return False
    return True

"""Whether parameters are compared or rounded on their way to a likelihood: it may have pieces.

Between pieces it may jump, and one may be flat, where no climb leads on. Two forms of one function,
as PyMC's tails and middle of the normal, are no pieces: beside ``a = b`` both answers to ``a < b``
lead to the same values. So both are put in for one entry, with a bit more than ``b`` for ``a``.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc.logprob.transforms import LogTransform
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.basic import MergeOptimizer
from pytensor.graph.traversal import ancestors
from pytensor.scalar import basic as scalar
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.random.op import RNGConsumerOp
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.type import TensorType

from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.parents import random_parents
from pymc_anneal.model.recent import once_per_model
from pymc_anneal.model.score_transforms import GammaScore
from pymc_anneal.model.seeded_draws import Compiled, call_seeded, compile_python
from pymc_anneal.model.underflow import scalar_op

# Element-wise operations that keep reals real, and whose values jump.
_ROUNDING = scalar.Ceil | scalar.Floor | scalar.IntDiv | scalar.Mod | scalar.Sign | scalar.Trunc
_HALVES = scalar.RoundHalfAwayFromZero | scalar.RoundHalfToEven
# Draws of the prior at which answers are compared; what one draw of 50 shows is missed by 0.6 %.
_DRAWS = 256


@once_per_model
def likelihood_has_jumps(compiled: CompiledModel) -> bool:
    """Whether the likelihood of a compiled model may have pieces."""
    return may_jump(compiled.model)


def may_jump(model: pm.Model) -> bool:
    """Whether real free variables are compared or rounded on their way to a likelihood."""
    inputs = [v for rv in model.observed_RVs for v in rv.owner.inputs]
    parameters = [v for v in inputs if isinstance(v.type, TensorType)]
    outputs = [*parameters, *model.potentials]
    between = list(ancestors(outputs, blockers=model.free_RVs))
    suspects = [v for v in between if _is_step(v) and _has_real_parents(model, v)]
    steps = [v for v in suspects if not _is_sign_of_scale(model, v)]
    compared = all(isinstance(scalar_op(v), scalar.LogicalComparison) for v in steps)
    return bool(steps) and not (compared and _join_forms(model, outputs, steps))


def _has_real_parents(model: pm.Model, variable: Variable) -> bool:
    parents = random_parents(model, [variable])
    return any(rv.type.dtype.startswith("float") for rv in parents)


def _is_step(variable: Variable) -> bool:
    """Whether a variable is a step function of real inputs, by its operation."""
    node = variable.owner
    if node is None or isinstance(node.op, Shape | Shape_i | RNGConsumerOp):
        return False
    if isinstance(scalar_op(variable), _ROUNDING | _HALVES | scalar.LogicalComparison):
        return True
    real = [str(getattr(v.type, "dtype", "")).startswith("float") for v in node.inputs]
    return any(real) and np.dtype(getattr(variable.type, "dtype", float)).kind in "iub"


def _is_sign_of_scale(model: pm.Model, variable: Variable) -> bool:
    """Whether a variable is the sign of a positive free one, as where PyMC turns a precision."""
    if not isinstance(scalar_op(variable), scalar.Sign):
        return False
    (of,) = variable.owner.inputs
    while of.owner is not None and isinstance(of.owner.op, DimShuffle):
        (of,) = of.owner.inputs
    return isinstance(model.rvs_to_transforms.get(of), LogTransform | GammaScore)


def _join_forms(model: pm.Model, outputs: Sequence[Variable], steps: Sequence[Variable]) -> bool:
    """Whether both answers to each comparison lead to the same outputs beside its border."""
    # With equal nodes made one, a side is found wherever it is used.
    copy = FunctionGraph(outputs=[*outputs, *steps], clone=True)
    MergeOptimizer().rewrite(copy)
    ends, asked = copy.outputs[: len(outputs)], copy.outputs[len(outputs) :]
    sides = [[_has_real_parents(model, side) for side in v.owner.inputs] for v in steps]
    return all(
        any(_agree_at_border(ends, v, i) for i in (0, 1) if real[i])
        for v, real in zip(asked, sides, strict=True)
    )


def _agree_at_border(outputs: Sequence[Variable], asked: Variable, side: int) -> bool:
    """Compare what both answers lead to, at one entry of each draw, beside its border."""
    moved, other = asked.owner.inputs[side], asked.owner.inputs[1 - side]
    number = pt.lscalar()
    place = pt.mod(number, asked.size)
    chosen = pt.eq(pt.arange(asked.size).reshape(asked.shape), place)
    # The other's value at the chosen entry and a bit more, by which pieces differ, forms do not.
    wide = [i for i, one in enumerate(moved.type.broadcastable) if one]
    border = pt.where(chosen, other + 1e-3, 0).sum(axis=wide, keepdims=True)
    at_border = pt.where(chosen.any(axis=wide, keepdims=True), border, moved).astype(moved.dtype)
    try:
        ends = [
            clone_replace(outputs, {moved: at_border, asked: pt.where(chosen, yes, asked)})
            for yes in (np.True_, np.False_)
        ]
        return _are_equal(compile_python([number], [v for end in ends for v in end]))
    except (AssertionError, NotImplementedError, TypeError, ValueError):
        return False  # of a graph without such a form or value


def _are_equal(draw: Compiled) -> bool:
    """Whether both halves of what a function draws are equal, and all numbers once."""
    conclusive = False
    for i in range(_DRAWS):
        with np.errstate(all="ignore"):
            found = call_seeded(draw, np.uint64(i), np.asarray(i))
        half = len(found) // 2
        if not all(map(partial(np.allclose, equal_nan=True), found[:half], found[half:])):
            return False
        conclusive = conclusive or all(np.isfinite(v).all() for v in found)
    return conclusive

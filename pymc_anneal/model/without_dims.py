"""Models of ``pymc.dims`` as models of tensors.

Their variables are arrays with named axes. PyTensor lowers operations on these to operations on
tensors when it compiles; here the variables of a model are lowered as well, so that all that reads
distributions, predictors and transforms off its graph finds what it knows. Names, dimensions and
coordinates stay, and so do the densities.
"""

import copy

from collections.abc import Sequence
from typing import Any

import pymc as pm
import pytensor.tensor as pt

from pymc.distributions import transforms
from pymc.distributions.transforms import ZeroSumTransform
from pymc.logprob.transforms import Transform
from pymc.model.fgraph import ModelFreeRV, ModelNamed, ModelObservedRV, ModelVar
from pytensor.compile.mode import optdb
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.tensor.type import TensorType

from pymc_anneal.model.copy_model import copy_model
from pymc_anneal.model.notes import or_noted

# Transforms by their names.
_TWINS = {
    None: None,
    "log": transforms.log,
    "logodds": transforms.logodds,
    "circular": transforms.circular,
}
# Without what PyTensor writes out after it: PyMC's own distributions.
_LOWER = RewriteDatabaseQuery(include=["lower_xtensor"])


def without_dims(model: pm.Model, fallbacks: list[str]) -> pm.Model:
    """Return a model whose variables are tensors.

    Parameters
    ----------
    model
        The model, which is returned if it has no named axes.
    fallbacks
        Notes, to which one is added if the model stays as it is.
    """
    if not any(map(_is_named, [*model.basic_RVs, *model.deterministics, *model.potentials])):
        return model
    note = "Variables of pymc.dims are not read as tensors: {}."
    return or_noted(lambda: _copy(model), fallbacks, note) or model


def _is_named(variable: Variable) -> bool:
    """Whether the axes of a variable have names."""
    return hasattr(variable.type, "dims")


def _copy(model: pm.Model) -> pm.Model:
    """Return a copy with tensors, its free variables in the same order."""
    order = [v.name for v in model.free_RVs]
    found = copy_model(model, _lower)
    found.free_RVs.sort(key=lambda v: order.index(v.name))
    return found


def _lower(fgraph: FunctionGraph) -> None:
    """Replace the variables in the graph of a model, from the first to the last."""
    # Imported for models that did so: PyTensor 2 warns that it is experimental.
    from pytensor.xtensor.basic import xtensor_from_tensor

    outputs = list(fgraph.outputs)
    for variable in outputs:
        fgraph.add_output(variable.values if _has_twin(variable.owner) else variable)
    for _ in outputs:
        fgraph.remove_output(0)
    for node in filter(_has_twin, fgraph.toposort()):
        dims = node.outputs[0].type.dims
        fgraph.replace(
            node.outputs[0], xtensor_from_tensor(_twin(node), dims=dims), import_missing=True
        )
    optdb.query(_LOWER).rewrite(fgraph)


def _has_twin(node: Any) -> bool:
    """Whether a node is a variable with named axes; data keep theirs."""
    lasting = isinstance(node.op, ModelVar) and not isinstance(node.op, ModelNamed)
    return lasting and _is_named(node.outputs[0])


def _twin(node: Any) -> Variable:
    """Return the twin of a variable of a model."""
    op, (inner, *rest) = copy.copy(node.op), node.inputs
    tensor = inner.values
    tensor.name = node.outputs[0].name  # that of the twin with PyMC 5
    if isinstance(op, ModelFreeRV):
        rest[0] = TensorType(inner.type.dtype, rest[0].type.shape)(rest[0].name)
        op.transform = _transform(op.transform, inner.type.dims)
    elif isinstance(op, ModelObservedRV):
        rest[0] = _data(rest[0])
    twin: Variable = op(tensor, *rest)
    return twin


def _data(value: Variable) -> Variable:
    if isinstance(value, Constant):
        return pt.constant(value.data, name=value.name)
    return value.values


def _transform(given: Any, dims: Sequence[str]) -> Transform | None:
    """Return the twin of a transform of an array with these dimensions."""
    name = getattr(given, "name", None)
    if name == "interval":
        return transforms.Interval(*(float(end.data) for end in (given.lower, given.upper)))
    if name == "simplex" and given.core_dim == dims[-1]:
        return transforms.simplex
    if name == "zerosum":
        return ZeroSumTransform([dims.index(d) - len(dims) for d in given.dims])
    if name in _TWINS:
        return _TWINS[name]
    raise NotImplementedError(f"the transform '{name}' has no twin for tensors")

"""The priors of a model in words: ``mu ~ Normal(0, 2); b ~ Normal(mu, 1), shape (8,)``.

Names and parameters of the distributions are PyMC's; parameters that do not depend on other
variables are given as the numbers with which the model was compiled, ``pm.Data`` included.
"""

from collections.abc import Mapping, Sequence, Set

import numpy as np

from pytensor.compile.mode import Mode
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.type import TensorType

from pymc_anneal.model.compile import CompiledModel

# Entries of an array that are written out.
_ENTRIES = 4
# Distributions whose last parameter is the scale in PyTensor and the rate in PyMC.
_BY_SCALE = {"Gamma", "Exponential"}


def describe_priors(compiled: CompiledModel) -> str:
    """Return the priors of the free variables in words, separated by semicolons."""
    rvs, dims = compiled.model.free_RVs, compiled.coords_and_dims()[1]
    names = {v.name for v in compiled.model.unobserved_RVs}
    return "; ".join(
        f"{rv.name} ~ {_describe_or_name(compiled, rv, names)}{_describe_shape(rv, dims)}"
        for rv in rvs
    )


def _describe_or_name(compiled: CompiledModel, rv: Variable, names: Set[str]) -> str:
    try:
        return _describe(compiled, rv, names)
    except Exception:  # Of any class: a finished run is not lost for want of its description.
        return _distribution_name(rv)


def _describe(compiled: CompiledModel, rv: Variable, names: Set[str]) -> str:
    """Return the distribution of a variable with its parameters."""
    parameters = compiled.freeze(_parameters(rv))
    words = [_describe_parameter(compiled, p, names) for p in parameters]
    name = _distribution_name(rv)
    if name in _BY_SCALE:
        words[-1] = f"scale {words[-1]}"
    return f"{name}({', '.join(words)})"


def _distribution_name(rv: Variable) -> str:
    op = rv.owner.op
    name: str = getattr(op, "_print_name", (type(op).__name__,))[0]
    return name.strip("_")


def _parameters(rv: Variable) -> list[Variable]:
    try:
        found = rv.owner.op.dist_params(rv.owner)
    except Exception:  # Of any class: ops without a signature cannot tell.
        found = rv.owner.inputs
    return [p for p in found if isinstance(p.type, TensorType)]


def _describe_parameter(compiled: CompiledModel, parameter: Variable, names: Set[str]) -> str:
    """Return a number, the name of a variable, a distribution, or what the parameter depends on."""
    while parameter.owner is not None and isinstance(parameter.owner.op, DimShuffle):
        parameter = parameter.owner.inputs[0]
    if parameter.name in names:
        return str(parameter.name)
    if isinstance(parameter, Constant):
        return _describe_number(parameter.data)
    if parameter.owner is not None and hasattr(parameter.owner.op, "_print_name"):
        return _describe(compiled, parameter, names)
    parents = dict.fromkeys(v.name for v in ancestors([parameter]) if v.name in names)
    if parents:
        return f"f({', '.join(map(str, parents))})"
    return _describe_number(parameter.eval(mode=Mode("py", "fast_compile")))


def _describe_number(value: np.ndarray) -> str:
    array = np.asarray(value)
    flat = [f"{x:.4g}" for x in array.ravel()[:_ENTRIES]]
    if array.size == 1:
        return flat[0]
    if (array == array.ravel()[0]).all():
        return f"{flat[0]} in shape {array.shape}"
    return f"[{', '.join(flat)}{', ...' if array.size > _ENTRIES else ''}]"


def _describe_shape(rv: Variable, dims: Mapping[str, Sequence[str]]) -> str:
    if rv.ndim == 0:
        return ""
    if rv.name in dims:
        return f", dims ({', '.join(map(str, dims[rv.name]))})"
    return f", shape {tuple(rv.type.shape)}"

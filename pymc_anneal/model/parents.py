"""Random and known parents in the graph of a model."""

from collections.abc import Sequence

import numpy as np
import pymc as pm

from pymc.logprob.transforms import LogTransform
from pytensor.graph.basic import Variable
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.scalar import basic as scalar
from pytensor.tensor.elemwise import DimShuffle

from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.recent import once_per_model
from pymc_anneal.model.score_transforms import GammaScore
from pymc_anneal.model.underflow import scalar_op

# Element-wise operations whose values jump.
_JUMPS = scalar.LogicalComparison | scalar.Ceil | scalar.Floor | scalar.IntDiv | scalar.Sign

# Sets of PyTensor's rules; without the second an outer product with zeros of `pm.Data` stays.
_RULES = ("canonicalize", "specialize")


def random_parents(model: pm.Model, graphs: Sequence[Variable]) -> set[Variable]:
    """Return the free variables of a model on which graphs depend."""
    return set(ancestors(graphs)) & set(model.free_RVs)


def likelihood_has_parents(model: pm.Model) -> bool:
    """Whether free variables are in the graph of the likelihood; in that of a point null, none."""
    return bool(random_parents(model, [*model.observed_RVs, *model.potentials]))


@once_per_model
@double_precision
def likelihood_is_constant(compiled: CompiledModel) -> bool:
    """Whether the likelihood is known to depend on no free variable.

    Parameters of a null model may be in the graph of its likelihood and drop out of it (``0 * b``,
    ``b - b``, a mask of zeros, a branch that is never taken) once the data are put in and PyTensor
    has simplified it, in a tenth of a second to one. What no rule simplifies, as the sum of the
    entries of a simplex, is not claimed to be constant.
    """
    if not likelihood_has_parents(compiled.model):
        return True
    _, likelihood = compiled.freeze(compiled.graphs)
    simplified = rewrite_graph(likelihood, include=_RULES)
    return not set(ancestors([simplified])) & set(compiled.model.value_vars)


def likelihood_has_jumps(model: pm.Model) -> bool:
    """Whether real free variables are compared, or rounded, on their way to the likelihood."""
    parameters = [v for rv in model.observed_RVs for v in rv.owner.inputs]
    between = ancestors([*parameters, *model.potentials], blockers=model.free_RVs)
    jumps = [v for v in between if isinstance(scalar_op(v), _JUMPS)]
    parents = random_parents(model, [v for v in jumps if not _is_sign_of_scale(model, v)])
    return any(rv.type.dtype.startswith("float") for rv in parents)


def _is_sign_of_scale(model: pm.Model, variable: Variable) -> bool:
    """Whether a variable is the sign of a positive free one, as where PyMC turns a precision."""
    if not isinstance(scalar_op(variable), scalar.Sign):
        return False
    (of,) = variable.owner.inputs
    while of.owner is not None and isinstance(of.owner.op, DimShuffle):
        (of,) = of.owner.inputs
    return isinstance(model.rvs_to_transforms.get(of), LogTransform | GammaScore)


def count_data(compiled: CompiledModel) -> int:
    """Count the observed values."""
    return sum(np.size(value) for value in compiled.observed_data().values())


def known_values(
    compiled: CompiledModel, graphs: Sequence[Variable], shape: Sequence[int]
) -> list[np.ndarray] | None:
    """Evaluate graphs that depend on no free variable; None if one of them does.

    Returns
    -------
    list of ndarray, shape ``shape``, or None
    """
    if random_parents(compiled.model, graphs):
        return None
    values = [np.asarray(g.eval(), dtype=float) for g in compiled.freeze(graphs)]
    return [np.broadcast_to(v, tuple(shape)) for v in values]

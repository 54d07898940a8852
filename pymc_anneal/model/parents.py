"""Random and known parents in the graph of a model."""

from collections.abc import Sequence, Set

import numpy as np
import pymc as pm

from pytensor.graph.basic import Variable
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors

from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.recent import once_per_model

# Sets of PyTensor's rules; without the second an outer product with zeros of `pm.Data` stays.
_RULES = ("canonicalize", "specialize")


def random_parents(model: pm.Model, graphs: Sequence[Variable]) -> set[Variable]:
    """Return the free variables of a model on which graphs depend."""
    return set(ancestors(graphs)) & set(model.free_RVs)


def likelihood_has_parents(compiled: CompiledModel) -> bool:
    """Whether free variables are in the graph of the likelihood; in that of a point null, none."""
    return bool(random_parents(compiled.model, _likelihood_of(compiled)))


def _likelihood_of(compiled: CompiledModel) -> list[Variable]:
    """Return the observed variables with data, and the potentials."""
    model, data = compiled.model, compiled.observed_data()
    return [*(rv for rv in model.observed_RVs if data[rv.name].size), *model.potentials]


def likelihood_is_constant(compiled: CompiledModel) -> bool:
    """Whether the likelihood is known to depend on no free variable."""
    return not likelihood_has_parents(compiled) or not parameters_of_likelihood(compiled)


@once_per_model
@double_precision
def parameters_of_likelihood(compiled: CompiledModel) -> frozenset[str]:
    """Return the names of the free variables on which the likelihood may depend.

    Parameters of a null model may be in the graph of its likelihood and drop out of it (``0 * b``,
    ``b - b``, a mask of zeros, a branch that is never taken) once the data are put in and PyTensor
    has simplified it. What no rule simplifies, as the sum of a simplex, is not claimed.
    """
    _, likelihood = compiled.freeze(compiled.graphs)
    simplified = rewrite_graph(likelihood, include=_RULES)
    used, model = set(ancestors([simplified])), compiled.model
    pairs = zip(model.free_RVs, model.value_vars, strict=True)
    return frozenset(rv.name for rv, value in pairs if value in used)


def depends_on_some(compiled: CompiledModel, names: Set[str]) -> bool:
    """Whether the likelihood may depend on some of the free variables of these names."""
    direct = ancestors(_likelihood_of(compiled), blockers=compiled.model.free_RVs)
    maybe = names & {v.name for v in direct}  # in the graph, which takes no time
    return bool(maybe) and bool(maybe & parameters_of_likelihood(compiled))


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

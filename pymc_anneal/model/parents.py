"""Random and known parents in the graph of a model."""

from collections.abc import Sequence

import numpy as np
import pymc as pm

from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_anneal.model.compile import CompiledModel


def random_parents(model: pm.Model, graphs: Sequence[Variable]) -> set[Variable]:
    """Return the free variables of a model on which graphs depend."""
    return set(ancestors(graphs)) & set(model.free_RVs)


def likelihood_is_constant(model: pm.Model) -> bool:
    """Whether the likelihood depends on no free variable, as in a point null."""
    return not random_parents(model, [*model.observed_RVs, *model.potentials])


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

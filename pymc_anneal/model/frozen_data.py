"""The data of a model at one time: ``pm.Data``, observed values, coordinates.

A compiled model keeps the data that it was compiled with. Graphs that are compiled later take the
same values, so that ``pm.set_data`` in between cannot give densities of one data set and draws of
another.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc.backends.arviz import find_constants, find_observations
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import graph_inputs
from pytensor.tensor.random.type import RandomType


@dataclass(frozen=True)
class FrozenData:
    """Values of a model's data when it was compiled.

    Attributes
    ----------
    values : dict of SharedVariable to Constant
        Shared variables on which the model depends, generators of random numbers excepted.
    observed, constant : dict of str to ndarray
        Observed data, and values of ``pm.Data``, by name.
    coords, dims : dict
        Coordinates by dimension and dimensions by variable.
    """

    values: dict[Variable, Constant]
    observed: dict[str, np.ndarray]
    constant: dict[str, np.ndarray]
    coords: dict[str, Any]
    dims: dict[str, Any]

    @classmethod
    def of(cls, model: pm.Model) -> "FrozenData":
        """Record the present data of a model."""
        coords = {name: values for name, values in model.coords.items() if values is not None}
        dims = {name: list(named) for name, named in model.named_vars_to_dims.items()}
        observed, constant = dict(find_observations(model)), dict(find_constants(model))
        values = [*model.rvs_to_values.values(), *model.data_vars]
        graphs = [*model.basic_RVs, *model.deterministics, *model.potentials, *values]
        return cls(_present_values(graphs), observed, constant, coords, dims)

    def freeze(self, outputs: Sequence[Variable]) -> list[Variable]:
        """Replace the shared variables of graphs by the recorded values."""
        return (
            list(clone_replace(list(outputs), replace=self.values)) if self.values else [*outputs]
        )


def freeze_shared(outputs: Sequence[Variable]) -> list[Variable]:
    """Replace the shared variables of graphs (``pm.Data``) by their present values."""
    return list(clone_replace(list(outputs), replace=_present_values(outputs)))


def _present_values(outputs: Iterable[Variable]) -> dict[Variable, Constant]:
    shared = [v for v in graph_inputs(list(outputs)) if isinstance(v, SharedVariable)]
    data = [v for v in shared if not isinstance(v.type, RandomType)]
    return {v: pt.constant(v.get_value(borrow=True)) for v in data}

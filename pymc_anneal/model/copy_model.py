"""Copies of a model with data of their own: nothing of the user's is written to.

PyMC's translation of a model to a graph and back (`pymc.model.fgraph`) copies its ``pm.Data``, the
lengths of its dimensions and its generators of random numbers. Other shared variables stay those
of the user.
"""

import warnings

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pymc as pm

from pymc.model.fgraph import fgraph_from_model, model_from_fgraph
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.fg import FunctionGraph


def copy_model(
    model: pm.Model, change: Callable[[FunctionGraph], None] = lambda fgraph: None
) -> pm.Model:
    """Copy a model, its data included, with changes of the copy's graph."""
    with warnings.catch_warnings():
        # That objects of pm.gp cannot add variables to the copy, which has all that it needs.
        warnings.simplefilter("ignore", UserWarning)
        fgraph, _ = fgraph_from_model(without_initial_values(model))
    change(fgraph)
    return model_from_fgraph(fgraph, mutate_fgraph=True)


def without_initial_values(model: pm.Model) -> pm.Model:
    """Return another view of a model, without the starting points for samplers.

    Densities do not depend on them, and PyMC copies no model that has some.
    """
    view = object.__new__(type(model))  # the constructor would make an empty model
    vars(view).update(vars(model))
    view.rvs_to_initial_values = dict.fromkeys(model.rvs_to_initial_values)
    return view


def set_own_data(copy: pm.Model, model: pm.Model, values: Mapping[Any, Any]) -> None:
    """Give the data of a copy the recorded values of the model's.

    Parameters
    ----------
    copy, model
        A copy of a model, and the model.
    values : mapping of SharedVariable to Constant
        Values of the model's shared variables.

    Raises
    ------
    ValueError
        The recorded value of a shared variable that has no name in the model, and therefore no
        copy, is not its present one.
    """
    own = {v: copy.dim_lengths[name] for name, v in model.dim_lengths.items()}
    own |= {v: copy[v.name] for v in model.data_vars}
    for shared, constant in values.items():
        if isinstance(own.get(shared), SharedVariable):
            own[shared].set_value(constant.data, borrow=True)
        elif not np.array_equal(shared.get_value(borrow=True), constant.data):
            raise ValueError(
                f"The shared variable {shared.name or shared} has changed since the model was "
                "compiled. Use pm.Data, or compile the model again."
            )

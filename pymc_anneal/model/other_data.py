"""Models with other values of their ``pm.Data``, of any number of rows, and which they take."""

import warnings

from collections.abc import Mapping
from typing import Any

import numpy as np
import pymc as pm

from pymc.exceptions import ShapeError, ShapeWarning
from pymc.pytensorf import constant_fold
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable

from pymc_anneal.model.cast_data import cast_data
from pymc_anneal.model.copy_model import copy_model
from pymc_anneal.model.family import check_data_names
from pymc_anneal.model.frozen_data import freeze_shared
from pymc_anneal.model.notes import first_line
from pymc_anneal.model.without_dims import without_dims

# Values of the pm.Data of a model, by name; the rows of all of them grow together.
Data = Mapping[str, Any]


def check_fit(models: Mapping[str, pm.Model], data: Data) -> None:
    """Raise unless models take data of this number of rows.

    Raises
    ------
    ValueError
        A name is not a ``pm.Data`` of a model, a value has another number of dimensions or would
        be rounded, or the shapes of a model do not follow its data.
    """
    for label, model in models.items():
        reason = _why_not(model, data)
        # A density that fails at its own data too is none of the shapes: the run will say why.
        if reason and not _why_not(model, {}):
            shapes = {name: np.shape(values) for name, values in data.items()}
            raise ValueError(
                f"The model '{label}' does not take data of the shapes {shapes}: {reason}. Its "
                "variables have to get their lengths from the data: no `shape=` of a number and no "
                "`dims` of fixed length; give the pm.Data the same `dims`, or take "
                "`shape=data.shape[0]`."
            )


def _why_not(model: pm.Model, data: Data) -> str:
    """Return the error of a model's likelihood with these data, or ""."""
    copy = copy_with(model, data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _evaluate(without_dims(copy, []))
    except Exception as error:  # PyTensor, NumPy and parts of the user's raise errors of any class.
        return first_line(error).rstrip(" .")


def _evaluate(model: pm.Model) -> str:
    """Evaluate the likelihood at one point, and return which fixed shape is not that of its data.

    An error of any class is raised where the shapes do not go together.
    """
    values = [model.rvs_to_values[rv] for rv in model.observed_RVs]
    vars_ = [*model.observed_RVs, *model.potentials]
    terms = model.logp(vars=vars_, sum=False, jacobian=False) if vars_ else []
    evaluate = model.compile_fn(
        [*values, *terms],
        inputs=model.value_vars,
        mode=Mode("py", "fast_compile"),
        on_unused_input="ignore",
    )
    found = evaluate(model.initial_point(0))
    fixed = constant_fold(freeze_shared([rv.shape for rv in model.observed_RVs]), False)
    return next(filter(None, map(_other_shape, model.observed_RVs, fixed, found)), "")


def _other_shape(observed: Variable, fixed: Any, value: np.ndarray) -> str:
    """Say that an observed variable has a fixed shape that is not that of its data, or ""."""
    if isinstance(fixed, Variable) or tuple(fixed) == np.shape(value):
        return ""
    return f"'{observed.name}' has the fixed shape {tuple(map(int, fixed))}"


def copy_with(model: pm.Model, data: Data) -> pm.Model:
    """Return a copy of a model with other values of its ``pm.Data``, of any number of rows."""
    check_data_names(model, data)
    copy = copy_model(model)
    for name, values in data.items():
        _set_data(copy, name, cast_data(name, values, copy[name].type.dtype))
    return copy


def _set_data(model: pm.Model, name: str, values: np.ndarray) -> None:
    """Give ``pm.Data`` of a model other values, and its dimensions their lengths."""
    before = model[name].get_value(borrow=True).shape
    if len(before) != values.ndim:
        raise ValueError(
            f"Values of pm.Data '{name}' have the shape {values.shape}, expected {len(before)} "
            f"dimensions as in the model, where it is {before}."
        )
    lengths = zip(model.named_vars_to_dims.get(name) or (), before, values.shape, strict=False)
    coords = {d: range(new) for d, old, new in lengths if old != new}
    try:
        with warnings.catch_warnings():
            # That other data have the dimension too: they get their new values next.
            warnings.simplefilter("ignore", ShapeWarning)
            model.set_data(name, values, coords=coords)
    except ShapeError as error:
        raise ValueError(
            f"pm.Data '{name}' cannot have the shape {values.shape}: {first_line(error)} Declare "
            "its `dims` in the pm.Data that grows, before other variables have them."
        ) from error

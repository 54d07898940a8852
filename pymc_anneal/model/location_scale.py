"""Coordinates of location-scale variables: centred, non-centred, or between.

A variable ``x = mu + sigma e`` whose location or scale depends on other variables has the
coordinate

    z = w mu + sigma^(w - 1) (x - mu),    dx / dz = sigma^(1 - w),

with a weight ``w`` for each entry (Gorinova, Moore & Hoffman 2020): ``x`` itself at
``w = 1`` (centred), ``e`` at ``w = 0`` (non-centred). Where the data say little about ``x``, its
joint density with ``log sigma`` is a funnel and that of ``e`` is not; where they say much, it is
the other way round.

The increments of a random walk are location-scale variables. Its coordinates are the non-centred
increments, ``w = 0``, or its values, ``w = 1``, for all entries of the variable.
"""

import warnings

from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.timeseries import RandomWalkRV
from pymc.logprob.transforms import Transform
from pymc.model.transform.conditioning import change_value_transforms
from pytensor.graph.basic import Variable
from pytensor.tensor.random.basic import (
    CauchyRV,
    GumbelRV,
    LaplaceRV,
    LogisticRV,
    NormalRV,
    StudentTRV,
)

from pymc_anneal.model.compile import CompiledModel, compile_model
from pymc_anneal.model.copy_model import set_own_data, without_initial_values
from pymc_anneal.model.derivatives import SMOOTH
from pymc_anneal.model.map_rows import RowFunction, map_positions
from pymc_anneal.model.notes import first_line
from pymc_anneal.model.once_per_model import once_per_model
from pymc_anneal.model.parents import random_parents
from pymc_anneal.model.shared_program import SharedProgram
from pymc_anneal.model.variables import FreeVariable

# Distributions whose last two parameters are location and scale.
_LOCATION_SCALE = (CauchyRV, GumbelRV, LaplaceRV, LogisticRV, NormalRV, StudentTRV)
# Coordinates of a model in which it is kept compiled, the last ones.
_CAPACITY = 4


class LocationScale(Transform):  # type: ignore[misc]  # mypy does not see PyMC
    """Transform of a location-scale variable to the coordinate with weight ``w``."""

    name = "location_scale"

    def __init__(self, weight: np.ndarray):
        self._weight = pt.constant(weight)

    @property
    def weight(self) -> np.ndarray:
        """The weight of each entry."""
        return np.asarray(self._weight.data)

    def forward(self, value: Variable, *inputs: Variable) -> Variable:
        """Return the coordinate."""
        mu, sigma = self._parameters(inputs)
        return self._weight * mu + sigma ** (self._weight - 1) * (value - mu)

    def backward(self, value: Variable, *inputs: Variable) -> Variable:
        """Return the value of the variable."""
        mu, sigma = self._parameters(inputs)
        return mu + sigma ** (1 - self._weight) * (value - self._weight * mu)

    def log_jac_det(self, value: Variable, *inputs: Variable) -> Variable:
        """Return ``log dx / dz`` of each entry."""
        return (1 - self._weight) * pt.log(self._parameters(inputs)[1]) + pt.zeros_like(value)

    def _parameters(self, inputs: Sequence[Variable]) -> tuple[Variable, Variable]:
        """Return location and scale."""
        return inputs[-2], inputs[-1]


class NonCentredWalk(LocationScale):
    """Transform of random walks to non-centred increments, along the last axis."""

    name = "non_centred_walk"

    def forward(self, value: Variable, *inputs: Variable) -> Variable:
        """Return the increments."""
        return super().forward(_increments(value), *inputs)

    def backward(self, value: Variable, *inputs: Variable) -> Variable:
        """Return the values of the walk."""
        return pt.cumsum(super().backward(value, *inputs), axis=-1)

    def log_jac_det(self, value: Variable, *inputs: Variable) -> Variable:
        """Return ``log |dx / dz|`` of each walk."""
        return super().log_jac_det(value, *inputs).sum(axis=-1)

    def _parameters(self, inputs: Sequence[Variable]) -> tuple[Variable, Variable]:
        return _increment_parameters(inputs, self._weight.type.shape)


def _increments(value: Variable) -> Variable:
    """Return the first value and the differences of the others from the ones before."""
    return pt.concatenate([value[..., :1], pt.diff(value, axis=-1)], axis=-1)


def _increment_parameters(
    inputs: Sequence[Variable], shape: Sequence[int]
) -> tuple[Variable, Variable]:
    """Return location and scale of the increments of walks, both of the shape of the walks.

    The first increment is the initial value. PyMC puts the steps first in these two variables.
    """
    *batch, length = shape
    first, others = (part.owner.inputs[-2:] for part in inputs[:2])

    def join(start: Variable, rest: Variable) -> Variable:
        parts = [pt.broadcast_to(start, (1, *batch)), pt.broadcast_to(rest, (length - 1, *batch))]
        return pt.moveaxis(pt.concatenate(parts), 0, -1)

    return join(first[0], others[0]), join(first[1], others[1])


class _Entries(NamedTuple):
    """A location-scale variable and its entries among those of all."""

    name: str
    shape: tuple[int, ...]
    start: int
    stop: int
    walk: bool

    def transform(self, weight: np.ndarray) -> LocationScale | None:
        """Return the transform with the weights of all variables, shape ``(k,)``; None: no change.

        Raises
        ------
        ValueError
            A random walk has weights other than 0 or 1 for all of its entries.
        """
        own = weight[self.start : self.stop].reshape(self.shape)
        if not self.walk:
            return LocationScale(own)
        if own.any() and not (own == 1).all():
            raise ValueError(f"The weights of {self.name!r}, a random walk, have to be all 0 or 1.")
        return None if own.any() else NonCentredWalk(own)

    def parameters(self, inputs: Sequence[Variable]) -> tuple[Variable, Variable]:
        """Return location and scale in the shape of the entries."""
        if self.walk:
            return _increment_parameters(inputs, self.shape)
        mu, sigma = inputs[-2:]
        return pt.broadcast_to(mu, self.shape), pt.broadcast_to(sigma, self.shape)


class LocationScaleModel:
    """A model as a function of the coordinates of its location-scale variables.

    Parameters
    ----------
    compiled
        The model in its own coordinates.
    """

    def __init__(self, compiled: CompiledModel):
        self._model, self._frozen = compiled.model, compiled._data.values
        self._entries = tuple(_find_entries(compiled))
        self._compiled = OrderedDict[bytes, CompiledModel]()

    @property
    def size(self) -> int:
        """Number of weights ``k``."""
        return self._entries[-1].stop

    @property
    def slices(self) -> dict[str, slice]:
        """Places of each variable among the weights, by name."""
        return {e.name: slice(e.start, e.stop) for e in self._entries}

    @property
    def walks(self) -> tuple[slice, ...]:
        """Places of each variable that holds random walks."""
        return tuple(slice(e.start, e.stop) for e in self._entries if e.walk)

    @cached_property
    def non_centred(self) -> CompiledModel:
        """The model in the coordinates with weights 0."""
        return self.at(np.zeros(self.size))

    @cached_property
    def columns(self) -> np.ndarray:
        """Positions of the entries in the unconstrained vector, shape ``(k,)``."""
        places = {v.name: np.arange(v.start, v.stop) for v in self.non_centred.variables}
        return np.concatenate([places[e.name] for e in self._entries])

    def at(self, weight: np.ndarray) -> CompiledModel:
        """Return the model in the coordinates with weights of shape ``(k,)``."""
        key = weight.tobytes()
        if key not in self._compiled:
            self._compiled[key] = self._compile(weight)
        self._compiled.move_to_end(key)
        while len(self._compiled) > _CAPACITY:
            self._compiled.popitem(last=False)
        return self._compiled[key]

    def _compile(self, weight: np.ndarray) -> CompiledModel:
        transforms = {e.name: e.transform(weight) for e in self._entries}
        with warnings.catch_warnings():
            # Those about the model were given when it was compiled in its own coordinates.
            warnings.simplefilter("ignore", UserWarning)
            changed = change_value_transforms(without_initial_values(self._model), transforms)
            set_own_data(changed, self._model, self._frozen)
            return compile_model(changed)

    def location_and_scale(self, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return location and scale of all entries, shapes ``(n, k)``.

        Parameters
        ----------
        position : ndarray, shape (n, d)
            In non-centred coordinates.
        """
        rows = [v.reshape(len(position), -1) for v in self._parameters(position)]
        count = len(self._entries)
        return np.concatenate(rows[:count], axis=1), np.concatenate(rows[count:], axis=1)

    def move(
        self, position: np.ndarray, weight: np.ndarray, variables: Sequence[FreeVariable]
    ) -> np.ndarray:
        """Map positions to the coordinates with other weights.

        Parameters
        ----------
        position : ndarray, shape (n, d)
            In non-centred coordinates.
        weight : ndarray, shape (k,)
        variables
            The variables of a model in these coordinates, in its order.

        Returns
        -------
        ndarray, shape (n, d)
        """
        location, scale = self.location_and_scale(position)
        moved = position.copy()
        moved[:, self.columns] = weight * location + scale**weight * position[:, self.columns]
        places = {v.name: slice(v.start, v.stop) for v in self.non_centred.variables}
        for entries in self._entries:
            if entries.walk and weight[entries.start]:
                increments = moved[:, places[entries.name]].reshape(-1, *entries.shape)
                moved[:, places[entries.name]] = increments.cumsum(-1).reshape(len(moved), -1)
        return np.concatenate([moved[:, places[v.name]] for v in variables], axis=1)

    @cached_property
    def _parameters(self) -> RowFunction:
        compiled = self.non_centred
        pairs = [e.parameters(compiled.model[e.name].owner.inputs) for e in self._entries]
        graphs = [pair[place] for place in (0, 1) for pair in pairs]
        values = compiled.freeze(compiled.model.replace_rvs_by_values(graphs))
        return map_positions(compiled.model, compiled.variables, values)


@once_per_model
def location_scale_model(compiled: CompiledModel) -> LocationScaleModel | None:
    """Return a model as a function of its coordinates; None if there is no choice."""
    if compiled.derivatives.order < SMOOTH or compiled.discrete or compiled.summed:
        return None
    # Members of a family share one compilation, and would each have one of their own.
    shared = isinstance(getattr(compiled.log_terms, "func", None), SharedProgram)
    if not shared or not _find_entries(compiled):
        return None
    model = LocationScaleModel(compiled)
    try:
        _ = model.non_centred
    except Exception as error:  # PyMC raises errors of any class for models that it cannot clone.
        compiled.fallbacks.append(
            "Hierarchical variables keep the coordinates of the model, because PyMC does not "
            f"rewrite it ({first_line(error)})."
        )
        return None
    return model


def _find_entries(compiled: CompiledModel) -> list[_Entries]:
    """Find the location-scale variables with random parameters."""
    model, entries, start = compiled.model, list[_Entries](), 0
    for rv, variable in zip(model.free_RVs, compiled.variables, strict=True):
        untransformed = model.rvs_to_transforms[rv] is None
        if untransformed and random_parents(model, _parameter_graphs(rv)):
            stop = start + variable.stop - variable.start
            walk = isinstance(rv.owner.op, RandomWalkRV)
            entries.append(_Entries(rv.name, variable.shape, start, stop, walk))
            start = stop
    return entries


def _parameter_graphs(rv: Variable) -> list[Variable]:
    """Return locations and scales of a variable, or none if it has no such coordinates."""
    if not isinstance(rv.owner.op, RandomWalkRV):
        return rv.owner.inputs[-2:] if isinstance(rv.owner.op, _LOCATION_SCALE) else []
    parts = [part.owner for part in rv.owner.inputs[:2]]
    if not all(isinstance(part.op, _LOCATION_SCALE) for part in parts):
        return []
    return [x for part in parts for x in part.inputs[-2:]]


def is_standard_normal(rv: Variable, transform: Transform | None) -> bool:
    """Whether the coordinates of a variable are non-centred, and normal."""
    if not isinstance(transform, LocationScale) or transform.weight.any():
        return False
    walk = isinstance(rv.owner.op, RandomWalkRV)
    parts = rv.owner.inputs[:2] if walk else [rv]
    return all(isinstance(part.owner.op, NormalRV) for part in parts)

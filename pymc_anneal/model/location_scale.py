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
from pymc.model.transform.conditioning import change_value_transforms
from pytensor.graph.basic import Variable

from pymc_anneal.model.compile import CompiledModel, compile_model
from pymc_anneal.model.copy_model import set_own_data, without_initial_values
from pymc_anneal.model.derivatives import SMOOTH
from pymc_anneal.model.location_scale_transform import (
    LocationScale,
    NonCentredWalk,
    increment_parameters,
    parameter_graphs,
)
from pymc_anneal.model.map_rows import RowFunction, map_positions
from pymc_anneal.model.notes import or_noted
from pymc_anneal.model.parents import random_parents
from pymc_anneal.model.recent import once_per_model
from pymc_anneal.model.shared_program import SharedProgram
from pymc_anneal.model.variables import FreeVariable

# Coordinates of a model in which it is kept compiled, the last ones.
_CAPACITY = 4


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
            return increment_parameters(inputs, self.shape)
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


def may_be_changed(compiled: CompiledModel) -> bool:
    """Whether a model may be compiled anew in other coordinates."""
    # Members of a family share one compilation, and would each have one of their own.
    shared = isinstance(getattr(compiled.log_terms, "func", None), SharedProgram)
    plain = type(compiled) is CompiledModel and not compiled.discrete
    return shared and plain and compiled.derivatives.order >= SMOOTH


@once_per_model
def location_scale_model(compiled: CompiledModel) -> LocationScaleModel | None:
    """Return a model as a function of its coordinates; None if there is no choice."""
    if not may_be_changed(compiled) or not _find_entries(compiled):
        return None
    model = LocationScaleModel(compiled)
    note = (
        "Hierarchical variables keep the coordinates of the model, because PyMC does not rewrite "
        "it ({})."
    )
    cloned = or_noted(lambda: model.non_centred, compiled.fallbacks, note)
    return None if cloned is None else model


def _find_entries(compiled: CompiledModel) -> list[_Entries]:
    """Find the location-scale variables with random parameters."""
    model, entries, start = compiled.model, list[_Entries](), 0
    for rv, variable in zip(model.free_RVs, compiled.variables, strict=True):
        untransformed = model.rvs_to_transforms[rv] is None
        if untransformed and random_parents(model, parameter_graphs(rv)):
            stop = start + variable.stop - variable.start
            walk = isinstance(rv.owner.op, RandomWalkRV)
            entries.append(_Entries(rv.name, variable.shape, start, stop, walk))
            start = stop
    return entries

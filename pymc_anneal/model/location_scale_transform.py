"""Transforms of location-scale variables to the coordinates of `location_scale.py`.

With a weight ``w`` of each entry, the variable ``x = mu + sigma e`` has the coordinate

    z = w mu + sigma^(w - 1) (x - mu),    dx / dz = sigma^(1 - w).

At ``w = 0`` it is ``e`` itself, which is drawn, and whose density is taken, without ``mu`` and
``sigma``: these may be as large or small as they like.
"""

from collections.abc import Sequence

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc.distributions.timeseries import RandomWalkRV
from pymc.logprob.transforms import Transform
from pymc.model.transform.conditioning import change_value_transforms
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.basic import (
    CauchyRV,
    GumbelRV,
    LaplaceRV,
    LogisticRV,
    NormalRV,
    StudentTRV,
)

from pymc_anneal.model.copy_model import without_initial_values

# Distributions whose last two parameters are location and scale.
_LOCATION_SCALE = (CauchyRV, GumbelRV, LaplaceRV, LogisticRV, NormalRV, StudentTRV)


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
        """Return the increments: the first value, and differences from the ones before."""
        steps = pt.concatenate([value[..., :1], pt.diff(value, axis=-1)], axis=-1)
        return super().forward(steps, *inputs)

    def backward(self, value: Variable, *inputs: Variable) -> Variable:
        """Return the values of the walk."""
        return pt.cumsum(super().backward(value, *inputs), axis=-1)

    def log_jac_det(self, value: Variable, *inputs: Variable) -> Variable:
        """Return ``log |dx / dz|`` of each walk."""
        return super().log_jac_det(value, *inputs).sum(axis=-1)

    def _parameters(self, inputs: Sequence[Variable]) -> tuple[Variable, Variable]:
        return increment_parameters(inputs, self._weight.type.shape)


def increment_parameters(
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


def parameter_graphs(rv: Variable) -> list[Variable]:
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


def is_standardised(rv: Variable, transform: Transform | None) -> bool:
    """Whether the coordinates of a variable are those with weights 0, walks apart."""
    return type(transform) is LocationScale and not transform.weight.any()


def standard_draw(rv: Variable) -> Variable:
    """Return the draw ``e`` of a location-scale variable, with location 0 and scale 1."""
    op, node = rv.owner.op, rv.owner
    *shapes, location, scale = op.dist_params(node)
    standard = pt.zeros_like(location), pt.ones_like(scale)
    return op.make_node(op.rng_param(node), op.size_param(node), *shapes, *standard).outputs[1]


def standard_logp(rv: Variable, value: Variable) -> Variable:
    """Return the graph of the log density of ``e``, in which stand the parents of the variable."""
    return pm.logp(standard_draw(rv), value)


def non_centred(model: pm.Model) -> pm.Model | None:
    """Return a copy of a model in non-centred coordinates, walks apart; None if none has them.

    A scale of ``Gamma(1e-3, 1e-3)`` is beyond 1e308 in a third of its draws, and what it scales
    with it.
    """
    free = set(model.free_RVs)
    found = {
        rv.name: LocationScale(np.zeros(()))
        for rv in model.free_RVs
        if model.rvs_to_transforms[rv] is None and isinstance(rv.owner.op, _LOCATION_SCALE)
        if free & set(ancestors(parameter_graphs(rv)))
    }
    return change_value_transforms(without_initial_values(model), found) if found else None

"""A point null: values of some variables, as coordinates of the unconstrained space.

The prior density at the point follows from the conditional densities of the variables given their
parents, which are known: averaged over prior draws of the parents, if there are any.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pymc as pm

from pymc.distributions.transforms import Interval, _default_transform
from pytensor.graph.traversal import ancestors

from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.map_rows import map_positions
from pymc_anneal.model.parents import random_parents
from pymc_anneal.model.spatial import missing_constants


@dataclass(frozen=True)
class NullPoint:
    """Values of some coordinates of the unconstrained space.

    Attributes
    ----------
    coordinates : ndarray of int, shape (k,)
        Indices of the coordinates.
    value : ndarray, shape (k,)
        Their values.
    fixed : dict of str to ndarray of bool
        Entries of each variable that are fixed.
    """

    coordinates: np.ndarray
    value: np.ndarray
    fixed: Mapping[str, np.ndarray]

    def move(self, position: np.ndarray) -> np.ndarray:
        """Return positions of shape ``(n, d)`` with these coordinates at these values."""
        moved = position.copy()
        moved[:, self.coordinates] = self.value
        return moved


def locate_null(compiled: CompiledModel, null: Mapping[str, object]) -> NullPoint:
    """Find the coordinates and unconstrained values of a point null.

    Parameters
    ----------
    compiled : CompiledModel
    null : mapping of str to float or array
        Values of free variables in the model's space; NaN in an array leaves an entry free.

    Raises
    ------
    ValueError
        A variable is unknown, a value has another shape, or lies outside of the support or at its
        edge, or there are none.
    NotImplementedError
        A variable depends on another one of the null, or an entry of a multivariate variable is
        left free.
    """
    values = {name: _entries(compiled, name, value) for name, value in null.items()}
    if not values or any(np.isnan(v).all() for v in values.values()):
        raise ValueError(f"`null` is {dict(null)}, expected a dict of variables and their values.")
    _check_independent(compiled.model, list(values))
    free = compiled.constrain(compiled.sample_prior(np.random.SeedSequence(0), 1))
    for name, value in values.items():
        free[name] = np.where(np.isnan(value), free[name], value)
    with np.errstate(divide="ignore", invalid="ignore"):
        position = compiled.unconstrain(free)[0]
    coordinates = np.concatenate([_coordinates(compiled, k, v) for k, v in values.items()])
    point = position[coordinates]
    if not np.isfinite(point).all():
        raise ValueError(
            f"`null` is {dict(null)}, outside of the support of a prior or at its edge. The "
            "Savage-Dickey ratio needs a continuous prior density around the point; compare two "
            "models instead."
        )
    return NullPoint(coordinates, point, {name: ~np.isnan(v) for name, v in values.items()})


def check_prior_is_known(compiled: CompiledModel, names: Collection[str]) -> None:
    """Raise `NotImplementedError` if a transform cuts off a part of the prior of the null.

    Its density grows by the mass that is left, also where the variables of the null decide how much
    of another variable is cut off.
    """
    if compiled.log_prior_mass == 0:
        return
    model = compiled.model
    null = {model[name] for name in names}
    for rv in model.free_RVs:
        transform, usual = model.rvs_to_transforms[rv], _default_transform(rv.owner.op, rv)
        # Of two intervals one may be the smaller.
        other = type(transform) is not type(usual) or isinstance(transform, Interval)
        if other and null & set(ancestors([rv])):
            raise NotImplementedError(
                f"The transform of '{rv.name}' may cut off a part of its prior, whose density at "
                f"the null {sorted(names)} is not known then. Take a prior of the remaining part, "
                "such as pm.HalfNormal or pm.Truncated, or compare two models instead."
            )


def log_prior_at(
    compiled: CompiledModel, point: NullPoint, seed: np.random.SeedSequence, draws: int
) -> np.ndarray:
    """Return the log density of the null's variables at the point, given draws of their parents.

    Parameters
    ----------
    compiled : CompiledModel
    point : NullPoint
    seed : SeedSequence
    draws : int
        Number of prior draws, of which the exponentials are averaged.

    Returns
    -------
    ndarray, shape (draws,) or (1,)
        In nats, with respect to the unconstrained coordinates. One exact value if the variables
        have no random parents.
    """
    rvs = [compiled.model[name] for name in point.fixed]
    exact = not any(random_parents(compiled.model, rv.owner.inputs) for rv in rvs)
    position = point.move(compiled.sample_prior(seed, 1 if exact else draws))
    terms = compiled.model.logp(vars=rvs, sum=False)
    missing = (missing_constants(compiled.model, [rv]) for rv in rvs)
    graphs = compiled.freeze([t + m for t, m in zip(terms, missing, strict=True)])
    terms = map_positions(compiled.model, compiled.variables, graphs)(position)
    total = np.zeros(len(position))
    for fixed, term in zip(point.fixed.values(), terms, strict=True):
        whole = term.reshape(len(position), -1)
        total += whole.sum(axis=1) if fixed.all() else whole[:, fixed.ravel()].sum(axis=1)
    return total


def shape_of(compiled: CompiledModel, name: str) -> tuple[int, ...]:
    """Return the shape of a variable in the model's space."""
    shape: tuple[int, ...] = compiled.constrain(np.zeros((1, compiled.ndim)))[name].shape[1:]
    return shape


def _entries(compiled: CompiledModel, name: str, value: object) -> np.ndarray:
    """Return the values of the entries of a variable, NaN for those that are free."""
    known = {v.name: v for v in compiled.variables}
    if name not in known:
        raise ValueError(f"Variable '{name}' of `null` is not a free variable: {sorted(known)}.")
    shape = shape_of(compiled, name)
    try:
        entries = np.broadcast_to(np.asarray(value, dtype=float), shape)
    except (ValueError, TypeError):
        raise ValueError(
            f"The value of '{name}' in `null` is {value!r}, expected a number or an array of "
            f"shape {shape}."
        ) from None
    rv = compiled.model[name]
    joint = getattr(compiled.model.rvs_to_transforms[rv], "ndim_supp", None)
    together = rv.owner.op.ndim_supp or joint or known[name].shape != shape
    if np.isnan(entries).any() and together:
        raise NotImplementedError(
            f"'{name}' is multivariate: its entries can be fixed together only, without NaN."
        )
    return entries


def _coordinates(compiled: CompiledModel, name: str, value: np.ndarray) -> np.ndarray:
    variable = next(v for v in compiled.variables if v.name == name)
    index = np.arange(variable.start, variable.stop)
    return index if not np.isnan(value).any() else index[~np.isnan(value).ravel()]


def _check_independent(model: pm.Model, names: list[str]) -> None:
    for name in names:
        parents = random_parents(model, model[name].owner.inputs)
        others = {parent.name for parent in parents} & set(names)
        if others:
            raise NotImplementedError(
                f"The prior of '{name}' depends on '{min(others)}', which is also part of `null`: "
                "their joint prior density is not known. Compare two models instead."
            )

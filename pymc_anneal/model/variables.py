"""Free variables of a model and their places in the vector of unconstrained values."""

import math

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import jax
import numpy as np
import pymc as pm

from pymc_anneal.model.discrete_support import Bounds, find_finite_support

Array = TypeVar("Array", jax.Array, np.ndarray)


class FreeVariable(NamedTuple):
    """A free variable and its slice of the vector of unconstrained values.

    Attributes
    ----------
    name : str
        Name in the model.
    shape : tuple of int
        Shape in the unconstrained space.
    start, stop : int
        Slice of the vector.
    dtype : str
        Type of the value in the model's graphs.
    discrete : bool
        Whether the values are integers.
    support : tuple of (int, int), or None
        Smallest and largest value of each coordinate of a discrete variable; None if unknown.
    """

    name: str
    shape: tuple[int, ...]
    start: int
    stop: int
    dtype: str
    discrete: bool
    support: Bounds | None


def locate_variables(model: pm.Model, draw: Sequence[np.ndarray]) -> tuple[FreeVariable, ...]:
    """Lay the free variables of a model out in one vector.

    Parameters
    ----------
    model
        The model.
    draw
        Unconstrained values of each free variable, shapes ``(n, ...)``.
    """
    variables, start = [], 0
    for rv, value, array in zip(model.free_RVs, model.value_vars, draw, strict=True):
        shape = array.shape[1:]
        stop = start + math.prod(shape)
        discrete = np.dtype(rv.type.dtype).kind in "iub"
        support = find_finite_support(rv, shape) if discrete else None
        dtype = value.type.dtype
        variables.append(FreeVariable(rv.name, shape, start, stop, dtype, discrete, support))
        start = stop
    return tuple(variables)


def split_values(variables: Sequence[FreeVariable], x: Array) -> list[Array]:
    """Cut a vector, shape ``(d,)``, into values of the free variables.

    Coordinates of discrete variables hold integers exactly: they are cast, not rounded.
    """
    return [x[v.start : v.stop].reshape(v.shape).astype(v.dtype) for v in variables]


def join_values(values: Sequence[np.ndarray], n: int) -> np.ndarray:
    """Join values of the free variables, shapes ``(n, ...)``, to vectors, shape ``(n, d)``."""
    flat = [v.reshape(n, math.prod(v.shape[1:])) for v in values]
    return np.concatenate([np.empty((n, 0)), *flat], axis=1).astype(np.float64)

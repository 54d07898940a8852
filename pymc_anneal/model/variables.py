"""Free variables of a model and their places in the vector of unconstrained values."""

import math

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc.distributions.discrete import DiscreteUniformRV
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.basic import (
    BernoulliRV,
    BetaBinomialRV,
    BinomialRV,
    CategoricalRV,
    HyperGeometricRV,
)
from pytensor.tensor.random.type import RandomType

from pymc_anneal.model.seeded_draws import compile_python

# Magnitude beyond which cubes overflow. Tails that reach 1e308 are powers of small exponents: with
# 1e-6 of the mass beyond 1e308, 1 % lies beyond this one, and a batch of draws shows it.
HUGE = np.float64(1e100)

# Smallest and largest value of each entry of a flattened variable.
Bounds: TypeAlias = tuple[tuple[int, int], ...]

# Functions of the parameters of a distribution that return its smallest and largest value.
_BOUNDS: dict[type, Callable[..., tuple[Any, Any]]] = {
    BernoulliRV: lambda p: (0, 1),
    BinomialRV: lambda n, p: (0, n),
    BetaBinomialRV: lambda n, a, b: (0, n),
    CategoricalRV: lambda p: (0, p.shape[-1] - 1),
    DiscreteUniformRV: lambda low, high: (low, high),
    HyperGeometricRV: lambda good, bad, n: (pt.maximum(0, n - bad), pt.minimum(good, n)),
}

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

    `draw` has unconstrained values of each, shapes ``(n, ...)``.
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


def find_finite_support(rv: Variable, shape: tuple[int, ...]) -> Bounds | None:
    """Find the smallest and largest value of every entry of a discrete variable; None: unknown.

    They are known if they follow from constants. All other supports count as infinite; the density
    is zero outside of them.
    """
    op = rv.owner.op
    if type(op) not in _BOUNDS:
        return None
    bounds = _BOUNDS[type(op)](*op.dist_params(rv.owner))
    graphs = [pt.as_tensor_variable(b) for b in bounds]
    # The number of categories is a shape, which does not depend on random values.
    random = any(isinstance(a.type, RandomType) for a in ancestors(graphs))
    if random and not isinstance(op, CategoricalRV):
        return None
    ends = compile_python([], graphs)()
    low, high = (np.broadcast_to(b, shape).ravel().astype(int).tolist() for b in ends)
    return tuple(zip(low, high, strict=True))


def split_values(variables: Sequence[FreeVariable], x: Array) -> list[Array]:
    """Cut a vector, shape ``(d,)``, into values of the free variables.

    Coordinates of discrete variables hold integers exactly: they are cast, not rounded.
    """
    return [x[v.start : v.stop].reshape(v.shape).astype(v.dtype) for v in variables]


def join_values(values: Sequence[np.ndarray], n: int) -> np.ndarray:
    """Join values of the free variables, shapes ``(n, ...)``, to vectors, shape ``(n, d)``."""
    flat = [v.reshape(n, math.prod(v.shape[1:])) for v in values]
    return np.concatenate([np.empty((n, 0)), *flat], axis=1).astype(np.float64)


def check_values(rv: pt.TensorVariable, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the values of a free variable, shape ``(n, ...)``, in its type.

    Raises
    ------
    ValueError
        They are missing, or have another number of dimensions than the variable.
    """
    if rv.name not in values:
        raise ValueError(
            f"Variable '{rv.name}' of the model is not among {sorted(values)}: the draws are "
            "of another model, or it was left out (`var_names`)."
        )
    value = np.asarray(values[rv.name])
    if value.ndim != rv.ndim + 1:
        raise ValueError(
            f"Variable '{rv.name}' has {value.ndim - 1} dimensions in the draws and "
            f"{rv.ndim} in the model."
        )
    return value.astype(rv.type.dtype)

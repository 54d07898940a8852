"""Models of Python functions: a log likelihood, and a prior by its density and draws or by a map.

The functions become Ops of a PyMC model with one vector of parameters, so that everything that
takes a model takes them too. A function that JAX can trace keeps its JAX form and all derivatives;
any other one (NumPy, SciPy, a program) is called back, without a gradient.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.jax.ops import JAXOp
from pytensor.tensor.type import TensorType

from pymc_anneal.base.double_precision import double_precision

# From parameters, shape (d,), to a log density in nats, or to parameters.
Function: TypeAlias = Callable[[Any], Any]
# From a generator and a number n to draws of shape (n, d).
SamplePrior: TypeAlias = Callable[[np.random.Generator, int], np.ndarray]

# Largest number below 1 in double precision: inverse distribution functions are infinite at 1.
_BELOW_ONE = float(np.nextafter(1.0, 0.0))
_ABOVE_ZERO = float(np.finfo(float).tiny)


@double_precision
def is_jax(function: Function, ndim: int) -> bool:
    """Whether JAX can trace a function of a vector of `ndim` numbers."""
    try:
        jax.eval_shape(function, np.empty(ndim))
    except Exception:  # Of any class: functions of NumPy and others raise whatever they like.
        return False
    return True


def as_jax(function: Function, ndim: int) -> Function:
    """Return a scalar function of a vector as one that JAX can trace and map over rows."""
    if is_jax(function, ndim):
        return function

    def called_back(x: jax.Array) -> jax.Array:
        kind = jax.ShapeDtypeStruct((), np.float64)  # type: ignore[no-untyped-call]
        value: jax.Array = jax.pure_callback(
            lambda row: np.float64(function(np.asarray(row))), kind, x, vmap_method="sequential"
        )
        return value

    return called_back


def as_op(function: Function, ndim: int, *shape: int) -> Callable[[Any], pt.TensorVariable]:
    """Return a function of a vector as a PyTensor Op whose output has a shape."""
    vector, output = (TensorType("float64", shape=s) for s in ((ndim,), shape))
    if is_jax(function, ndim):
        traced = JAXOp([vector], [output], lambda x: (jnp.asarray(function(x), jnp.float64),))
        return lambda x: pt.specify_shape(traced(x), shape)
    called = _Called(function, ndim, shape)
    return lambda x: called(x)


class _Called(Op):  # type: ignore[misc]  # mypy does not see PyTensor
    """A function that JAX cannot trace, called back for each point."""

    __props__ = ("function", "ndim", "shape")

    def __init__(self, function: Function, ndim: int, shape: tuple[int, ...]):
        self.function, self.ndim, self.shape = function, ndim, shape

    def __str__(self) -> str:
        """Name the function, for the messages of PyTensor."""
        return f"the function {getattr(self.function, '__name__', 'given')!r}, not written in JAX"

    def make_node(self, x: Any) -> Apply:
        """Apply the function to a vector."""
        output = TensorType("float64", shape=self.shape)()
        return Apply(self, [pt.specify_shape(pt.as_tensor(x), (self.ndim,))], [output])

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Evaluate at a vector."""
        outputs[0][0] = np.asarray(self.function(inputs[0]), dtype=np.float64)


def add_prior(
    log_prior: Function, sample_prior: SamplePrior, ndim: int, dims: str
) -> pt.TensorVariable:
    """Add a vector ``theta`` with a given log density and draws to the model on the stack."""
    op = as_op(log_prior, ndim)

    def draw(template: np.ndarray, rng: Any = None, size: Any = None) -> np.ndarray:
        leading = np.shape(template)[:-1] if size is None else tuple(size)
        draws = np.asarray(sample_prior(rng, int(np.prod(leading))), dtype=float)
        return draws.reshape(*leading, ndim)

    return pm.CustomDist(
        "theta",
        np.zeros(ndim),
        logp=lambda value, _: op(value),
        random=draw,
        signature="(n)->(n)",
        dims=dims,
    )


def add_unit_cube(prior_transform: Function, ndim: int, dims: str) -> pt.TensorVariable:
    """Add ``theta``, a map of the unit cube, to the model on the stack.

    The coordinates of the cube are ``u = Phi(z)`` with standard normal ``z``.
    """
    z = pm.Normal("z", shape=ndim)
    u = pt.clip(0.5 * pt.erfc(-z / np.sqrt(2)), _ABOVE_ZERO, _BELOW_ONE)
    return pm.Deterministic("theta", as_op(prior_transform, ndim, ndim)(u), dims=dims)

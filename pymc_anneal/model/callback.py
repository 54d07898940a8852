"""Graphs without a JAX form: compiled PyTensor functions, called back from JAX."""

import threading
import warnings

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytensor
import pytensor.tensor as pt

from pytensor.graph.basic import Variable

from pymc_anneal.model.frozen_data import freeze_shared
from pymc_anneal.model.jaxify import JaxFunction, JaxGraph


def call_back(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> JaxGraph:
    """Wrap scalar graphs as a JAX function that calls compiled PyTensor code.

    The function can be mapped over points; the points of a batch are evaluated one after the
    other. Its gradient is compiled when it is first asked for, in reverse mode and once.

    Parameters
    ----------
    inputs
        Inputs of the graph; integers have no derivatives.
    outputs
        Scalars. Shared variables are frozen at their present values.

    Returns
    -------
    JaxGraph
    """
    return JaxGraph(_build, (list(inputs), freeze_shared(outputs)))


def compile_graph(
    inputs: Sequence[Variable], outputs: Sequence[Variable]
) -> Callable[..., list[np.ndarray]]:
    """Compile a graph by PyTensor's default backend."""
    with warnings.catch_warnings():
        # Numba warns of Ops that it cannot compile; the model's notes say that they are slow.
        warnings.filterwarnings("ignore", message="Numba will use object mode")
        function = pytensor.function(list(inputs), list(outputs), on_unused_input="ignore")
    return cast("Callable[..., list[np.ndarray]]", function)


def _build(graph: tuple[list[Variable], list[Variable]]) -> JaxFunction:
    """Build a differentiable JAX function of the inputs of a graph."""
    inputs, outputs = graph
    if not inputs:
        constants = tuple(jnp.asarray(v, jnp.float64) for v in compile_graph([], outputs)())
        return lambda: constants
    real = [i for i, v in enumerate(inputs) if v.type.dtype.startswith("float")]
    values = _HostFunction(inputs, outputs)

    @cache
    def gradients() -> _HostFunction:
        return _HostFunction(inputs, build_gradients(inputs, outputs))

    @jax.custom_vjp
    def function(*point: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(values(point, [()] * len(outputs)))

    def forward(*point: jax.Array) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
        return function(*point), point

    def backward(
        point: tuple[jax.Array, ...], cotangents: tuple[jax.Array, ...]
    ) -> tuple[jax.Array | np.ndarray, ...]:
        flat = gradients()(point, [point[i].shape for i in real] * len(outputs))
        rows = [flat[i * len(real) : (i + 1) * len(real)] for i in range(len(outputs))]
        # JAX expects the type float0 for derivatives with respect to integers.
        slopes: list[Any] = [np.zeros(p.shape, jax.dtypes.float0) for p in point]
        for k, i in enumerate(real):
            slope = sum(c * row[k] for c, row in zip(cotangents, rows, strict=True))
            slopes[i] = cast("jax.Array", slope).astype(point[i].dtype)
        return tuple(slopes)

    function.defvjp(forward, backward)
    return function


def build_gradients(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> list[Variable]:
    """Build the graphs of the gradients of scalars with respect to the real inputs.

    Returns
    -------
    list of Variable
        The gradients of the first output, those of the second one, and so on.

    Raises
    ------
    Exception
        An Op has no gradient: mostly `NotImplementedError`, but any class that the Op raises.
    """
    real = [v for v in inputs if v.type.dtype.startswith("float")]
    return [
        g.astype("float64")
        for output in outputs
        for g in pt.grad(output, real, disconnected_inputs="ignore", return_disconnected="zero")
    ]


class _HostFunction:
    """A compiled graph that JAX calls on the host, at one point or at each point of a batch."""

    def __init__(self, inputs: Sequence[Variable], outputs: Sequence[Variable]):
        self._function = compile_graph(inputs, outputs)
        self._lock = threading.Lock()  # A compiled function has one storage for its inputs.

    def __call__(
        self, point: Sequence[jax.Array], shapes: Sequence[tuple[int, ...]]
    ) -> list[jax.Array]:
        """Return arrays of the given shapes; under `jax.vmap` with the axes of the batch."""
        # Untyped in JAX.
        types = [jax.ShapeDtypeStruct(s, np.float64) for s in shapes]  # type: ignore[no-untyped-call]
        evaluate = partial(self._evaluate, point[0].ndim, shapes)
        values = jax.pure_callback(evaluate, types, *point, vmap_method="broadcast_all")
        return cast("list[jax.Array]", values)

    def _evaluate(
        self, ndim: int, shapes: Sequence[tuple[int, ...]], *point: jax.Array
    ) -> list[np.ndarray]:
        """Evaluate at points whose first input has `ndim` axes, apart from those of a batch."""
        arrays = [np.asarray(a) for a in point]
        batch = arrays[0].shape[: arrays[0].ndim - ndim]
        with self._lock:
            rows = [self._function(*(a[i] for a in arrays)) for i in np.ndindex(*batch)]
        return [
            np.asarray([row[j] for row in rows], dtype=np.float64).reshape(batch + shape)
            for j, shape in enumerate(shapes)
        ]

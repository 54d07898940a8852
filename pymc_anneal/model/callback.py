"""Graphs without a JAX form: compiled PyTensor functions, called back from JAX."""

import warnings

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytensor.tensor as pt

from pytensor.graph.basic import Variable

from pymc_anneal.model.double_constants import widen_constants
from pymc_anneal.model.frozen_data import freeze_shared
from pymc_anneal.model.host_calls import Calls, Graph, Point, PointFunction, compile_graph
from pymc_anneal.model.jaxify import JaxFunction, JaxGraph


class CallbackGraph(JaxGraph):
    """A JAX function that calls compiled PyTensor code.

    The function can be mapped over points. Its gradient is compiled when it is first asked for; it
    is of reverse mode and has no derivatives of its own.

    Parameters
    ----------
    inputs
        Inputs of the graph; integers have no derivatives.
    outputs
        Scalars. Shared variables are frozen at their present values.

    Attributes
    ----------
    calls : Calls
        Where the code is called, and a record of the calls.
    graph : tuple
        Inputs, and outputs with frozen shared variables.
    """

    def __init__(self, inputs: Sequence[Variable], outputs: Sequence[Variable]):
        self.calls = Calls()
        self.graph: Graph = (list(inputs), widen_constants(freeze_shared(outputs)))
        super().__init__(partial(_build, self.calls), self.graph)

    def __reduce__(self) -> tuple[Any, ...]:
        return CallbackGraph, self.graph


def _build(calls: Calls, graph: Graph) -> JaxFunction:
    """Build a differentiable JAX function of the inputs of a graph."""
    inputs, outputs = graph
    if not inputs:
        constants = tuple(jnp.asarray(v, jnp.float64) for v in compile_graph([], outputs)())
        return lambda: constants
    code = _Code(graph, calls)

    @jax.custom_vjp
    def function(*point: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(code.values(point, [()] * len(outputs)))

    def forward(*point: jax.Array) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
        return function(*point), point

    def backward(
        point: tuple[jax.Array, ...], cotangents: tuple[jax.Array, ...]
    ) -> tuple[jax.Array | np.ndarray, ...]:
        real = code.real
        flat = code.gradients(point, [point[i].shape for i in real] * len(outputs))
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
    with warnings.catch_warnings():
        # PyTensor 3 tells the authors of Ops to rename `grad`, which is no matter of the model.
        warnings.filterwarnings("ignore", message=".* should implement `pullback`")
        return [
            g.astype("float64")
            for output in outputs
            for g in pt.grad(output, real, disconnected_inputs="ignore", return_disconnected="zero")
        ]


class _Code:
    """The compiled code of a graph, and that of its gradients."""

    def __init__(self, graph: Graph, calls: Calls):
        self._graph, self._calls = graph, calls
        self.real = [i for i, v in enumerate(graph[0]) if v.type.dtype.startswith("float")]
        self.values = _BatchFunction(PointFunction(graph, calls))

    @cached_property
    def gradients(self) -> "_BatchFunction":
        """The gradients of every output with respect to the real inputs."""
        inputs, outputs = self._graph
        graph = inputs, build_gradients(inputs, outputs)
        return _BatchFunction(PointFunction(graph, self._calls))


class _BatchFunction:
    """A function on the host that JAX calls at one point, or at each point of a batch."""

    def __init__(self, function: PointFunction):
        self._function = function

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
        points: list[Point] = [tuple(a[i] for a in arrays) for i in np.ndindex(*batch)]
        nan = [np.full(shape, np.nan) for shape in shapes]
        rows = [nan if row is None else row for row in self._function(points)]
        return [
            np.asarray([row[j] for row in rows], dtype=np.float64).reshape(batch + shape)
            for j, shape in enumerate(shapes)
        ]

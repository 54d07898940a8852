"""Graphs without a JAX form: compiled PyTensor functions, called back from JAX."""

import threading
import warnings

from collections.abc import Callable, Sequence

import jax
import numpy as np
import pytensor
import pytensor.tensor as pt

from pytensor.graph.basic import Variable

from pymc_anneal.model.jaxify import JaxGraph


def callback_graph(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> JaxGraph:
    """Wrap scalar outputs of a graph as a JAX function that calls compiled PyTensor code.

    The function can be mapped over points and differentiated once in reverse mode; the points of
    a batch are evaluated one after the other.

    Parameters
    ----------
    inputs
        Those of whole numbers have no derivatives.
    outputs
        Scalars.

    Returns
    -------
    JaxGraph
    """
    return JaxGraph(_calling_back, (list(inputs), list(outputs)))


def _calling_back(graph_: tuple[list[Variable], list[Variable]]) -> Callable:
    inputs, outputs = graph_
    values = compiled(inputs, outputs)
    real = [i for i, v in enumerate(inputs) if v.type.dtype.startswith("float")]
    wrt = [inputs[i] for i in real]
    gradients = compiled(inputs, [g for out in outputs for g in _gradients(out, wrt)])
    value_types = [jax.ShapeDtypeStruct((), np.float64) for _ in outputs]

    @jax.custom_vjp
    def graph(*points):
        return tuple(_call(values, value_types, points))

    def forward(*points):
        return graph(*points), points

    def backward(points, cotangents):
        types = [jax.ShapeDtypeStruct(points[i].shape, np.float64) for i in real] * len(outputs)
        flat = _call(gradients, types, points)
        rows = [flat[i * len(real) : (i + 1) * len(real)] for i in range(len(outputs))]
        slopes = [np.zeros(p.shape, jax.dtypes.float0) for p in points]  # of whole numbers
        for k, i in enumerate(real):
            slope = sum(c * row[k] for c, row in zip(cotangents, rows, strict=True))
            slopes[i] = slope.astype(points[i].dtype)
        return tuple(slopes)

    graph.defvjp(forward, backward)
    return graph


def compiled(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> Callable:
    """Compile a graph by PyTensor, for what has no JAX form."""
    with warnings.catch_warnings():
        # An Op without a Numba form either; that it is slow is said in the model's notes.
        warnings.filterwarnings("ignore", message="Numba will use object mode")
        return pytensor.function(list(inputs), list(outputs), on_unused_input="ignore")


def _gradients(output: Variable, inputs: list[Variable]) -> list[Variable]:
    gradients = pt.grad(output, inputs, disconnected_inputs="ignore", return_disconnected="zero")
    return [g.astype("float64") for g in gradients]


def _call(function, types, points):
    """Call a compiled function at one point, or at every point of a batch."""
    lock = threading.Lock()  # a compiled function has one storage

    def host(*arrays):
        with lock:
            return evaluate(*[np.asarray(a) for a in arrays])

    def evaluate(*arrays):
        batch = arrays[0].shape[: arrays[0].ndim - points[0].ndim]
        rows = np.ndindex(*batch)
        results = [function(*(a[i] for a in arrays)) for i in rows]
        return [
            np.asarray([r[j] for r in results], dtype=t.dtype).reshape(batch + t.shape)
            for j, t in enumerate(types)
        ]

    return jax.pure_callback(host, types, *points, vmap_method="broadcast_all")

"""Functions of the unconstrained vector, from the graphs of a model.

Log prior, log likelihood and their sum in JAX; the maps between the vector and the model's
variables, over rows.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

from pytensor.compile.mode import Mode
from pytensor.graph.replace import clone_replace

from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.model.callback import callback_graph, compiled
from pymc_anneal.model.jaxify import JaxGraph, freeze_shared, jaxify


class Variable(NamedTuple):
    """A free variable's place in the vector of unconstrained values.

    Attributes
    ----------
    name : str
        Name in the model.
    shape : tuple of int
        Shape in the unconstrained space.
    start, stop : int
        Its slice of the vector.
    discrete : bool
        Whether its values are whole numbers.
    support : tuple of (int, int), or None
        Smallest and largest value of each coordinate of a discrete variable, where known.
    """

    name: str
    shape: tuple[int, ...]
    start: int
    stop: int
    discrete: bool = False
    support: tuple[tuple[int, int], ...] | None = None


def value_dtypes(model: pm.Model) -> tuple[str, ...]:
    return tuple(v.type.dtype for v in model.value_vars)


def split_values(variables, dtypes, x):
    """Cut a vector into the model's value variables; whole numbers are cast, not rounded."""
    return [
        x[v.start : v.stop].reshape(v.shape).astype(dtype)
        for v, dtype in zip(variables, dtypes, strict=True)
    ]


def evaluate_log_terms(
    graph: JaxGraph, variables, dtypes, log_mass: float, x: jax.Array
) -> LogTerms:
    log_prior, log_likelihood = graph(*split_values(variables, dtypes, x))
    return LogTerms(
        jnp.asarray(log_prior, jnp.float64) - log_mass, jnp.asarray(log_likelihood, jnp.float64)
    )


def log_graph(model: pm.Model, variables) -> tuple[JaxGraph, list[str]]:
    """Return the JAX function of the two terms, by callback where an Op has no JAX form."""
    inputs = model.value_vars
    outputs = term_graphs(model)
    try:
        graph = jaxify(inputs, outputs)
        _trace(graph, variables, value_dtypes(model))
        return graph, []
    except Exception as error:  # whatever the translation or JAX's tracing runs into
        note = (
            "Part of the model has no JAX form and runs through compiled PyTensor, one particle "
            f"at a time ({type(error).__name__}: {str(error).splitlines()[0]})."
        )
        return callback_graph(inputs, freeze_shared(outputs)), [note]


def term_graphs(model: pm.Model) -> list[pt.TensorVariable]:
    """Return the graphs of log prior and log likelihood."""
    return [scalar_sum(model.varlogp), scalar_sum(model.datalogp)]


def scalar_sum(term) -> pt.TensorVariable:
    return pt.as_tensor_variable(term).sum().astype("float64")


def _trace(graph: JaxGraph, variables, dtypes) -> None:
    terms = partial(evaluate_log_terms, graph, variables, dtypes, 0.0)
    size = variables[-1].stop if variables else 0
    point = jax.ShapeDtypeStruct((2, size), np.float64)
    jax.eval_shape(jax.vmap(jax.grad(lambda x: sum(terms(x)))), point)


def map_positions(model: pm.Model, variables, outputs) -> Callable[[np.ndarray], list[np.ndarray]]:
    """Compile functions of the vector and map them over positions of shape ``(n, d)``."""
    return _over_rows(
        model.value_vars, outputs, partial(split_values, variables, value_dtypes(model))
    )


def unconstrain_function(model: pm.Model) -> Callable[..., list[np.ndarray]]:
    """Compile the transforms of the free variables, mapped over draws."""
    free = model.free_RVs
    transforms = [model.rvs_to_transforms[rv] for rv in free]
    outputs = [
        rv if t is None else t.forward(rv, *rv.owner.inputs)
        for rv, t in zip(free, transforms, strict=True)
    ]
    inputs = [rv.type() for rv in free]
    outputs = clone_replace(outputs, dict(zip(free, inputs, strict=True)))
    return _over_rows(inputs, outputs, lambda *row: row)


def _over_rows(inputs, outputs, arrange: Callable) -> Callable[..., list[np.ndarray]]:
    """Compile a graph and map it over rows, one by one where it has no JAX form.

    Parameters
    ----------
    inputs, outputs
        The graph.
    arrange
        From a row to the inputs.
    """
    outputs = list(outputs)
    if not outputs:
        return lambda *rows: []
    try:
        graph = jaxify(inputs, outputs)
    except NotImplementedError:
        function = compiled(inputs, freeze_shared(outputs))

        def one_by_one(*rows):
            values = map(lambda *row: function(*arrange(*row)), *rows)
            return [np.stack(column) for column in zip(*values, strict=True)]

        return one_by_one
    mapped = jax.jit(jax.vmap(lambda *row: tuple(map(jnp.asarray, graph(*arrange(*row))))))
    return lambda *rows: [np.asarray(v) for v in mapped(*rows)]


def term_values(model: pm.Model, values: list[np.ndarray]) -> dict[str, np.ndarray]:
    variables = [*model.free_RVs, *model.observed_RVs, *model.potentials]
    function = pytensor.function(
        model.value_vars,
        model.logp(vars=variables, sum=False),
        mode=Mode("py", "fast_compile"),
        on_unused_input="ignore",
    )
    terms = zip(variables, function(*values), strict=True)
    return {v.name: np.asarray(value) for v, value in terms}

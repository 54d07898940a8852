"""PyTensor graphs evaluated at many points, one per row."""

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pytensor.graph.replace import clone_replace

from pymc_anneal.model.frozen_data import FrozenData, freeze_shared
from pymc_anneal.model.host_calls import compile_graph
from pymc_anneal.model.jaxify import jaxify
from pymc_anneal.model.variables import FreeVariable, split_values

# A function that PyTensor compiled has one storage for its inputs: threads take turns.
_CALLING = Lock()

# From arrays of shapes (n, ...) to arrays of shapes (n, ...).
RowFunction: TypeAlias = Callable[..., list[np.ndarray]]


def map_positions(
    model: pm.Model, variables: Sequence[FreeVariable], outputs: Sequence[pt.TensorVariable]
) -> RowFunction:
    """Compile functions of the free variables' values, mapped over vectors of shape ``(n, d)``."""
    return _map_rows(model.value_vars, outputs, partial(split_values, variables))


def map_transforms(model: pm.Model, data: FrozenData) -> RowFunction:
    """Compile the transforms to the unconstrained space, mapped over draws of the variables."""
    free = model.free_RVs
    transforms = [model.rvs_to_transforms[rv] for rv in free]
    outputs = [
        rv if t is None else t.forward(rv, *rv.owner.inputs)
        for rv, t in zip(free, transforms, strict=True)
    ]
    inputs = [rv.type() for rv in free]
    outputs = clone_replace(outputs, dict(zip(free, inputs, strict=True)))
    return _map_rows(inputs, data.freeze(outputs), lambda *row: row)


def _map_rows(
    inputs: Sequence[pt.TensorVariable],
    outputs: Sequence[pt.TensorVariable],
    arrange: Callable[..., Sequence[Any]],
) -> RowFunction:
    """Compile a graph and map it over rows, arranged as its inputs.

    Rows are taken one by one if an Op has no JAX form.
    """
    if not outputs:
        return lambda *rows: []
    try:
        graph = jaxify(inputs, outputs)
    except NotImplementedError:
        return partial(_map_one_by_one, compile_graph(inputs, freeze_shared(outputs)), arrange)
    mapped = jax.jit(jax.vmap(lambda *row: tuple(map(jnp.asarray, graph(*arrange(*row))))))
    return lambda *rows: [np.asarray(v) for v in mapped(*rows)]


def _map_one_by_one(
    function: Callable[..., list[np.ndarray]],
    arrange: Callable[..., Sequence[Any]],
    *rows: np.ndarray,
) -> list[np.ndarray]:
    with _CALLING:
        values = [function(*arrange(*row)) for row in zip(*rows, strict=True)]
    return [np.stack(column) for column in zip(*values, strict=True)]

"""The posterior density of the constrained parameters, which `pymc.find_MAP` maximises."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

from pymc_anneal.model.callback import callback_graph
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.graphs import scalar_sum, split_values, value_dtypes
from pymc_anneal.model.jaxify import JaxGraph, freeze_shared, jaxify
from pymc_anneal.model.pickling import PicklableFunction


def log_point_density(compiled: CompiledModel) -> Callable[[jax.Array], jax.Array]:
    """Return the log posterior density of the constrained parameters as a function of x.

    What :func:`pymc.find_MAP` maximises: prior times likelihood, without Jacobians.
    """
    model = compiled.model
    inputs, outputs = model.value_vars, [scalar_sum(model.logp(jacobian=False))]
    try:
        graph = jaxify(inputs, outputs)
        split = partial(split_values, compiled.variables, value_dtypes(model))
        jax.eval_shape(lambda x: graph(*split(x)), jnp.zeros(compiled.ndim))
    except Exception:  # as in log_graph
        graph = callback_graph(inputs, freeze_shared(outputs))
    return PicklableFunction(partial(_log_point, graph, compiled.variables, value_dtypes(model)))


def _log_point(graph: JaxGraph, variables, dtypes, x: jax.Array) -> jax.Array:
    return jnp.asarray(graph(*split_values(variables, dtypes, x))[0], jnp.float64)

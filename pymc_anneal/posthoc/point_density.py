"""Posterior density of the constrained parameters, the target of :func:`pymc.find_MAP`."""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp

from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.jaxify import JaxGraph
from pymc_anneal.model.log_densities import sum_to_scalar, translate_density
from pymc_anneal.model.pickling import PicklableFunction
from pymc_anneal.model.spatial import missing_constants
from pymc_anneal.model.variables import FreeVariable, split_values


def compile_point_density(compiled: CompiledModel) -> Callable[[jax.Array], jax.Array]:
    """Compile prior times likelihood without the Jacobians of the transforms.

    Returns
    -------
    Callable
        JAX function of an unconstrained vector, shape ``(d,)``, to the log posterior density of
        the constrained parameters, a scalar in nats up to the evidence.
    """
    model, variables = compiled.model, compiled.variables
    density = sum_to_scalar(model.logp(jacobian=False))
    outputs = compiled.freeze([density + missing_constants(model, model.basic_RVs)])
    graph = translate_density(model, variables, outputs).graph
    return PicklableFunction(partial(_evaluate, graph, variables))


def _evaluate(graph: JaxGraph, variables: Sequence[FreeVariable], x: jax.Array) -> jax.Array:
    return jnp.asarray(graph(*split_values(variables, x))[0], jnp.float64)

"""Data simulated from a model, and log densities that take the data as an argument.

If parameters and data ``(x, y)`` are drawn from ``p(x) p(y | x)``, then ``x`` is an exact draw of
the posterior given ``y`` (Grosse, Ancha & Roy 2016). One compilation serves all data sets.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields as dataclass_fields
from functools import lru_cache
from typing import NamedTuple

import jax
import numpy as np
import pymc as pm

from jax.tree_util import Partial
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors

from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.jaxify import jaxify
from pymc_anneal.model.log_densities import evaluate_log_terms, log_term_graphs


class Simulation(NamedTuple):
    """Parameters and data drawn from the joint distribution of a model.

    Attributes
    ----------
    parameters : ndarray, shape (n, d)
        Unconstrained values.
    data : list of ndarray, shapes (n, ...)
        Observed variables, in the model's order.
    """

    parameters: np.ndarray
    data: list[np.ndarray]


def simulate(compiled: CompiledModel, seed: np.random.SeedSequence, draws: int) -> Simulation:
    """Draw parameters and data from the joint distribution of a model.

    Parameters
    ----------
    compiled
        The model.
    seed
        The same seed gives the same draws.
    draws
        Number of draws ``n``.
    """
    model = compiled.model
    number = int(seed.generate_state(1)[0])
    graphs = compiled.freeze([*model.free_RVs, *model.observed_RVs])
    values = pm.draw(graphs, draws=draws, random_seed=number)
    values = [v if draws > 1 else np.asarray(v)[None] for v in values]
    free = {rv.name: v for rv, v in zip(model.free_RVs, values, strict=False)}
    data = [
        np.asarray(v).astype(model.rvs_to_values[rv].type.dtype)
        for rv, v in zip(model.observed_RVs, values[len(free) :], strict=True)
    ]
    return Simulation(compiled.unconstrain(free), data)


def with_data(compiled: CompiledModel, data: Sequence[np.ndarray]) -> CompiledModel:
    """Return a model with other observed data, in the coordinates of the model.

    Parameters
    ----------
    compiled
        The model.
    data : sequence of ndarray
        Values of the observed variables, in the model's order.
    """
    fields = {f.name: getattr(compiled, f.name) for f in dataclass_fields(compiled)}
    log_terms = Partial(_compile_for_new_data(compiled), tuple(data))  # type: ignore[no-untyped-call]
    return _WithOtherData(**{**fields, "log_terms": log_terms})


class _WithOtherData(CompiledModel):
    """A compiled model with observed data that are arguments of its log density."""

    @property
    def branches(self) -> None:  # type: ignore[override]
        """None: they would have to be compiled for all data."""
        return None


# JAX caches its programs by function: the same model must give the same function.
@lru_cache(maxsize=4)
def _compile_for_new_data(
    compiled: CompiledModel,
) -> Callable[[Sequence[jax.Array], jax.Array], LogTerms]:
    """Compile the log terms as a function of the observed data and the unconstrained vector.

    Returns
    -------
    Callable
        JAX function of the data, in the model's order, and of ``x`` with shape ``(d,)``.
    """
    model = compiled.model
    observed = [model.rvs_to_values[rv] for rv in model.observed_RVs]
    inputs = [value.type() for value in observed]
    outputs = clone_replace(
        log_term_graphs(model, compiled.overflows), dict(zip(observed, inputs, strict=True))
    )
    graph = jaxify([*inputs, *model.value_vars], compiled.freeze(outputs))

    def log_terms(data: Sequence[jax.Array], x: jax.Array) -> LogTerms:
        return evaluate_log_terms(graph, compiled.variables, compiled.log_prior_mass, x, data)

    return log_terms


def check_simulable(compiled: CompiledModel) -> None:
    """Raise unless data can be simulated from a model.

    Raises
    ------
    NotImplementedError
        The model has a potential, a transform restricts its prior, or this depends on the data.
    ValueError
        The model has no observed variable.
    """
    model = compiled.model
    if model.potentials:
        raise NotImplementedError(
            f"Potential '{model.potentials[0].name}' is part of the likelihood, and data cannot be "
            "simulated from it. Write it as an observed variable."
        )
    if not model.observed_RVs:
        raise ValueError(
            "The model has no observed variable, so there are no data to simulate. Declare the "
            "data with `observed=`."
        )
    if set(model.observed_RVs) & set(ancestors(model.free_RVs)):
        raise NotImplementedError(
            "The prior of a free variable depends on observed data, and would be another one for "
            "data that are simulated."
        )
    if compiled.log_prior_mass != 0:
        raise NotImplementedError(
            "A transform restricts the prior to a part of its support, and PyMC draws from all of "
            "the support. Remove the transform."
        )

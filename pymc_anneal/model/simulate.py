"""Data that a model makes itself: draws of parameters and data, and the density of any data.

From ``(x, y) ~ p(x) p(y | x)``, the parameters ``x`` are an exact draw of the posterior given the
data ``y`` (Grosse, Ancha & Roy 2016), and ``y`` enters the compiled density as an argument: one
compilation serves all data sets.
"""

from collections.abc import Callable
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm

from pytensor.graph.replace import clone_replace

from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.graphs import term_graphs
from pymc_anneal.model.jaxify import jaxify


# Compiled programs belong to the function that is returned: the same model, the same function.
@lru_cache(maxsize=4)
def with_data(compiled: CompiledModel) -> Callable[[tuple, jax.Array], LogTerms]:
    """Return the log terms as a function of the observed data, in the model's order, and of x.

    Raises
    ------
    NotImplementedError
        The model cannot be simulated, or has no JAX form.
    """
    model = compiled.model
    _refuse_simulation(compiled)
    observed = [model.rvs_to_values[rv] for rv in model.observed_RVs]
    inputs = [value.type() for value in observed]
    outputs = clone_replace(term_graphs(model), dict(zip(observed, inputs, strict=True)))
    graph = jaxify([*inputs, *model.value_vars], outputs)

    def log_terms(data: tuple, x: jax.Array) -> LogTerms:
        log_prior, log_likelihood = graph(*data, *compiled.split(x))
        log_prior = jnp.asarray(log_prior, jnp.float64) - compiled.log_prior_mass
        return LogTerms(log_prior, jnp.asarray(log_likelihood, jnp.float64))

    return log_terms


def simulate(
    compiled: CompiledModel, seed: np.random.SeedSequence, draws: int
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Draw parameters and data from the joint distribution of a model.

    Returns
    -------
    ndarray of shape (draws, d), list of ndarray of shapes (draws, ...)
        Unconstrained parameters, and the observed variables in the model's order.
    """
    model = compiled.model
    number = int(seed.generate_state(1)[0])
    values = pm.draw([*model.free_RVs, *model.observed_RVs], draws=draws, random_seed=number)
    values = [v if draws > 1 else np.asarray(v)[None] for v in values]
    free = {rv.name: v for rv, v in zip(model.free_RVs, values, strict=False)}
    data = [
        np.asarray(v).astype(model.rvs_to_values[rv].type.dtype)
        for rv, v in zip(model.observed_RVs, values[len(free) :], strict=True)
    ]
    return compiled.unconstrain(free), data


def _refuse_simulation(compiled: CompiledModel) -> None:
    model = compiled.model
    if model.potentials:
        raise NotImplementedError(
            f"Potential '{model.potentials[0].name}' is part of the likelihood, and data cannot be "
            "simulated from it. Write it as an observed variable."
        )
    if not model.observed_RVs:
        raise ValueError("The model has no observed variable: there are no data to simulate.")
    if compiled.log_prior_mass != 0:
        raise NotImplementedError(
            "A transform cuts the prior to a part of its support, from which PyMC does not draw."
        )

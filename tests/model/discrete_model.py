"""A model with discrete and continuous variables in turns."""

from functools import cache

import pymc as pm

from pymc_anneal.model.compile import CompiledModel, compile_model


def build_discrete_model() -> pm.Model:
    """Return a model of three binary variables, a count, and two real ones."""
    with pm.Model(coords={"site": ["a", "b", "c"]}) as model:
        p = pm.Beta("p", 2, 3)
        z = pm.Bernoulli("z", p, dims="site")
        mu = pm.Normal("mu", 0, 2)
        n = pm.Poisson("n", 3.0)
        pm.Deterministic("total", z.sum() + n)
        pm.Normal("y", mu + z, 1.0 + n, observed=[1.0, 2.0, -0.5])
    return model


@cache
def discrete_model() -> CompiledModel:
    """Return the compiled model; its vector is ``(p, z_a, z_b, z_c, mu, n)``."""
    return compile_model(build_discrete_model())

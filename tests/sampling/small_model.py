"""A small model, and settings of runs that take a tenth of a second."""

from functools import cache
from typing import Any

import numpy as np
import pymc as pm

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group
from pymc_anneal.model.compile import CompiledModel, compile_model

# No pilot, five steps.
QUICK: dict[str, Any] = {
    "chains": 2,
    "steps": 5,
    "schedule": "linear",
    "reference": "prior",
    "transition": pma.HMC(0.3, 2, 1.0),
    "random_seed": 1,
    "progressbar": False,
}


def build_small_model() -> pm.Model:
    """Return a model with two groups, a deterministic, coords and data."""
    coords = {"group": ["a", "b"], "obs": [10, 20, 30]}
    with pm.Model(coords=coords) as model:
        covariate = pm.Data("covariate", np.array([0.5, -1.0, 2.0]), dims="obs")
        mu = pm.Normal("mu", 0.0, 2.0, dims="group")
        sigma = pm.HalfNormal("sigma", 2.0)
        pm.Deterministic("total", mu.sum())
        pm.Normal("y", mu[0] + mu[1] * covariate, sigma, observed=[0.4, 2.0, -1.3], dims="obs")
    return model


@cache
def small_model() -> CompiledModel:
    """Return the compiled model."""
    return compile_model(build_small_model())


@cache
def small_result() -> Any:
    """Return a run with the pointwise log likelihood and prior draws."""
    wanted = {"log_likelihood": True, "prior": True}
    return pma.sample_ais(60, model=small_model(), idata_kwargs=wanted, **QUICK)


def evidence_attrs(result: Any) -> dict[str, Any]:
    """Return the attributes of the group ``evidence``."""
    return group(result, "evidence").attrs


def assert_same(first: Any, second: Any) -> None:
    """Two results hold the same numbers."""
    for name in ("posterior", "annealing"):
        left, right = group(first, name), group(second, name)
        assert set(left.data_vars) == set(right.data_vars)
        for variable in left.data_vars:
            np.testing.assert_array_equal(left[variable], right[variable])

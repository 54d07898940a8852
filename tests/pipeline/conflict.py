"""A normal mean whose data lie four prior deviations away, run along any path."""

from functools import cache

import numpy as np
import pymc as pm

from scipy import stats

import pymc_anneal as pma

D, ROWS, NOISE, AWAY = 2, 10, 0.5, 4.0
Y = AWAY + NOISE * np.random.default_rng(9).normal(size=(ROWS, D))
COVARIANCE = NOISE**2 * np.eye(ROWS) + np.ones((ROWS, ROWS))
LOG_EVIDENCE = float(stats.multivariate_normal(np.zeros(ROWS), COVARIANCE).logpdf(Y.T).sum())


@cache
def conflict() -> pma.CompiledModel:
    """Return the model: prior N(0, I), ten observations with standard deviation 1/2."""
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", 0, 1, shape=D), NOISE, observed=Y)
    return pma.compile_model(model)


def run_along(path, **settings):
    """Return the container of a run along a path, from the prior unless told otherwise."""
    defaults = {"random_seed": 1, "progressbar": False, "reference": "prior"}
    return pma.sample_ais(model=conflict(), path=path, **(defaults | settings))


def is_near(idata) -> bool:
    """Return whether the evidence is within four standard errors of the exact value."""
    found = pma.log_evidence(idata)
    return abs(found.log_evidence - LOG_EVIDENCE) < 4 * found.mcse

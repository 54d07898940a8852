"""A normal model whose power posteriors are known exactly."""

from functools import cache
from typing import Any

import numpy as np
import pymc as pm

from scipy import stats

import pymc_anneal as pma

Y = np.array([2.1, 3.0, 3.9, 2.6])
SIGMA, PRIOR_MEAN, PRIOR_SD = 0.8, -1.0, 1.5
BETAS = (0.0, 0.25, 1.0, 4.0)
QUIET: dict[str, Any] = {"random_seed": 2, "progressbar": False}


def build_power_model() -> pm.Model:
    """Return a model with one mean that the data inform and one that they do not."""
    with pm.Model(coords={"site": ["a", "b"]}) as model:
        mu = pm.Normal("mu", PRIOR_MEAN, PRIOR_SD, dims="site")
        pm.Deterministic("difference", mu[1] - mu[0])
        pm.Normal("y", mu[0], SIGMA, observed=Y)
    return model


@cache
def power_model() -> pma.CompiledModel:
    """Return the compiled model."""
    return pma.compile_model(build_power_model())


@cache
def power_result() -> Any:
    """Return draws at all of `BETAS`."""
    return pma.power_posterior(BETAS, draws=1000, model=power_model(), **QUIET)


def exact_moments(beta: float) -> tuple[float, float]:
    """Return mean and standard deviation of the first site's mu."""
    precision = PRIOR_SD**-2 + beta * len(Y) * SIGMA**-2
    mean = (PRIOR_MEAN * PRIOR_SD**-2 + beta * Y.sum() * SIGMA**-2) / precision
    return mean, precision**-0.5


def exact_log_z(beta: float) -> float:
    """Return the log of the integral of prior times likelihood^beta, by quadrature."""
    grid = np.linspace(-12, 12, 40_001)
    log_likelihood = stats.norm.logpdf(Y[:, None], grid, SIGMA).sum(axis=0)
    density = stats.norm.logpdf(grid, PRIOR_MEAN, PRIOR_SD) + beta * log_likelihood
    total = np.exp(density - density.max()).sum() * (grid[1] - grid[0])
    return float(np.log(total) + density.max())

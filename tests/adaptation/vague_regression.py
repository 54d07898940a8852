"""A linear regression with vague priors, whose log evidence and posterior are known."""

from typing import NamedTuple

import numpy as np
import pymc as pm

from scipy import stats


class Regression(NamedTuple):
    """A model with its exact log evidence, posterior mean and posterior covariance."""

    model: pm.Model
    log_evidence: float
    mean: np.ndarray
    covariance: np.ndarray


def vague_regression(sd: float = 100.0, d: int = 20) -> Regression:
    """Return a regression on ``d`` coefficients with priors N(0, sd), and 60 rows."""
    rng = np.random.default_rng(d)
    x = rng.normal(size=(60, d))
    y = x @ rng.normal(size=d) + rng.normal(size=60)
    with pm.Model() as model:
        beta = pm.Normal("beta", 0, sd, shape=d)
        pm.Normal("y", pm.math.dot(x, beta), 1, observed=y)
    marginal = stats.multivariate_normal(np.zeros(60), np.eye(60) + sd**2 * x @ x.T)
    covariance = np.linalg.inv(x.T @ x + np.eye(d) / sd**2)
    return Regression(model, float(marginal.logpdf(y)), covariance @ x.T @ y, covariance)

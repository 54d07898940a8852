"""The t-test of Jeffreys, Zellner and Siow on the sleep data, by quadrature.

``y_i ~ N(delta sigma, sigma)``, ``delta ~ Cauchy(0, r)``, ``p(sigma) ~ 1/sigma``. The Bayes factor
against ``delta = 0`` follows from the t statistic alone (Rouder et al. 2009, eq. 1).
"""

import numpy as np
import pymc as pm

from scipy import integrate, stats

from pymc_anneal.base.arviz_compat import container
from pymc_anneal.results.container import dataset

# Extra hours of sleep with one drug minus those with another one (Cushny & Peebles 1905).
SLEEP = np.array([-1.2, -2.4, -1.3, -1.3, 0.0, -1.0, -1.8, -0.8, -4.6, -1.4])

# Value of the R package BayesFactor for r = sqrt(2) / 2: BF = 17.25888.
LOG_BAYES_FACTOR = 2.84833

# Half the range of log sigma; the likelihood outside of it is negligible.
_RANGE = 5.0


def model(r: float = np.sqrt(0.5)) -> pm.Model:
    """Return the model with the scale of the prior as data ``r``."""
    with pm.Model() as built:
        scale = pm.Data("r", r)
        delta = pm.Cauchy("delta", 0, scale)
        sigma = pm.math.exp(pm.Uniform("log_sigma", -_RANGE, _RANGE))
        pm.Normal("y", delta * sigma, sigma, observed=SLEEP)
    return built


def log_bayes_factor(r: float) -> float:
    """Return the log Bayes factor of the model against ``delta = 0``."""
    n = len(SLEEP)
    t = SLEEP.mean() / SLEEP.std(ddof=1) * np.sqrt(n)

    def integrand(delta: float) -> float:
        return stats.nct.pdf(t, n - 1, delta * np.sqrt(n)) * stats.cauchy.pdf(delta, 0, r)

    points = np.linspace(-4, 1.5, 23)
    parts = [integrate.quad(integrand, a, b)[0] for a, b in zip(points, points[1:], strict=False)]
    return float(np.log(sum(parts) / stats.t.pdf(t, n - 1)))


def exact_draws(seed: int, draws: int = 1000, r: float = np.sqrt(0.5)) -> object:
    """Return a container of independent posterior draws, from cells of a fine grid."""
    delta, log_sigma = np.linspace(-5, 2, 1401), np.linspace(-1.5, 2.5, 801)
    sigma = np.exp(log_sigma)
    log_density = stats.cauchy.logpdf(delta, 0, r)[:, None] + np.sum(
        [stats.norm.logpdf(y, delta[:, None] * sigma, sigma) for y in SLEEP], axis=0
    )
    mass = np.cumsum(np.exp(log_density - log_density.max()).ravel())
    rng = np.random.default_rng(seed)
    cell = np.searchsorted(mass, rng.uniform(size=(4, draws)) * mass[-1])
    row, column = np.unravel_index(cell, log_density.shape)
    jitter = rng.uniform(-0.5, 0.5, (2, 4, draws))
    values = {
        "delta": delta[row] + jitter[0] * (delta[1] - delta[0]),
        "log_sigma": log_sigma[column] + jitter[1] * (log_sigma[1] - log_sigma[0]),
    }
    return container({"posterior": dataset(values, ("chain", "draw"))})

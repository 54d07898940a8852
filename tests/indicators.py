"""A regression with inclusion indicators, two of which matter only together; exact by its sum."""

from functools import cache

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from scipy import special, stats

RNG = np.random.default_rng(14)
DESIGN = RNG.normal(size=(40, 4))
DESIGN[:, 1] = DESIGN[:, 0] + 0.15 * DESIGN[:, 1]
RESPONSE = 7.0 * DESIGN[:, 0] - 7.0 * DESIGN[:, 1] + RNG.normal(size=40)
SHARE, WIDTH = 0.02, 6.0


def build() -> pm.Model:
    """``y ~ N(X (g b), 1)``, ``g ~ Bernoulli(0.02)``, ``b ~ N(0, 6^2)``."""
    with pm.Model() as model:
        on = pm.Bernoulli("on", SHARE, shape=4)
        slope = pm.Normal("slope", 0, WIDTH, shape=4)
        pm.Normal("y", pt.dot(DESIGN, on * slope), 1.0, observed=RESPONSE)
    return model


@cache
def log_masses() -> np.ndarray:
    """Log mass of each of the sixteen subsets, in the order of binary numbers."""
    found = []
    for number in range(16):
        on = np.array([number >> j & 1 for j in range(4)], bool)
        covariance = np.eye(40) + WIDTH**2 * DESIGN[:, on] @ DESIGN[:, on].T
        log_prior = on.sum() * np.log(SHARE) + (~on).sum() * np.log1p(-SHARE)
        found.append(
            log_prior + stats.multivariate_normal.logpdf(RESPONSE, np.zeros(40), covariance)
        )
    return np.array(found)


def log_evidence() -> float:
    """Exact log evidence."""
    return float(special.logsumexp(log_masses()))

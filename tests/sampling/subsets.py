"""Regressions on all subsets of the regressors, with the evidence of each in closed form.

``s ~ InvGamma(a, b)``, ``intercept ~ N(0, s 25)``, ``beta_j ~ N(0, s c^2)``, ``y ~ N(X beta, s)``:
``Z`` is the multivariate Student-t density at ``y`` with ``2 a`` degrees of freedom, location 0 and
shape ``(b/a) (I + 25 1 1' + c^2 X X')``.
"""

from itertools import product

import numpy as np
import pymc as pm

from scipy import stats

A, B, C, INTERCEPT = 3.0, 2.0, 0.7, 5.0

# Heat of cement by its composition (Woods, Steinour & Starke 1932; Hald 1952).
CEMENT = np.array(
    [
        [7, 26, 6, 60, 78.5],
        [1, 29, 15, 52, 74.3],
        [11, 56, 8, 20, 104.3],
        [11, 31, 8, 47, 87.6],
        [7, 52, 6, 33, 95.9],
        [11, 55, 9, 22, 109.2],
        [3, 71, 17, 6, 102.7],
        [1, 31, 22, 44, 72.5],
        [2, 54, 18, 22, 93.1],
        [21, 47, 4, 26, 115.9],
        [1, 40, 23, 34, 83.8],
        [11, 66, 9, 12, 113.3],
        [10, 68, 8, 12, 109.4],
    ]
)


def standardised(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return regressors and response, the last column, with mean 0 and standard deviation 1."""
    z = (table - table.mean(axis=0)) / table.std(axis=0)
    return z[:, :-1], z[:, -1]


def model(x: np.ndarray, y: np.ndarray) -> pm.Model:
    """Return the regression with the mask of the regressors as data."""
    with pm.Model() as built:
        mask = pm.Data("mask", np.ones(x.shape[1]))
        variance = pm.InverseGamma("variance", A, B)
        sigma = pm.math.sqrt(variance)
        intercept = pm.Normal("intercept", 0.0, INTERCEPT * sigma)
        slope = pm.Normal("slope", 0.0, C * sigma, shape=x.shape[1])
        effect = pm.Deterministic("effect", mask * slope)
        pm.Normal("y", intercept + pm.math.dot(x, effect), sigma, observed=y)
    return built


def masks(count: int) -> dict[str, np.ndarray]:
    """Return the masks of all subsets, by names such as "0110"."""
    rows = [np.array(bits, dtype=float) for bits in product([0, 1], repeat=count)]
    return {"".join(str(int(bit)) for bit in row): row for row in rows}


def log_evidence(x: np.ndarray, y: np.ndarray, mask: np.ndarray) -> float:
    """Return the exact log evidence of a subset."""
    own, n = x * mask, len(y)
    shape = (B / A) * (np.eye(n) + INTERCEPT**2 + C**2 * own @ own.T)
    return float(stats.multivariate_t.logpdf(y, np.zeros(n), shape, df=2 * A))

"""Repetitions with dependent draws of an exact posterior, and the share of intervals that cover.

The posteriors are those of normal regressions with known error, whose evidences are normal
densities: ``y ~ N(X b, 1)``, ``b_j ~ N(0, s)`` on the first columns of ``X``. Draws follow an
autoregression that leaves the posterior invariant, as those of a Markov chain do:

    b_t - m = rho (b_{t-1} - m) + sqrt(1 - rho^2) L z_t.
"""

import numpy as np
import pymc as pm

from scipy import stats

from pymc_anneal.base.arviz_compat import container
from pymc_anneal.results.container import dataset

REPETITIONS = 300
CORRELATION = 0.6
SCALE = 1.5
_RNG = np.random.default_rng(1)
X = _RNG.normal(size=(40, 3)) @ np.array([[1.0, 0.6, 0.2], [0.0, 0.8, 0.4], [0.0, 0.0, 0.9]])
Y = X @ [0.5, -0.4, 0.2] + _RNG.normal(size=40)


def regression(columns: int) -> pm.Model:
    """Return the regression on the first columns, with the prior scale as data."""
    with pm.Model() as model:
        scale = pm.Data("scale", SCALE)
        slopes = [pm.Normal(f"slope{j}", 0, scale) for j in range(columns)]
        pm.Normal("y", sum(s * X[:, j] for j, s in enumerate(slopes)), 1, observed=Y)
    return model


def log_evidence(columns: int, scale: float = SCALE) -> float:
    """Return the exact log evidence, in nats."""
    x = X[:, :columns]
    covariance = np.eye(len(Y)) + scale**2 * x @ x.T
    return float(stats.multivariate_normal(np.zeros(len(Y)), covariance).logpdf(Y))


def posterior(columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return mean ``(d,)`` and covariance ``(d, d)`` of the slopes."""
    x = X[:, :columns]
    covariance = np.linalg.inv(x.T @ x + np.eye(columns) / SCALE**2)
    return covariance @ x.T @ Y, covariance


def autoregression(
    mean: np.ndarray, covariance: np.ndarray, seed: object, shape: tuple[int, int] = (4, 500)
) -> np.ndarray:
    """Return dependent draws of a normal distribution, shape ``(chains, draws, d)``."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(*shape, len(mean)))
    for t in range(1, shape[1]):
        z[:, t] = CORRELATION * z[:, t - 1] + np.sqrt(1 - CORRELATION**2) * z[:, t]
    return mean + z @ np.linalg.cholesky(covariance).T


def dependent_draws(columns: int, seed: object, shape: tuple[int, int] = (4, 500)) -> object:
    """Return a container of dependent draws of the slopes."""
    x = autoregression(*posterior(columns), seed, shape)
    values = {f"slope{j}": x[..., j] for j in range(columns)}
    return container({"posterior": dataset(values, ("chain", "draw"))})


def coverage(scores: list[float]) -> float:
    """Return the share of errors, in standard errors, inside of 95 % intervals."""
    assert len(scores) == REPETITIONS
    return float(np.mean(np.abs(scores) < 1.96))


def covers(scores: list[float]) -> bool:
    """Whether 92 to 98 % of the intervals contain the exact value."""
    return 0.92 <= coverage(scores) <= 0.98

"""Regressions: linear with a normal-inverse-gamma prior, and a Gaussian process."""

import numpy as np
import pymc as pm

from scipy import stats

from tests.problems.problem import Problem


def nig_regression_data(n_rows: int, n_coefficients: int) -> tuple[np.ndarray, np.ndarray]:
    """Return covariates and response of the normal-inverse-gamma regressions.

    Parameters
    ----------
    n_rows : int
        Number of observations.
    n_coefficients : int
        Number of covariates.

    Returns
    -------
    tuple of np.ndarray
        Covariates (n_rows, n_coefficients) and response (n_rows,).
    """
    rng = np.random.default_rng(n_coefficients)
    covariates = rng.normal(size=(n_rows, n_coefficients))
    coefficients = np.linspace(-0.5, 1.0, n_coefficients)
    return covariates, covariates @ coefficients + 0.8 * rng.normal(size=n_rows)


def nig_regression(n_rows: int, n_coefficients: int) -> Problem:
    """Linear regression with the normal-inverse-gamma prior.

    ``s ~ InvGamma(a, b)``, ``coefficients | s ~ N(0, s c^2 I)``, ``y | . ~ N(X coefficients, s I)``
    with ``s`` the variance: ``Z`` is the multivariate Student-t density at ``y`` with ``2 a``
    degrees of freedom, location 0 and shape ``(b/a) (I + c^2 X X')``. Here ``a, b, c = 3, 2, 0.7``.

    Parameters
    ----------
    n_rows : int
        Number of observations.
    n_coefficients : int
        Number of covariates.

    Returns
    -------
    Problem
        Named ``nig_regression_<n_coefficients>``.
    """
    covariates, y = nig_regression_data(n_rows, n_coefficients)
    a, b, c = 3.0, 2.0, 0.7

    def build() -> pm.Model:
        with pm.Model() as model:
            variance = pm.InverseGamma("variance", a, b)
            sigma = pm.math.sqrt(variance)
            coefficients = pm.Normal("coefficients", 0.0, c * sigma, shape=n_coefficients)
            pm.Normal("y", covariates @ coefficients, sigma, observed=y)
        return model

    shape = (b / a) * (np.eye(n_rows) + c**2 * covariates @ covariates.T)
    log_evidence = float(stats.multivariate_t.logpdf(y, np.zeros(n_rows), shape, df=2.0 * a))
    note = f"{n_coefficients + 1} dimensions, prior scale depends on a parameter"
    return Problem(f"nig_regression_{n_coefficients}", build, log_evidence, note)


def gp_regression() -> Problem:
    """Gaussian process with its latent function sampled: ``f ~ N(0, K)``, ``y ~ N(f, sigma^2 I)``.

    ``Z = N(y; 0, K + sigma^2 I)``, ``K_ij = A^2 exp(-(t_i - t_j)^2 / (2 l^2)) + 1e-4 [i = j]``;
    here ``A, l, sigma = 1.3, 0.6, 0.4``.
    """
    inputs = np.linspace(0.0, 1.0, 12) ** 1.2 * 6.0
    y = np.sin(inputs) + 0.15 * inputs + 0.3 * np.cos(7.0 * np.arange(12.0))
    kernel = 1.3**2 * np.exp(-0.5 * ((inputs[:, None] - inputs) / 0.6) ** 2) + 1e-4 * np.eye(12)
    noise = 0.4**2 * np.eye(12)

    def build() -> pm.Model:
        with pm.Model() as model:
            f = pm.MvNormal("f", np.zeros(12), cov=kernel)
            pm.MvNormal("y", f, cov=noise, observed=y)
        return model

    log_evidence = float(stats.multivariate_normal.logpdf(y, np.zeros(12), kernel + noise))
    return Problem("gp_regression", build, log_evidence, "strongly correlated multivariate prior")

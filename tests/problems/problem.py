"""The record of a problem, and the integrals that several problems share."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pymc as pm

from scipy import integrate, stats


@dataclass(frozen=True)
class Problem:
    """A PyMC model with its exact log evidence.

    Attributes
    ----------
    name : str
        Identifier, unique in ``PROBLEMS``.
    build : Callable[[], pm.Model]
        Returns a new model at each call.
    log_evidence : float
        Log marginal likelihood in nats, for the prior normalised over its support.
    note : str
        The difficulty the problem stands for.
    """

    name: str
    build: Callable[[], pm.Model]
    log_evidence: float
    note: str


def log_quadrature(
    log_integrand: Callable[[np.ndarray], np.ndarray], lower: float, upper: float
) -> float:
    """Return the log integral of a positive function given by its logarithm.

    Parameters
    ----------
    log_integrand : Callable[[np.ndarray], np.ndarray]
        Vectorised logarithm of the integrand, finite inside the interval.
    lower, upper : float
        Finite limits.

    Returns
    -------
    float
        Logarithm of the integral.
    """
    grid = np.linspace(lower, upper, 10_002)[1:-1]
    values = log_integrand(grid)
    peak, shift = grid[np.argmax(values)], np.max(values)
    integral, _ = integrate.quad(
        lambda t: np.exp(log_integrand(np.array([t]))[0] - shift),
        lower,
        upper,
        points=[peak],
        epsabs=0.0,
        epsrel=1e-11,
        limit=500,
    )
    return float(shift + np.log(integral))


def log_evidence_normal_mean(
    y: np.ndarray, sigma: float, prior_mean: float, prior_sd: float
) -> float:
    """Return the log evidence of ``mu ~ N(m_0, s_0)``, ``y_i ~ N(mu, sigma)``.

    ``Z = N(y; m_0 1, sigma^2 I + s_0^2 1 1')``.

    Parameters
    ----------
    y : np.ndarray
        Observations.
    sigma : float
        Known standard deviation of each observation.
    prior_mean, prior_sd : float
        Parameters of the prior of the mean.

    Returns
    -------
    float
        Log evidence.
    """
    covariance = sigma**2 * np.eye(y.size) + prior_sd**2
    return float(stats.multivariate_normal.logpdf(y, np.full(y.size, prior_mean), covariance))


def normal_mean_posterior(
    y: np.ndarray, sigma: float, prior_mean: float, prior_sd: float
) -> tuple[float, float]:
    """Return posterior mean and standard deviation of ``mu ~ N(m_0, s_0)``, ``y_i ~ N(mu, sigma)``.

    ``1/s^2 = 1/s_0^2 + n/sigma^2`` and ``m = s^2 (m_0/s_0^2 + sum y_i/sigma^2)``.

    Parameters
    ----------
    y : np.ndarray
        Observations.
    sigma : float
        Known standard deviation of each observation.
    prior_mean, prior_sd : float
        Parameters of the prior of the mean.

    Returns
    -------
    tuple of float
        Posterior mean and posterior standard deviation.
    """
    precision = 1.0 / prior_sd**2 + y.size / sigma**2
    mean = (prior_mean / prior_sd**2 + y.sum() / sigma**2) / precision
    return float(mean), float(precision**-0.5)

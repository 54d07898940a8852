"""Models with a scale parameter or group effects."""

import numpy as np
import pymc as pm

from scipy import stats

from tests.problems.problem import Problem, log_quadrature


def half_cauchy_scale() -> Problem:
    """Scale with a heavy-tailed prior: ``sigma ~ HalfCauchy(5)``, ``y_i ~ N(0, sigma)``.

    ``Z = int_0^1 prod_i N(y_i; 0, sigma(u)) du``, ``sigma(u) = 5 tan(pi u / 2)`` the quantile.
    """
    y = np.array([0.8, -2.1, 3.7, 0.2, -1.4, 5.9])

    def build() -> pm.Model:
        with pm.Model() as model:
            sigma = pm.HalfCauchy("sigma", 5.0)
            pm.Normal("y", 0.0, sigma, observed=y)
        return model

    def log_likelihood(u: np.ndarray) -> np.ndarray:
        sigma = 5.0 * np.tan(0.5 * np.pi * u)
        return stats.norm.logpdf(y, 0.0, sigma[:, None]).sum(axis=1)

    log_evidence = log_quadrature(log_likelihood, 0.0, 1.0)
    return Problem("half_cauchy_scale", build, log_evidence, "heavy tail on a log scale")


def eight_schools() -> Problem:
    """Eight schools, non-centred: ``mu ~ N(0, 5)``, ``tau ~ HalfCauchy(5)``.

    ``theta_i = mu + tau t_i``, ``t_i ~ N(0, 1)``, ``y_i ~ N(theta_i, sigma_i)``:
    ``Z = int_0^1 N(y; 0, 5^2 1 1' + diag(tau(u)^2 + sigma_i^2)) du``,
    ``tau(u) = 5 tan(pi u / 2)``. With ``v_i = tau^2 + sigma_i^2`` and ``P = 1/25 + sum 1/v_i`` the
    logarithm of that normal density is
    ``-(n/2) log 2 pi - 1/2 (sum log v_i + log 25 P + sum y_i^2/v_i - (sum y_i/v_i)^2/P)``.

    Data: Rubin, D. B. (1981). Estimation in parallel randomized experiments. Journal of
    Educational Statistics 6(4), 377-401.
    """
    y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    sigma = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])

    def build() -> pm.Model:
        with pm.Model(coords={"school": list("ABCDEFGH")}) as model:
            mu = pm.Normal("mu", 0.0, 5.0)
            tau = pm.HalfCauchy("tau", 5.0)
            theta_tilde = pm.Normal("theta_tilde", 0.0, 1.0, dims="school")
            theta = pm.Deterministic("theta", mu + tau * theta_tilde, dims="school")
            pm.Normal("y", theta, sigma, observed=y, dims="school")
        return model

    def log_likelihood(u: np.ndarray) -> np.ndarray:
        v = (5.0 * np.tan(0.5 * np.pi * u[:, None])) ** 2 + sigma**2
        precision = 1.0 / 25.0 + (1.0 / v).sum(axis=1)
        square = (y**2 / v).sum(axis=1) - (y / v).sum(axis=1) ** 2 / precision
        log_determinant = np.log(v).sum(axis=1) + np.log(25.0 * precision)
        return -0.5 * (y.size * np.log(2.0 * np.pi) + log_determinant + square)

    log_evidence = log_quadrature(log_likelihood, 0.0, 1.0)
    return Problem("eight_schools", build, log_evidence, "hierarchical, dims and deterministics")


def zero_sum() -> Problem:
    """Group effects that sum to zero: ``mu ~ N(1, 2)``, ``effects ~ ZeroSumNormal(1.5)``.

    ``y_i ~ N(mu + effects_(g_i), 0.8)`` for ``J`` groups, ``G_ij = [g_i = j]``:
    ``Z = N(y; m_0 1, s_0^2 1 1' + t^2 G (I - 1 1'/J) G' + sigma^2 I)`` with ``t`` the scale of the
    effects.
    """
    labels = np.array([0, 0, 0, 1, 2, 2, 3, 3, 3, 3])
    y = np.array([2.1, 3.4, 2.8, -0.9, 0.6, 1.3, 0.2, -0.5, 1.0, 0.4])

    def build() -> pm.Model:
        with pm.Model() as model:
            mu = pm.Normal("mu", 1.0, 2.0)
            effects = pm.ZeroSumNormal("effects", 1.5, shape=4)
            pm.Normal("y", mu + effects[labels], 0.8, observed=y)
        return model

    design = np.eye(4)[labels]
    effects_covariance = 1.5**2 * (np.eye(4) - 0.25)
    covariance = 2.0**2 + design @ effects_covariance @ design.T + 0.8**2 * np.eye(y.size)
    log_evidence = stats.multivariate_normal.logpdf(y, np.full(y.size, 1.0), covariance)
    return Problem("zero_sum", build, float(log_evidence), "prior on a linear subspace")

"""Posteriors far from the prior, and a posterior of two modes."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from scipy import special, stats

from tests.problems.problem import Problem, log_evidence_normal_mean, log_quadrature


def student_t_conflict() -> Problem:
    """Data ten prior standard deviations away from the prior.

    ``theta ~ t_4(0, s)`` with ``s^2 = (nu - 2)/nu`` so that its variance is one,
    ``y_i ~ N(theta, 1)``, mean of ``y`` 10: ``Z = int t_4(theta; 0, s) prod_i N(y_i; theta, 1)``.
    """
    y = 10.0 + np.array([-1.2, 0.1, 0.4, -0.7, 1.4])
    scale = np.sqrt(0.5)

    def build() -> pm.Model:
        with pm.Model() as model:
            theta = pm.StudentT("theta", nu=4.0, mu=0.0, sigma=scale)
            pm.Normal("y", theta, 1.0, observed=y)
        return model

    def log_joint(theta: np.ndarray) -> np.ndarray:
        log_likelihood = stats.norm.logpdf(y, theta[:, None]).sum(axis=1)
        return stats.t.logpdf(theta, 4.0, scale=scale) + log_likelihood

    log_evidence = log_quadrature(log_joint, -5.0, 20.0)
    return Problem("student_t_conflict", build, log_evidence, "prior and likelihood disagree")


def informative(exponent: int) -> Problem:
    """One very precise observation: ``mu ~ N(0, 100)``, ``y ~ N(mu, sigma)``, ``y = 4.2``.

    ``Z = N(y; 0, 100^2 + sigma^2)`` with ``sigma = 10^-exponent``.

    Parameters
    ----------
    exponent : int
        Negative decimal exponent of the standard deviation.

    Returns
    -------
    Problem
        Named ``informative_1e<exponent>``.
    """
    y, sigma = np.array([4.2]), 10.0**-exponent

    def build() -> pm.Model:
        with pm.Model() as model:
            mu = pm.Normal("mu", 0.0, 100.0)
            pm.Normal("y", mu, sigma, observed=y)
        return model

    log_evidence = log_evidence_normal_mean(y, sigma, 0.0, 100.0)
    note = "the first temperatures are far below 1e-6"
    return Problem(f"informative_1e{exponent}", build, log_evidence, note)


def two_modes() -> Problem:
    """Two separated modes of unequal weight and width in two dimensions.

    ``x ~ N(0, 5^2 I)``, ``L(x) = sum_k w_k N(x; m_k, s_k^2 I)``:
    ``Z = sum_k w_k N(m_k; 0, (25 + s_k^2) I)``; here ``w = (0.3, 0.7)``,
    ``m = ((-4, -3.5), (3, 2.5))``, ``s = (0.4, 0.9)``.
    """
    weights, scales = np.array([0.3, 0.7]), np.array([0.4, 0.9])
    means = np.array([[-4.0, -3.5], [3.0, 2.5]])

    def build() -> pm.Model:
        with pm.Model() as model:
            x = pm.Normal("x", 0.0, 5.0, shape=2)
            log_normal = -0.5 * ((x - means) / scales[:, None]) ** 2
            constants = np.log(weights) - np.log(2.0 * np.pi * scales**2)
            pm.Potential("modes", pt.logsumexp(log_normal.sum(axis=1) + constants))
        return model

    marginal_sd = np.hypot(5.0, scales)[:, None]
    log_terms = np.log(weights) + stats.norm.logpdf(means, 0.0, marginal_sd).sum(axis=1)
    note = "mass must be shared between two modes, not split evenly"
    return Problem("two_modes", build, float(special.logsumexp(log_terms)), note)

"""Parameters on an interval, a half-line, a circle or an ordered region."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc.distributions.transforms import ordered
from scipy import special, stats

from tests.problems.problem import (
    Problem,
    log_evidence_normal_mean,
    log_quadrature,
    normal_mean_posterior,
)


def half_space() -> Problem:
    """A potential that forbids half of the prior: ``mu ~ N(0, 1)``, ``L(mu) = [mu >= 0]``.

    ``Z = 1/2``.
    """

    def build() -> pm.Model:
        with pm.Model() as model:
            mu = pm.Normal("mu", 0.0, 1.0)
            pm.Potential("positive", pt.switch(mu < 0.0, -np.inf, 0.0))
        return model

    return Problem("half_space", build, float(np.log(0.5)), "zero likelihood is legal")


def half_space_data() -> Problem:
    """A potential that forbids ``mu < 0``, with data of negative mean.

    ``mu ~ N(0.5, 2)``, ``y_i ~ N(mu, 1.5)``, ``L`` multiplied by ``[mu >= 0]``:
    ``Z = N(y; m_0 1, sigma^2 I + s_0^2 1 1') Phi(m/s)`` with ``m, s`` the posterior mean and
    standard deviation of ``mu`` without the potential.
    """
    y = np.array([-1.9, 0.4, -0.8, 1.3])

    def build() -> pm.Model:
        with pm.Model() as model:
            mu = pm.Normal("mu", 0.5, 2.0)
            pm.Normal("y", mu, 1.5, observed=y)
            pm.Potential("positive", pt.switch(mu < 0.0, -np.inf, 0.0))
        return model

    mean, sd = normal_mean_posterior(y, 1.5, 0.5, 2.0)
    log_evidence = log_evidence_normal_mean(y, 1.5, 0.5, 2.0) + stats.norm.logcdf(mean / sd)
    return Problem("half_space_data", build, float(log_evidence), "the mode is on a hard boundary")


def ordered_transform() -> Problem:
    """Three means with the ``ordered`` transform; the prior is normalised on the ordered region.

    ``mu_k ~ N(0, 2)`` given ``mu_1 < mu_2 < mu_3``, ``y_ki ~ N(mu_k, 1)``. With ``Z_k`` the
    evidence and ``N(m_k, s_k)`` the posterior of the group ``k`` alone,
    ``Z = 3! prod_k Z_k P(x_1 < x_2 < x_3)``, ``x_k ~ N(m_k, s_k)``, where
    ``P = int N(x; m_2, s_2) Phi((x - m_1)/s_1) Phi((m_3 - x)/s_3) dx``.

    PyMC evaluates the product of the three normal densities on the ordered region, whose integral
    is ``1/3!``, and its prior draws ignore the order; the factor ``3!`` restores a density.
    """
    groups = [np.array([-1.6, -0.2, -1.9]), np.array([0.7, 1.1]), np.array([0.9, 1.8, -0.3, 1.2])]
    labels = np.repeat(np.arange(3), [group.size for group in groups])

    def build() -> pm.Model:
        with pm.Model() as model:
            mu = pm.Normal("mu", 0.0, 2.0, shape=3, transform=ordered, initval=[-1.0, 0.0, 1.0])
            pm.Normal("y", mu[labels], 1.0, observed=np.concatenate(groups))
        return model

    (m_1, s_1), (m_2, s_2), (m_3, s_3) = (
        normal_mean_posterior(group, 1.0, 0.0, 2.0) for group in groups
    )

    def log_integrand(x: np.ndarray) -> np.ndarray:
        log_order = stats.norm.logcdf((x - m_1) / s_1) + stats.norm.logcdf((m_3 - x) / s_3)
        return stats.norm.logpdf(x, m_2, s_2) + log_order

    log_evidence = np.log(6.0) + log_quadrature(log_integrand, m_2 - 12.0 * s_2, m_2 + 12.0 * s_2)
    log_evidence += sum(log_evidence_normal_mean(group, 1.0, 0.0, 2.0) for group in groups)
    note = "prior draws must follow the density on the ordered region"
    return Problem("ordered_transform", build, float(log_evidence), note)


def uniform_exponential() -> Problem:
    """Prior on an interval: ``rate ~ Uniform(a, b)``, ``y_i ~ Exponential(rate)``.

    ``Z = int_a^b r^n exp(-r S) dr / (b - a)``
    ``= Gamma(n + 1) (P(n + 1, b S) - P(n + 1, a S)) / (S^(n + 1) (b - a))`` with ``S = sum y_i``
    and ``P`` the regularised lower incomplete gamma function; here ``a, b = 0.5, 2``.
    """
    y = np.array([0.9, 0.1, 2.4, 1.3, 0.6, 3.1])
    lower, upper = 0.5, 2.0

    def build() -> pm.Model:
        with pm.Model() as model:
            rate = pm.Uniform("rate", lower, upper)
            pm.Exponential("y", rate, observed=y)
        return model

    shape, total = y.size + 1.0, y.sum()
    mass = special.gammainc(shape, upper * total) - special.gammainc(shape, lower * total)
    log_evidence = special.gammaln(shape) - shape * np.log(total) + np.log(mass / (upper - lower))
    return Problem("uniform_exponential", build, float(log_evidence), "interval, mode at its edge")


def log_bessel_i0(kappa: np.ndarray | float) -> np.ndarray | float:
    """Logarithm of the modified Bessel function of the first kind of order zero.

    Parameters
    ----------
    kappa : np.ndarray or float
        Argument, not negative.

    Returns
    -------
    np.ndarray or float
        ``log I_0(kappa)``.
    """
    return np.log(special.i0e(kappa)) + kappa


def von_mises_circular() -> Problem:
    """Direction on a circle: ``mu ~ VonMises(m_0, k_0)``, ``y_i ~ VonMises(mu, k)``.

    ``Z = I_0(K) / (I_0(k_0) (2 pi I_0(k))^n)`` with ``K = |k_0 e^(i m_0) + k sum_j e^(i y_j)|``;
    here ``m_0, k_0, k = 2.5, 1.2, 2.3``.

    The circular transform maps the whole line onto the circle, so the density in unconstrained
    space is periodic and integrates to ``Z`` over one period only.
    """
    y = np.array([-2.9, 2.7, 3.0, -2.2, 1.9])
    mean, prior_concentration, concentration = 2.5, 1.2, 2.3

    def build() -> pm.Model:
        with pm.Model() as model:
            mu = pm.VonMises("mu", mean, prior_concentration)
            pm.VonMises("y", mu, concentration, observed=y)
        return model

    resultant = prior_concentration * np.exp(1j * mean) + concentration * np.exp(1j * y).sum()
    log_evidence = log_bessel_i0(np.abs(resultant)) - log_bessel_i0(prior_concentration)
    log_evidence -= y.size * (np.log(2.0 * np.pi) + log_bessel_i0(concentration))
    note = "circular transform, mass across the cut at pi"
    return Problem("von_mises_circular", build, float(log_evidence), note)

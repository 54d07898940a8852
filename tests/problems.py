"""Models whose log evidence is known exactly.

The tests hold every estimate of the marginal likelihood against this list. Each problem comes from
one small function: it fixes the data, computes the evidence by a closed form or a one-dimensional
quadrature, and returns both with a builder of the PyMC model. The data are asymmetric throughout,
because an error of sign or of direction can cancel on symmetric data.

Symbols: ``y`` data, ``n`` their number, ``Z`` evidence, ``N(y; m, S)`` normal density with mean
``m`` and covariance ``S``, ``1`` the vector of ones, ``I`` the identity. Second arguments of normal
distributions are standard deviations where a scalar is written after ``~``. Logarithms are natural.
"""

import itertools
import warnings

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc.distributions.transforms import ordered
from scipy import integrate, special, stats


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
    """Log of the integral of a positive function given by its logarithm.

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
    """Log evidence of ``mu ~ N(m_0, s_0)``, ``y_i ~ N(mu, sigma)``.

    ``Z = N(y; m_0 1, sigma^2 I + s_0^2 1 1')``.

    Parameters
    ----------
    y : np.ndarray
        Observations.
    sigma : float
        Their known standard deviation.
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
    """Posterior mean and standard deviation of ``mu ~ N(m_0, s_0)``, ``y_i ~ N(mu, sigma)``.

    ``1/s^2 = 1/s_0^2 + n/sigma^2`` and ``m = s^2 (m_0/s_0^2 + sum y_i/sigma^2)``.

    Parameters
    ----------
    y : np.ndarray
        Observations.
    sigma : float
        Their known standard deviation.
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


NORMAL_DATA = np.array([0.3, 2.9, 1.1, 4.2, 1.7, 0.8, 6.3])


def conjugate_normal() -> Problem:
    """Normal mean, known standard deviation: ``mu ~ N(-1, 2)``, ``y_i ~ N(mu, 1.5)``.

    ``Z = N(y; m_0 1, sigma^2 I + s_0^2 1 1')``.
    """

    def build() -> pm.Model:
        with pm.Model() as model:
            mu = pm.Normal("mu", -1.0, 2.0)
            pm.Normal("y", mu, 1.5, observed=NORMAL_DATA)
        return model

    log_evidence = log_evidence_normal_mean(NORMAL_DATA, 1.5, -1.0, 2.0)
    return Problem("conjugate_normal", build, log_evidence, "one parameter, everything normal")


def initval() -> Problem:
    """The model of `conjugate_normal` with a starting value that must have no effect.

    ``Z = N(y; m_0 1, sigma^2 I + s_0^2 1 1')``, whatever ``initval`` is.
    """

    def build() -> pm.Model:
        with pm.Model() as model:
            mu = pm.Normal("mu", -1.0, 2.0, initval=4.0)
            pm.Normal("y", mu, 1.5, observed=NORMAL_DATA)
        return model

    log_evidence = log_evidence_normal_mean(NORMAL_DATA, 1.5, -1.0, 2.0)
    return Problem("initval", build, log_evidence, "particles must start from prior draws")


def nig_regression_data(n_rows: int, n_coefficients: int) -> tuple[np.ndarray, np.ndarray]:
    """Covariates and response of the normal-inverse-gamma regressions.

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


def beta_binomial() -> Problem:
    """Success probability: ``p ~ Beta(a, b)``, ``y_i ~ Binomial(n_i, p)``.

    ``Z = prod_i C(n_i, y_i) B(a + sum y_i, b + sum (n_i - y_i)) / B(a, b)``; here ``a, b = 2, 5``.
    """
    trials, successes = np.array([12, 7, 20]), np.array([9, 6, 14])
    a, b = 2.0, 5.0

    def build() -> pm.Model:
        with pm.Model() as model:
            p = pm.Beta("p", a, b)
            pm.Binomial("y", trials, p, observed=successes)
        return model

    total, failures = successes.sum(), (trials - successes).sum()
    log_coefficients = np.log(special.comb(trials, successes)).sum()
    log_ratio = special.betaln(a + total, b + failures) - special.betaln(a, b)
    return Problem("beta_binomial", build, float(log_coefficients + log_ratio), "logit transform")


def gamma_poisson() -> Problem:
    """Rate of counts: ``rate ~ Gamma(a, b)``, ``y_i ~ Poisson(rate)``.

    ``Z = b^a Gamma(a + S) / (Gamma(a) (b + n)^(a + S) prod_i y_i!)`` with ``S = sum y_i``; here
    ``a, b = 2.5, 0.8``.
    """
    y = np.array([4, 9, 6, 11, 5])
    a, b = 2.5, 0.8

    def build() -> pm.Model:
        with pm.Model() as model:
            rate = pm.Gamma("rate", a, b)
            pm.Poisson("y", rate, observed=y)
        return model

    shape = a + y.sum()
    log_evidence = a * np.log(b) - special.gammaln(a) - special.gammaln(y + 1.0).sum()
    log_evidence += special.gammaln(shape) - shape * np.log(b + y.size)
    return Problem("gamma_poisson", build, float(log_evidence), "log transform, counts")


def dirichlet_multinomial() -> Problem:
    """Category probabilities: ``p ~ Dirichlet(a)``, ``y ~ Multinomial(n, p)``.

    ``Z = C(n; y) B(a + y) / B(a)`` with the multinomial coefficient ``C(n; y)`` and
    ``B(a) = prod_k Gamma(a_k) / Gamma(sum_k a_k)``; here ``a = (0.8, 1.5, 2, 3)``.
    """
    counts, concentration = np.array([14, 3, 8, 1]), np.array([0.8, 1.5, 2.0, 3.0])
    n_trials = counts.sum()

    def build() -> pm.Model:
        with pm.Model() as model:
            p = pm.Dirichlet("p", concentration)
            pm.Multinomial("y", n_trials, p, observed=counts)
        return model

    log_evidence = stats.dirichlet_multinomial.logpmf(counts, concentration, n_trials)
    return Problem("dirichlet_multinomial", build, float(log_evidence), "simplex transform")


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
    """A potential that forbids ``mu < 0``, with data that pull there.

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


def eight_schools() -> Problem:
    """Eight schools, non-centred: ``mu ~ N(0, 5)``, ``tau ~ HalfCauchy(5)``.

    ``theta_i = mu + tau t_i``, ``t_i ~ N(0, 1)``, ``y_i ~ N(theta_i, sigma_i)``:
    ``Z = int_0^1 N(y; 0, 5^2 1 1' + diag(tau(u)^2 + sigma_i^2)) du``,
    ``tau(u) = 5 tan(pi u / 2)``. With ``v_i = tau^2 + sigma_i^2`` and ``P = 1/25 + sum 1/v_i`` the
    logarithm of that normal density is
    ``-(n/2) log 2 pi - 1/2 (sum log v_i + log 25 P + sum y_i^2/v_i - (sum y_i/v_i)^2/P)``.

    Data: Rubin, D. B. (1981). Estimation in parallel randomized experiments. StageLog of
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


def lkj_prior_only() -> Problem:
    """Covariance matrix without data: ``LKJCholeskyCov(3, eta=2)``, ``sd ~ LogNormal(0, 0.5)``.

    ``Z = 1``: the prior alone.

    With ``C = int det(R)^(eta - 1) dR`` over correlation matrices the density needs the factor
    ``1/C``; PyMC 5 multiplies by ``C`` instead, so that its density integrates to ``C^2``. The
    excess cancels between prior and posterior, not between a fitted reference and the posterior.
    """

    def build() -> pm.Model:
        with pm.Model() as model:
            pm.LKJCholeskyCov("chol", n=3, eta=2.0, sd_dist=pm.LogNormal.dist(0.0, 0.5))
        return model

    return Problem("lkj_prior_only", build, 0.0, "no likelihood, Cholesky transform")


def no_observed() -> Problem:
    """A hierarchy without data: ``scale ~ Gamma(3, 2)``, ``x_i ~ N(0.5, scale)``.

    ``Z = 1``.
    """

    def build() -> pm.Model:
        with pm.Model() as model:
            scale = pm.Gamma("scale", 3.0, 2.0)
            pm.Normal("x", 0.5, scale, shape=2)
        return model

    return Problem("no_observed", build, 0.0, "neither data nor potential")


def potential_only() -> Problem:
    """Likelihood given by a potential alone: ``x ~ Gamma(a, b)``, ``log L(x) = 1.7 - c x``.

    ``Z = exp(1.7) (b / (b + c))^a``; here ``a, b, c = 2.5, 1.5, 4``.
    """
    a, b, c = 2.5, 1.5, 4.0

    def build() -> pm.Model:
        with pm.Model() as model:
            x = pm.Gamma("x", a, b)
            pm.Potential("likelihood", 1.7 - c * x)
        return model

    log_evidence = 1.7 + a * np.log(b / (b + c))
    return Problem("potential_only", build, float(log_evidence), "no observed variable")


def imputed_missing() -> Problem:
    """Missing observations: ``mu ~ N(-1, 2)``, ``y_i ~ N(mu, 1.5)``, some ``y_i`` missing.

    ``Z = N(y_o; m_0 1, sigma^2 I + s_0^2 1 1')`` with ``y_o`` the entries that are there: the
    missing ones are parameters with a normalised prior and integrate to one.
    """
    y = np.array([0.3, np.nan, 1.1, 4.2, np.nan, 0.8, 6.3])

    def build() -> pm.Model:
        with pm.Model() as model, warnings.catch_warnings():
            warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
            mu = pm.Normal("mu", -1.0, 2.0)
            pm.Normal("y", mu, 1.5, observed=np.ma.masked_invalid(y))
        return model

    log_evidence = log_evidence_normal_mean(y[~np.isnan(y)], 1.5, -1.0, 2.0)
    return Problem("imputed_missing", build, log_evidence, "missing data become parameters")


def several_observed() -> Problem:
    """Two kinds of data on one rate: ``rate ~ Gamma(a, b)``.

    ``k_i ~ Poisson(t_i rate)``, ``w_j ~ Exponential(rate)``, ``j = 1..m``:
    ``Z = b^a Gamma(A) / (Gamma(a) B^A) prod_i t_i^(k_i) / k_i!`` with ``A = a + sum k_i + m`` and
    ``B = b + sum t_i + sum w_j``; here ``a, b = 1.5, 0.7``.
    """
    exposures, counts = np.array([1.0, 2.5, 0.5]), np.array([3, 4, 0])
    waits = np.array([0.2, 1.9, 0.7, 0.4])
    a, b = 1.5, 0.7

    def build() -> pm.Model:
        with pm.Model() as model:
            rate = pm.Gamma("rate", a, b)
            pm.Poisson("counts", exposures * rate, observed=counts)
            pm.Exponential("waits", rate, observed=waits)
        return model

    shape, inverse_scale = a + counts.sum() + waits.size, b + exposures.sum() + waits.sum()
    log_evidence = a * np.log(b) - special.gammaln(a)
    log_evidence += special.gammaln(shape) - shape * np.log(inverse_scale)
    log_evidence += (counts * np.log(exposures) - special.gammaln(counts + 1.0)).sum()
    return Problem("several_observed", build, float(log_evidence), "likelihood of two variables")


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


def ising(side: int = 4) -> Problem:
    """Ising model of side x side spins in a field, as Bernoulli variables and a potential.

    ``s_i = 2 x_i - 1``, ``x_i ~ Bernoulli(1/2)``, ``L = exp(J sum_(i~j) s_i s_j + h sum_i s_i)``:
    ``Z = 2^-(side^2) sum_s L(s)``; here ``J, h = 0.4, 0.1``.
    """
    coupling, field = 0.4, 0.1

    def energy(spin, module):
        down, right = spin[..., 1:, :] * spin[..., :-1, :], spin[..., 1:] * spin[..., :-1]
        pairs = module.sum(down, axis=(-2, -1)) + module.sum(right, axis=(-2, -1))
        return coupling * pairs + field * module.sum(spin, axis=(-2, -1))

    def build() -> pm.Model:
        with pm.Model() as model:
            up = pm.Bernoulli("up", 0.5, shape=(side, side))
            pm.Potential("energy", energy(2 * up - 1, pt))
        return model

    states = np.array(list(itertools.product((0, 1), repeat=side**2)))
    spins = 2 * states.reshape(-1, side, side) - 1
    log_evidence = special.logsumexp(energy(spins, np)) - side**2 * np.log(2.0)
    return Problem("ising", build, float(log_evidence), "binary variables alone, all coupled")


def mixture_indicators(count: int = 12) -> Problem:
    """Mixture of two normals with an indicator for each of ``count`` observations.

    ``z_i ~ Categorical(w)``, ``mu_k ~ N(m_k, s_k)``, ``y_i ~ N(mu_(z_i), sigma)``:
    ``Z = sum_z prod_i w_(z_i) prod_k Z_k(z)`` over all allocations, ``Z_k`` the evidence
    of a normal mean for the observations allocated to ``k``.
    """
    y = np.array([-1.3, 2.2, 0.4, 1.9, 3.4, -0.2, 2.7, 0.9, -2.1, 2.4, 1.1, 3.0])[:count]
    weights, means, scales, sigma = np.array([0.35, 0.65]), (-1.0, 2.0), (1.5, 1.0), 0.7

    def build() -> pm.Model:
        with pm.Model() as model:
            z = pm.Categorical("z", weights, shape=count)
            mu = pm.Normal("mu", means, scales, shape=2)
            pm.Normal("y", mu[z], sigma, observed=y)
        return model

    z = np.array(list(itertools.product((0, 1), repeat=count)))
    log_terms = np.log(weights)[z].sum(axis=1)
    for k in (0, 1):
        n, total, square = (((z == k) * y**p).sum(axis=1) for p in (0, 1, 2))
        # sum over the group of (y - m)^2, and N(y; m 1, sigma^2 I + s^2 1 1') by its eigenvectors.
        total, square = total - n * means[k], square - 2 * means[k] * total + n * means[k] ** 2
        inflated = 1 + n * scales[k] ** 2 / sigma**2
        quadratic = (square - scales[k] ** 2 / sigma**2 * total**2 / inflated) / sigma**2
        log_terms -= 0.5 * (quadratic + n * np.log(2 * np.pi * sigma**2) + np.log(inflated))
    note = "indicators by Gibbs, means by HMC"
    return Problem("mixture_indicators", build, float(special.logsumexp(log_terms)), note)


def unknown_trials() -> Problem:
    """Successes out of an unknown number of trials, with unknown probability.

    ``n ~ Poisson(m)``, ``p ~ Beta(a, b)``, ``y_j ~ Binomial(n, p)``, ``j = 1..J``, ``S = sum y``:
    ``Z = sum_n Poisson(n; m) prod_j C(n, y_j) B(a + S, b + J n - S) / B(a, b)``; here
    ``m, a, b = 13.7, 3, 4``.
    """
    y, mean, a, b = np.array([5, 9, 7]), 13.7, 3.0, 4.0

    def build() -> pm.Model:
        with pm.Model() as model:
            n = pm.Poisson("n", mean)
            p = pm.Beta("p", a, b)
            pm.Binomial("y", n, p, observed=y)
        return model

    n, total = np.arange(y.max(), 200), y.sum()
    log_terms = stats.poisson.logpmf(n, mean)
    for count in y:
        log_terms -= special.betaln(n - count + 1, count + 1) + np.log(n + 1)
    log_terms += special.betaln(a + total, b + y.size * n - total) - special.betaln(a, b)
    note = "an unbounded integer that the data bound from below, coupled to a probability"
    return Problem("unknown_trials", build, float(special.logsumexp(log_terms)), note)


def change_point(years: int = 18) -> Problem:
    """Poisson counts whose rate changes at an unknown time; one count is missing.

    ``s ~ DiscreteUniform(0, T)``, ``r_k ~ Gamma(a_k, b_k)``, ``y_t ~ Poisson(r_1 [t < s] + r_2
    [t >= s])``, ``t = 0..T - 1``: with ``S_k(s), n_k(s)`` the sum and number of the counts on
    either side, ``Z = sum_s (T + 1)^-1 prod_k b_k^a_k Gamma(a_k + S_k) / (Gamma(a_k)
    (b_k + n_k)^(a_k + S_k)) / prod_t y_t!``.
    """
    y = np.ma.masked_less([4, 5, 2, 6, 3, -1, 4, 3, 1, 0, 2, 1, 0, 1, 3, 0, 1, 0], 0)[:years]
    shapes, rates, time = np.array([2.0, 1.5]), np.array([0.6, 0.9]), np.arange(years)

    def build() -> pm.Model:
        with pm.Model() as model, warnings.catch_warnings():
            warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
            switch = pm.DiscreteUniform("switch", 0, years)
            rate = pm.Gamma("rate", shapes, rates, shape=2)
            pm.Poisson("y", pt.switch(time < switch, rate[0], rate[1]), observed=y)
        return model

    early = time < np.arange(years + 1)[:, None]
    there, count = ~np.ma.getmaskarray(y), y.filled(0)
    log_terms = np.full(years + 1, -np.log(years + 1.0))
    log_terms -= special.gammaln(count[there] + 1.0).sum()
    for k, side in enumerate((early, ~early)):
        total, n = (side * count).sum(axis=1), (side & there).sum(axis=1)
        a, b = shapes[k], rates[k]
        log_terms += a * np.log(b) - special.gammaln(a)
        log_terms += special.gammaln(a + total) - (a + total) * np.log(b + n)
    note = "a bounded integer, an imputed count and two rates"
    return Problem("change_point", build, float(special.logsumexp(log_terms)), note)


def outlier_effects(groups: int = 6) -> Problem:
    """Group effects of which an unknown share are outliers: discrete and continuous levels.

    ``q ~ Beta(a, b)``, ``z_j ~ Bernoulli(q)``, ``mu ~ N(1, 2)``, ``theta_j ~ N(mu, t_(z_j))``,
    ``y_j ~ N(theta_j, sigma)``, ``j = 1..J``: ``Z = sum_z B(a + k, b + J - k) / B(a, b)
    N(y; 1, 2^2 1 1' + diag(t_(z_j)^2 + sigma^2))``, ``k = sum z``.
    """
    y = np.array([0.8, 1.9, -3.2, 1.2, 0.3, 6.1])[:groups]
    a, b, spread, sigma = 1.5, 4.0, np.array([0.5, 4.0]), 0.6

    def build() -> pm.Model:
        with pm.Model() as model:
            q = pm.Beta("q", a, b)
            z = pm.Bernoulli("z", q, shape=groups)
            mu = pm.Normal("mu", 1.0, 2.0)
            theta = pm.Normal("theta", mu, pt.as_tensor(spread)[z], shape=groups)
            pm.Normal("y", theta, sigma, observed=y)
        return model

    log_terms = []
    for z in itertools.product((0, 1), repeat=groups):
        covariance = 4.0 + np.diag(spread[list(z)] ** 2 + sigma**2)
        log_prior = special.betaln(a + sum(z), b + groups - sum(z)) - special.betaln(a, b)
        log_normal = stats.multivariate_normal.logpdf(y, np.ones(groups), covariance)
        log_terms.append(log_prior + log_normal)
    note = "indicators choose the scale of continuous effects"
    return Problem("outlier_effects", build, float(special.logsumexp(log_terms)), note)


PROBLEMS: list[Problem] = [
    conjugate_normal(),
    initval(),
    nig_regression(n_rows=60, n_coefficients=10),
    nig_regression(n_rows=150, n_coefficients=50),
    beta_binomial(),
    gamma_poisson(),
    dirichlet_multinomial(),
    gp_regression(),
    student_t_conflict(),
    informative(exponent=3),
    informative(exponent=5),
    half_space(),
    half_space_data(),
    two_modes(),
    half_cauchy_scale(),
    ordered_transform(),
    eight_schools(),
    uniform_exponential(),
    lkj_prior_only(),
    no_observed(),
    potential_only(),
    imputed_missing(),
    several_observed(),
    von_mises_circular(),
    zero_sum(),
    ising(),
    mixture_indicators(),
    unknown_trials(),
    change_point(),
    outlier_effects(),
]


def by_name(name: str) -> Problem:
    """Find a problem in ``PROBLEMS``.

    Parameters
    ----------
    name : str
        Name of the problem.

    Returns
    -------
    Problem
        The problem of that name.

    Raises
    ------
    KeyError
        If no problem has that name.
    """
    return {problem.name: problem for problem in PROBLEMS}[name]

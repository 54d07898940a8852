"""Conjugate models: the evidence in closed form."""

import warnings

import numpy as np
import pymc as pm

from scipy import special, stats

from tests.problems.problem import Problem, log_evidence_normal_mean

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
    """The model of `conjugate_normal` with an initial value, which must have no effect.

    ``Z = N(y; m_0 1, sigma^2 I + s_0^2 1 1')`` for every ``initval``.
    """

    def build() -> pm.Model:
        with pm.Model() as model:
            mu = pm.Normal("mu", -1.0, 2.0, initval=4.0)
            pm.Normal("y", mu, 1.5, observed=NORMAL_DATA)
        return model

    log_evidence = log_evidence_normal_mean(NORMAL_DATA, 1.5, -1.0, 2.0)
    return Problem("initval", build, log_evidence, "particles must start from prior draws")


def imputed_missing() -> Problem:
    """Missing observations: ``mu ~ N(-1, 2)``, ``y_i ~ N(mu, 1.5)``, some ``y_i`` missing.

    ``Z = N(y_o; m_0 1, sigma^2 I + s_0^2 1 1')`` with ``y_o`` the observed entries: the
    missing entries are parameters with a normalised prior and integrate to one.
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


def observed_parents() -> Problem:
    """Noisy readings, some missing, of values that are observed in part.

    ``x_i ~ N(0, 2)``, ``u_i ~ N(x_i, 1)``, ``y_i ~ N(u_i, 1.5)``, of ``x`` and ``u`` some missing:
    the observed numbers of each ``i`` are normal with the covariances 4, 5 and 7.25.
    """
    x, u = np.array([3.1, np.nan, -2.4, np.nan]), np.array([np.nan, 1.2, np.nan, np.nan])
    y = np.array([4.0, 0.3, -2.9, 1.1])

    def build() -> pm.Model:
        with pm.Model() as model, warnings.catch_warnings():
            warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
            first = pm.Normal("x", 0.0, 2.0, observed=np.ma.masked_invalid(x))
            second = pm.Normal("u", first, 1.0, observed=np.ma.masked_invalid(u))
            pm.Normal("y", second, 1.5, observed=y)
        return model

    covariance, log_evidence = np.array([[4.0, 4, 4], [4, 5, 5], [4, 5, 7.25]]), 0.0
    for row in np.stack([x, u, y], axis=1):
        seen = np.flatnonzero(~np.isnan(row))
        among = covariance[np.ix_(seen, seen)]
        log_evidence += stats.multivariate_normal.logpdf(row[seen], np.zeros(len(seen)), among)
    return Problem("observed_parents", build, float(log_evidence), "free variables given data")


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

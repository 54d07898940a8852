"""Models with discrete parameters: the evidence is a sum over all of their values."""

import itertools
import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from scipy import special, stats

from tests.problems.problem import Problem


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
    note = "an integer bounded by the data from below, coupled to a probability"
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
    observed, count = ~np.ma.getmaskarray(y), y.filled(0)
    log_terms = np.full(years + 1, -np.log(years + 1.0))
    log_terms -= special.gammaln(count[observed] + 1.0).sum()
    for k, side in enumerate((early, ~early)):
        total, n = (side * count).sum(axis=1), (side & observed).sum(axis=1)
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

"""Define the everyday models of `everyday.py`.

Each function returns a new `pm.Model` of everyday size, 100 to 532 rows, with weakly informative
priors. The data are simulated from fixed seeds, except for the Pima Indians data. A logistic
regression on the sonar data (208 rows, 60 covariates) is added if a folder with `sonar.csv` is
given, which does not come with these scripts: a header, 60 numeric columns and a last column "R" or
"M".
"""

import csv

from collections.abc import Callable
from itertools import combinations
from typing import Any

import models as zoo
import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc.distributions.transforms import ordered

__all__ = ["MODELS"]


# Linear models with normal noise


def hierarchical_data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return group, covariate and response of 120 rows in 8 groups."""
    rng = np.random.default_rng(11)
    group = np.repeat(np.arange(8), 15)
    x = rng.normal(size=120)
    intercept = rng.normal(1, 0.6, size=8)
    return group, x, intercept[group] + 0.8 * x + rng.normal(0, 0.8, size=120)


def build_hierarchical(centred: bool) -> pm.Model:
    """Return a regression with an intercept for each group, 12-d."""
    group, x, y = hierarchical_data()
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 2), pm.HalfNormal("tau", 1)
        slope, sigma = pm.Normal("slope", 0, 2), pm.HalfNormal("sigma", 1)
        if centred:
            intercept = pm.Normal("intercept", mu, tau, shape=8)
        else:
            intercept = mu + tau * pm.Normal("z", 0, 1, shape=8)
        pm.Normal("y", intercept[group] + slope * x, sigma, observed=y)
    return model


def varying_slopes_data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return group, covariate and response of 300 rows in 20 groups."""
    rng = np.random.default_rng(12)
    group = np.repeat(np.arange(20), 15)
    x = rng.normal(size=300)
    covariance = np.array([[0.8**2, -0.2], [-0.2, 0.5**2]])
    effect = rng.multivariate_normal([1.0, -0.5], covariance, size=20)
    y = effect[group, 0] + effect[group, 1] * x + rng.normal(0, 0.7, size=300)
    return group, x, y


def build_varying_slopes() -> pm.Model:
    """Return a regression with correlated intercepts and slopes of 20 groups, 46-d."""
    group, x, y = varying_slopes_data()
    with pm.Model() as model:
        scales = pm.Exponential.dist(1.0, shape=2)
        factor, *_ = pm.LKJCholeskyCov("factor", n=2, eta=2.0, sd_dist=scales)
        mean = pm.Normal("mean", 0, 2, shape=2)
        z = pm.Normal("z", 0, 1, shape=(20, 2))
        effect = mean + z @ factor.T
        sigma = pm.Exponential("sigma", 1.0)
        pm.Normal("y", effect[group, 0] + effect[group, 1] * x, sigma, observed=y)
    return model


def random_walk_data() -> np.ndarray:
    """Return a time series of 100 values: a random walk and noise."""
    rng = np.random.default_rng(13)
    return np.cumsum(rng.normal(0, 0.3, size=100)) + rng.normal(0, 0.6, size=100)


def build_random_walk() -> pm.Model:
    """Return the local-level model, 102-d."""
    y = random_walk_data()
    with pm.Model() as model:
        step, sigma = pm.HalfNormal("step", 1), pm.HalfNormal("sigma", 1)
        start = pm.Normal.dist(0, 3)
        level = pm.GaussianRandomWalk("level", sigma=step, init_dist=start, steps=len(y) - 1)
        pm.Normal("y", level, sigma, observed=y)
    return model


def regression_data() -> tuple[np.ndarray, np.ndarray]:
    """Return covariates, shape (200, 50), and response."""
    rng = np.random.default_rng(14)
    x = rng.normal(size=(200, 50))
    return x, x @ rng.normal(0, 0.5, size=50) + rng.normal(size=200)


def build_regression() -> pm.Model:
    """Return a regression with 50 coefficients, 51-d."""
    x, y = regression_data()
    with pm.Model() as model:
        b, sigma = pm.Normal("b", 0, 1, shape=50), pm.HalfNormal("sigma", 2)
        pm.Normal("y", x @ b, sigma, observed=y)
    return model


def horseshoe_data() -> tuple[np.ndarray, np.ndarray]:
    """Return covariates, shape (100, 20), of which three matter, and response."""
    rng = np.random.default_rng(15)
    x = rng.normal(size=(100, 20))
    return x, x[:, :3] @ np.array([2.0, -1.0, 0.5]) + rng.normal(size=100)


def build_horseshoe() -> pm.Model:
    """Return a regression with a horseshoe prior, non-centred, 42-d."""
    x, y = horseshoe_data()
    with pm.Model() as model:
        tau, local = pm.HalfCauchy("tau", 0.2), pm.HalfCauchy("local", 1, shape=20)
        z, sigma = pm.Normal("z", 0, 1, shape=20), pm.HalfNormal("sigma", 2)
        pm.Normal("y", x @ (tau * local * z), sigma, observed=y)
    return model


def missing_data() -> tuple[np.ndarray, np.ndarray]:
    """Return a covariate with 20 missing values (NaN) and the response of 150 rows."""
    rng = np.random.default_rng(16)
    x = rng.normal(2, 1.5, size=150)
    y = 0.5 + 0.7 * x + rng.normal(0, 0.8, size=150)
    x[rng.choice(150, size=20, replace=False)] = np.nan
    return x, y


def build_missing() -> pm.Model:
    """Return a regression that imputes missing values of the covariate, 25-d."""
    x, y = missing_data()
    with pm.Model() as model:
        mean, spread = pm.Normal("mean", 0, 3), pm.HalfNormal("spread", 2)
        covariate = pm.Normal("x", mean, spread, observed=np.ma.masked_invalid(x))
        intercept, slope = pm.Normal("intercept", 0, 2), pm.Normal("slope", 0, 1)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", intercept + slope * covariate, sigma, observed=y)
    return model


# Other likelihoods


def poisson_data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return covariates, shape (200, 4), exposures and counts."""
    rng = np.random.default_rng(17)
    x, exposure = rng.normal(size=(200, 4)), rng.uniform(0.5, 5, size=200)
    rate = exposure * np.exp(0.3 + x @ np.array([0.5, -0.3, 0.2, 0.0]))
    return x, exposure, rng.poisson(rate)


def build_poisson() -> pm.Model:
    """Return a Poisson regression with the log exposure as offset, 5-d."""
    x, exposure, y = poisson_data()
    with pm.Model() as model:
        a, b = pm.Normal("a", 0, 2), pm.Normal("b", 0, 1, shape=4)
        pm.Poisson("y", pm.math.exp(a + x @ b + np.log(exposure)), observed=y)
    return model


def negative_binomial_data() -> tuple[np.ndarray, np.ndarray]:
    """Return covariates, shape (200, 4), and overdispersed counts."""
    rng = np.random.default_rng(18)
    x = rng.normal(size=(200, 4))
    mu = np.exp(1.0 + x @ np.array([0.6, -0.4, 0.0, 0.2]))
    return x, rng.poisson(mu * rng.gamma(1.5, 1 / 1.5, size=200))


def build_negative_binomial() -> pm.Model:
    """Return a negative binomial regression, 6-d."""
    x, y = negative_binomial_data()
    with pm.Model() as model:
        a, b = pm.Normal("a", 0, 2), pm.Normal("b", 0, 1, shape=4)
        alpha = pm.Exponential("alpha", 0.5)
        pm.NegativeBinomial("y", mu=pm.math.exp(a + x @ b), alpha=alpha, observed=y)
    return model


def robust_data() -> tuple[np.ndarray, np.ndarray]:
    """Return covariates, shape (150, 3), and a response with heavy tails."""
    rng = np.random.default_rng(19)
    x = rng.normal(size=(150, 3))
    return x, 1 + x @ np.array([1.0, -0.5, 0.0]) + 0.7 * rng.standard_t(3, size=150)


def build_robust() -> pm.Model:
    """Return a regression with Student-t errors, degrees of freedom unknown, 6-d."""
    x, y = robust_data()
    with pm.Model() as model:
        a, b = pm.Normal("a", 0, 2), pm.Normal("b", 0, 1, shape=3)
        sigma, nu = pm.HalfNormal("sigma", 2), pm.Gamma("nu", 2, 0.1)
        pm.StudentT("y", nu=nu, mu=a + x @ b, sigma=sigma, observed=y)
    return model


def irt_data() -> np.ndarray:
    """Return the answers of 40 persons to 10 items."""
    rng = np.random.default_rng(20)
    ability, difficulty = rng.normal(size=40), rng.normal(0, 1, size=10)
    slope = rng.lognormal(0, 0.4, size=10)
    p = 1 / (1 + np.exp(-slope * (ability[:, None] - difficulty)))
    return (rng.random((40, 10)) < p).astype(int)


def build_irt() -> pm.Model:
    """Return an item response model with two parameters for each item, 60-d."""
    y = irt_data()
    with pm.Model() as model:
        ability = pm.Normal("ability", 0, 1, shape=40)
        difficulty = pm.Normal("difficulty", 0, 1.5, shape=10)
        slope = pm.LogNormal("slope", 0, 0.5, shape=10)
        pm.Bernoulli("y", logit_p=slope * (ability[:, None] - difficulty), observed=y)
    return model


def gp_data() -> tuple[np.ndarray, np.ndarray]:
    """Return 40 times and counts with a smooth rate, three at each time, shape (3, 40)."""
    rng = np.random.default_rng(21)
    x = np.linspace(0, 10, 40)
    return x, rng.poisson(np.exp(1.0 + np.sin(x) + 0.05 * x), size=(3, 40))


def build_gp() -> pm.Model:
    """Return a latent Gaussian process with Poisson counts, 43-d."""
    x, y = gp_data()
    with pm.Model() as model:
        mean, scale = pm.Normal("mean", 0, 2), pm.HalfNormal("scale", 1)
        length = pm.InverseGamma("length", 5, 5)
        covariance = scale**2 * pm.gp.cov.ExpQuad(1, length)
        f = pm.gp.Latent(cov_func=covariance).prior("f", X=x[:, None])
        pm.Poisson("y", pm.math.exp(mean + f), observed=y)
    return model


def mixture_data() -> np.ndarray:
    """Return 200 draws of a mixture of two normal distributions."""
    rng = np.random.default_rng(22)
    second = rng.random(200) < 0.35
    return np.where(second, rng.normal(2.5, 0.8, size=200), rng.normal(-0.5, 1.0, size=200))


def build_mixture() -> pm.Model:
    """Return a mixture of two normal distributions with ordered means, 5-d."""
    y = mixture_data()
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 3, shape=2, transform=ordered, initval=[-1.0, 1.0])
        sigma = pm.HalfNormal("sigma", 2, shape=2)
        share = pm.Beta("share", 2, 2)
        pm.NormalMixture("y", w=pt.stack([share, 1 - share]), mu=mu, sigma=sigma, observed=y)
    return model


# Logistic regressions on real data


def pima_data() -> tuple[np.ndarray, np.ndarray]:
    """Return the Pima data with all products of up to three of the seven covariates, 64 columns."""
    table = zoo.columns("pima_532.csv")
    names = ("npreg", "glu", "bp", "skin", "bmi", "ped", "age")
    z = np.column_stack([(table[n] - table[n].mean()) / table[n].std() for n in names])
    subsets = [s for size in range(4) for s in combinations(range(7), size)]
    x = np.column_stack([z[:, list(s)].prod(axis=1) for s in subsets])
    return x, table["diabetes"].astype(int)


def sonar_data() -> tuple[np.ndarray, np.ndarray]:
    """Return an intercept and the 60 standardised covariates of the sonar data, and the class."""
    folder = next((f for f in zoo.data_folders if (f / "sonar.csv").exists()), None)
    if folder is None:
        raise FileNotFoundError("sonar.csv is not there; --data names its folder.")
    with open(folder / "sonar.csv", newline="") as file:
        rows = list(csv.reader(file))[1:]
    x = np.array([[float(v) for v in row[:-1]] for row in rows])
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    return np.column_stack([np.ones(len(x)), x]), np.array([int(row[-1] == "M") for row in rows])


def build_logistic(data: Callable[[], tuple[np.ndarray, np.ndarray]]) -> pm.Model:
    """Return a logistic regression with N(0, 1) priors."""
    x, y = data()
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=x.shape[1])
        pm.Bernoulli("y", logit_p=x @ b, observed=y)
    return model


MODELS: dict[str, Callable[[], Any]] = {
    "hierarchical_centred": lambda: build_hierarchical(centred=True),
    "hierarchical_noncentred": lambda: build_hierarchical(centred=False),
    "varying_slopes": build_varying_slopes,
    "poisson": build_poisson,
    "robust": build_robust,
    "random_walk": build_random_walk,
    "irt": build_irt,
    "horseshoe": build_horseshoe,
    "latent_gp": build_gp,
    "mixture": build_mixture,
    "pima_interactions": lambda: build_logistic(pima_data),
    "negative_binomial": build_negative_binomial,
    "regression": build_regression,
    "missing": build_missing,
    "sonar": lambda: build_logistic(sonar_data),
}

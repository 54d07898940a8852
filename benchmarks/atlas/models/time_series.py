"""Time series: ARMA, GARCH, trends with change points, a state space model."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from benchmarks.atlas.models.terms import f64, ordered, scan
from benchmarks.atlas.stored import Data


def arma11(d: Data) -> None:
    """ARMA(1, 1), simulated (stat_comp_benchmarks of Stan); for |theta| > 1 errors explode."""
    y = d["y"]
    mu = pm.Normal("mu", 0, 10)
    phi = pm.Normal("phi", 0, 2)
    theta = pm.Normal("theta", 0, 2)
    sigma = pm.HalfCauchy("sigma", 2.5)
    first = y[0] - (mu + phi * mu)
    err = scan(
        lambda y, before, err, mu, phi, theta: y - (mu + phi * before + theta * err),
        sequences=[f64(y[1:]), f64(y[:-1])],
        outputs_info=[first],
        non_sequences=[mu, phi, theta],
    )
    nu = y - pt.concatenate([first[None], err])
    pm.Normal("y", nu, sigma, observed=y)


def garch11(d: Data) -> None:
    """GARCH(1, 1), simulated (ibid.); alpha1 and beta1 uniform on a triangle, as in Stan."""
    y = d["y"]
    mu = pm.Normal("mu", 0, 100)
    alpha0 = pm.HalfNormal("alpha0", 100)
    alpha1 = pm.Beta("alpha1", 1, 2)
    beta1 = pm.Uniform("beta1", 0, 1 - alpha1)
    variance = scan(
        lambda y, variance, mu, a0, a1, b1: a0 + a1 * (y - mu) ** 2 + b1 * variance,
        sequences=[f64(y[:-1])],
        outputs_info=[f64(d["sigma1"] ** 2)],
        non_sequences=[mu, alpha0, alpha1, beta1],
    )
    sigma = pt.sqrt(pt.concatenate([f64([d["sigma1"] ** 2]), variance]))
    pm.Normal("y", mu, sigma, observed=y)


def prophet(d: Data) -> None:
    """Downloads of RStan: trend with 25 change points, seasons (Taylor & Letham 2018)."""
    a = (d["t"][:, None] >= d["t_change"][None, :]).astype(float)
    k = pm.Normal("k", 0, 5)
    m = pm.Normal("m", 0, 5)
    delta = pm.Laplace("delta", 0, d["tau"], shape=d["S"])
    sigma = pm.HalfNormal("sigma_obs", 0.5)
    beta = pm.Normal("beta", 0, d["sigmas"].astype(float))
    trend = (k + pt.dot(a, delta)) * d["t"] + (m + pt.dot(a, -d["t_change"] * delta))
    x = d["X"]
    mu = trend * (1 + pt.dot(x, beta * d["s_m"])) + pt.dot(x, beta * d["s_a"])
    pm.Normal("y", mu, sigma, observed=d["y"])


def uk_drivers(d: Data) -> None:
    """Drivers killed or injured in Britain, 1969 to 1984 (Commandeur & Koopman 2007).

    Stochastic level, and a stochastic season written by its innovations.
    """
    n, y = d["n"], d["y"]
    sigma = pm.HalfStudentT(
        "sigma", nu=4, sigma=1, shape=3, transform=ordered, initval=[0.05, 0.1, 0.2]
    )
    beta = pm.Normal("beta", 0, 10)
    lam = pm.Normal("lambda", 0, 10)
    start = pm.Normal.dist(y.mean(), 3 * np.std(y, ddof=1))
    mu = pm.GaussianRandomWalk("mu", mu=0, sigma=sigma[1], init_dist=start, steps=n - 1)
    first = pm.Normal("seasonal_first", 0, 1, shape=11)
    eps = pm.Normal("seasonal_eps", 0, 1, shape=n - 11)
    maps = np.eye(n)
    for t in range(11, n):
        maps[t] -= maps[t - 11 : t].sum(0)
    seasonal = pm.Deterministic("seasonal", pt.dot(maps, pt.concatenate([first, sigma[0] * eps])))
    pm.Normal("y", mu + beta * d["x"] + lam * d["w"] + seasonal, sigma[2], observed=y)

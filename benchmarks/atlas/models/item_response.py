"""Item response models."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from benchmarks.atlas.models.terms import log_sigmoid
from benchmarks.atlas.stored import Data


def irt_2pl(d: Data) -> None:
    """Two parameters an item, simulated (stat_comp_benchmarks of Stan)."""
    sigma_theta = pm.HalfCauchy("sigma_theta", 2)
    theta = pm.Normal("theta", 0, sigma_theta, shape=d["J"])
    sigma_a = pm.HalfCauchy("sigma_a", 2)
    a = pm.LogNormal("a", 0, sigma_a, shape=d["I"])
    mu_b = pm.Normal("mu_b", 0, 5)
    sigma_b = pm.HalfCauchy("sigma_b", 2)
    b = pm.Normal("b", mu_b, sigma_b, shape=d["I"])
    pm.Bernoulli("y", logit_p=a[:, None] * (theta[None, :] - b[:, None]), observed=d["y"])


def bones(d: Data) -> None:
    """Skeletal age of 13 children by 34 indicators (Roche et al. 1975; BUGS examples)."""
    sign, child, slope, gamma, constant = bones_terms(d)
    theta = pm.Normal("theta", 0, 36, shape=d["nChild"])
    logp = log_sigmoid(sign * slope * (theta[child] - gamma)).sum() + constant
    pm.Potential("grade", logp)


def bones_terms(d: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """Return the likelihood as sigmoids: signs, children, slopes, thresholds, and a constant.

    log(Q_{g-1} - Q_g) = log sigmoid(a) + log sigmoid(-b) + log(1 - exp(b - a)), where
    a = delta (theta - gamma_{g-1}) and b = delta (theta - gamma_g).
    """
    terms, constant = [], 0.0
    for (child, indicator), grade in np.ndenumerate(d["grade"]):
        if grade == -1:
            continue
        n, delta, gamma = (d[key][indicator] for key in ("ncat", "delta", "gamma"))
        if grade > 1:
            terms.append((1.0, child, delta, gamma[grade - 2]))
        if grade < n:
            terms.append((-1.0, child, delta, gamma[grade - 1]))
        if 1 < grade < n:
            constant += np.log1p(-np.exp(-delta * (gamma[grade - 1] - gamma[grade - 2])))
    sign, children, slope, threshold = map(np.array, zip(*terms, strict=True))
    return sign, children, slope, threshold, constant


def lsat(d: Data) -> None:
    """Five items of the Law School Admission Test (Bock & Lieberman 1970; BUGS examples)."""
    start = np.concatenate([[0], d["culm"][:-1]])
    r = np.repeat(d["response"], d["culm"] - start, axis=0)
    alpha = pm.Normal("alpha", 0, 100, shape=d["T"])
    theta = pm.Normal("theta", 0, 1, shape=d["N"])
    beta = pm.HalfNormal("beta", 100)
    pm.Bernoulli("r", logit_p=beta * theta[:, None] - alpha[None, :], observed=r)


def latent_reg_irt(d: Data) -> None:
    """First International Mathematics Study, Australia and Japan: abilities on covariates.

    The difficulties sum to zero: Normal(0, 3) on that plane. Covariates are divided by two standard
    deviations, as the Stan program does in effect (its test for binary columns never holds).
    """
    w = d["W"].astype(float)
    adj = w.copy()
    for k in range(1, w.shape[1]):
        adj[:, k] = (w[:, k] - w[:, k].mean()) / (2 * np.std(w[:, k], ddof=1))
    alpha = pm.LogNormal("alpha", 1, 1, shape=d["I"])
    beta = pm.ZeroSumNormal("beta", sigma=3, shape=d["I"])
    lam = pm.StudentT("lambda_adj", nu=3, mu=0, sigma=1, shape=w.shape[1])
    theta = pm.Normal("theta", pt.dot(adj, lam), 1)
    ii, jj = d["ii"] - 1, d["jj"] - 1
    pm.Bernoulli("y", logit_p=alpha[ii] * theta[jj] - beta[ii], observed=d["y"])


def hier_2pl(d: Data) -> None:
    """Science test of Wood et al. (2003), items from a bivariate normal (Furr 2016).

    LKJ(4) of a 2 x 2 matrix as (rho + 1) / 2 ~ Beta(4, 4).
    """
    mu1 = pm.Normal("mu1", 0, 1)
    mu2 = pm.Normal("mu2", 0, 5)
    tau = pm.Exponential("tau", 0.1, shape=2)
    rho = pm.Deterministic("rho", 2 * pm.Beta("rho01", 4, 4) - 1)
    theta = pm.Normal("theta", 0, 1, shape=d["J"])
    xi1 = pm.Normal("xi1", mu1, tau[0], shape=d["I"])
    xi2 = pm.Normal("xi2", mu2 + rho * tau[1] / tau[0] * (xi1 - mu1), tau[1] * pt.sqrt(1 - rho**2))
    ii, jj = d["ii"] - 1, d["jj"] - 1
    pm.Bernoulli("y", logit_p=pt.exp(xi1)[ii] * (theta[jj] - xi2[ii]), observed=d["y"])

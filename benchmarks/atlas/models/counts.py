"""Binomial and Poisson data: rates (Lee & Wagenmakers 2013), regressions of populations, seeds."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pytensor.tensor import TensorVariable

from benchmarks.atlas.models.terms import comb_log
from benchmarks.atlas.stored import Data


def rate_1(d: Data) -> None:
    """One binomial rate."""
    theta = pm.Beta("theta", 1, 1)
    pm.Binomial("k", d["n"], theta, observed=d["k"])


def rate_2(d: Data) -> None:
    """The difference of two rates."""
    theta1 = pm.Beta("theta1", 1, 1)
    theta2 = pm.Beta("theta2", 1, 1)
    pm.Deterministic("delta", theta1 - theta2)
    pm.Binomial("k1", d["n1"], theta1, observed=d["k1"])
    pm.Binomial("k2", d["n2"], theta2, observed=d["k2"])


def rate_3(d: Data) -> None:
    """One rate of two binomial counts."""
    theta = pm.Beta("theta", 1, 1)
    pm.Binomial("k1", d["n1"], theta, observed=d["k1"])
    pm.Binomial("k2", d["n2"], theta, observed=d["k2"])


def rate_4(d: Data) -> None:
    """One rate; `thetaprior` is not connected to the data."""
    theta = pm.Beta("theta", 1, 1)
    pm.Beta("thetaprior", 1, 1)
    pm.Binomial("k", d["n"], theta, observed=d["k"])


rate_5 = rate_3


def survey(d: Data) -> None:
    """Rate and number of surveys; the number is summed out (Lee & Wagenmakers 2013)."""
    theta = pm.Uniform("theta", 0, 1)
    k = d["k"]
    n = np.arange(k.max(), d["nmax"] + 1)
    constant = comb_log(n[:, None], k[None, :]).sum(1) - np.log(d["nmax"])
    logp = constant + k.sum() * pt.log(theta) + (len(k) * n - k.sum()) * pt.log1p(-theta)
    pm.Potential("k", pt.logsumexp(logp))


def glm_binomial(d: Data) -> None:
    """Successful broods by year, a parabola (Kery & Schaub 2012, chapter 3)."""
    alpha = pm.Normal("alpha", 0, 100)
    beta1 = pm.Normal("beta1", 0, 100)
    beta2 = pm.Normal("beta2", 0, 100)
    year = d["year"]
    pm.Binomial("C", d["N"], logit_p=alpha + beta1 * year + beta2 * year**2, observed=d["C"])


def glm_poisson(d: Data) -> None:
    """Peregrine falcons by year, a cubic (Kery & Schaub 2012, chapter 3)."""
    alpha, slope = _cubic(d)
    pm.Poisson("C", pt.exp(alpha + slope), observed=d["C"])


def glmm_poisson(d: Data) -> None:
    """Peregrine falcons with an effect of the year (Kery & Schaub 2012, chapter 4).

    beta2 ~ U(-10, 10), as the model block says; the declared bound is 20.
    """
    alpha, slope = _cubic(d)
    sigma = pm.Uniform("sigma", 0, 5)
    eps = pm.Normal("eps", 0, sigma, shape=d["n"])
    pm.Poisson("C", pt.exp(alpha + slope + eps), observed=d["C"])


def _cubic(d: Data) -> tuple[TensorVariable, TensorVariable]:
    t = d["year"]
    alpha = pm.Uniform("alpha", -20, 20)
    beta = [pm.Uniform(f"beta{i}", -10, 10) for i in (1, 2, 3)]
    return alpha, beta[0] * t + beta[1] * t**2 + beta[2] * t**3


def glmm1(d: Data) -> None:
    """Counts at 235 sites, with an effect of the site (Kery & Schaub 2012, chapter 4)."""
    mu = pm.Normal("mu_alpha", 0, 10)
    sd = pm.Uniform("sd_alpha", 0, 5)
    alpha = pm.Normal("alpha", mu, sd, shape=d["nsite"])
    pm.Poisson("obs", pt.exp(alpha[d["obssite"] - 1]), observed=d["obs"])


# Seeds that germinated on 21 plates (Crowder 1978; BUGS examples), three versions of the model


def seeds(d: Data) -> None:
    """As in BUGS: tau ~ Gamma(1e-3, 1e-3)."""
    tau = pm.Gamma("tau", 1e-3, 1e-3)
    pm.Deterministic("sigma", 1 / pt.sqrt(tau))
    b = pm.Normal("b", 0, tau=tau, shape=d["I"])
    _seeds(d, 1000.0, b)


def seeds_stanified(d: Data) -> None:
    """With priors of unit scale."""
    sigma = pm.HalfCauchy("sigma", 1)
    b = pm.Normal("b", 0, sigma, shape=d["I"])
    _seeds(d, 1.0, b)


def seeds_centered(d: Data) -> None:
    """With effects of the plates from which their mean is subtracted."""
    sigma = pm.HalfCauchy("sigma", 1)
    c = pm.Normal("c", 0, sigma, shape=d["I"])
    b = pm.Deterministic("b", c - c.mean())
    _seeds(d, 1.0, b)


def _seeds(d: Data, scale: float, b: TensorVariable) -> None:
    names = ("alpha0", "alpha1", "alpha12", "alpha2")
    a0, a1, a12, a2 = (pm.Normal(n, 0, scale) for n in names)
    x1, x2 = d["x1"], d["x2"]
    logit_p = a0 + a1 * x1 + a2 * x2 + a12 * x1 * x2 + b
    pm.Binomial("n", d["N"], logit_p=logit_p, observed=d["n"])


def surgical(d: Data) -> None:
    """Deaths of infants after surgery in 12 hospitals (BUGS examples)."""
    mu = pm.Normal("mu", 0, 1000)
    sigmasq = pm.InverseGamma("sigmasq", 1e-3, 1e-3)
    b = pm.Normal("b", mu, pt.sqrt(sigmasq), shape=d["N"])
    pm.Binomial("r", d["n"], logit_p=b, observed=d["r"])

"""Losses of insurers, and deaths in an epidemic: curves that grow."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pytensor.tensor import TensorVariable

from benchmarks.atlas.models.terms import f64, scan
from benchmarks.atlas.stored import Data


def losscurve_sislob(d: Data) -> None:
    """Losses of ten cohorts of contracts by Weibull growth (Stan case study; growth model 1)."""
    mu_lr = pm.Normal("mu_LR", 0, 0.5)
    sd_lr = pm.LogNormal("sd_LR", 0, 0.5)
    lr = pm.LogNormal("LR", mu_lr, sd_lr, shape=d["n_cohort"])
    loss_sd = pm.LogNormal("loss_sd", 0, 0.7)
    omega = pm.LogNormal("omega", 0, 0.5)
    theta = pm.LogNormal("theta", 0, 0.5)
    growth = -pt.expm1(-((d["t_value"].astype(float) / theta) ** omega))
    cohort, premium = d["cohort_id"] - 1, d["premium"].astype(float)
    mean = lr[cohort] * premium[cohort] * growth[d["t_idx"] - 1]
    pm.Normal("loss", mean, loss_sd * premium[cohort], observed=d["loss"].astype(float))


def covid19imperial(d: Data) -> None:
    """Deaths of COVID-19 in European countries (Flaxman et al. 2020), version 2.

    mu ~ Normal(3.28, kappa) cut at 0 is normalised (in Stan it is not); expected deaths are at
    least 1e-10, where Stan rejects.
    """
    m, p = d["M"], d["P"]
    tau = pm.Exponential("tau", 0.03)
    y = pm.Exponential("y", 1 / tau, shape=m)
    phi = pm.HalfNormal("phi", 5)
    kappa = pm.HalfNormal("kappa", 0.5)
    mu = pm.TruncatedNormal("mu", 3.28, kappa, lower=0, shape=m)
    alpha_hier = pm.Gamma("alpha_hier", 0.1667, 1, shape=p)
    noise = pm.TruncatedNormal("ifr_noise", 1, 0.1, lower=0, shape=m)
    alpha = alpha_hier - np.log(1.05) / 6
    rate = mu[:, None] * pt.exp(-(d["X"].astype(float) * alpha).sum(axis=2))  # (M, N2)
    infections = _infections(d, y, rate)
    expected = noise[:, None] * pt.matmul(_deaths_of(d["f"]), infections[:, :, None])[:, :, 0]
    start, stop = d["EpidemicStart"], d["N"]
    country = np.repeat(np.arange(d["M"]), stop - start + 1)
    day = np.concatenate([np.arange(a - 1, b) for a, b in zip(start, stop, strict=True)])
    mean = pt.maximum(expected[country, day], 1e-10)
    pm.NegativeBinomial("deaths", mu=mean, alpha=phi, observed=d["deaths"][day, country])


def _infections(d: Data, y: TensorVariable, rate: TensorVariable) -> TensorVariable:
    """Return the infections by country and day, of shape (M, N2); `y` on each of the first N0 days.

    `upcoming[k]` is what the infections so far will cause k days ahead for a rate of one.
    """
    first, days, population = d["N0"], d["N2"], d["pop"].astype(float)
    serial = np.concatenate([d["SI"], np.zeros(first)])  # nothing after N2 days
    caused = np.array([serial[k : k + first].sum() for k in range(days)])

    def advance(rate, total, previous, upcoming, serial):
        total = total + previous
        new = (population - total) / population * rate * upcoming[0]
        later = pt.concatenate([upcoming[1:], pt.zeros_like(upcoming[:1])])
        return total, new, later + serial[:, None] * new

    _, later, _ = scan(
        advance,
        sequences=[rate.T[first:]],
        outputs_info=[(first - 1) * y, y, caused[:, None] * y],
        non_sequences=[f64(d["SI"])],
    )
    return pt.concatenate([pt.repeat(y[None, :], first, axis=0), later]).T


def _deaths_of(f: np.ndarray) -> np.ndarray:
    """Return the deaths on day t of an infection on day j < t, of shape (M, t, j)."""
    days = len(f)
    lag = np.arange(days)[:, None] - np.arange(days)[None, :] - 1
    return np.where(lag >= 0, f.T[:, np.maximum(lag, 0)], 0.0)

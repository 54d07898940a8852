"""Losses of insurers, and deaths in an epidemic: curves that grow."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

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
    m, p, n0, n2 = d["M"], d["P"], d["N0"], d["N2"]
    pop, si = d["pop"].astype(float), d["SI"]
    tau = pm.Exponential("tau", 0.03)
    y = pm.Exponential("y", 1 / tau, shape=m)
    phi = pm.HalfNormal("phi", 5)
    kappa = pm.HalfNormal("kappa", 0.5)
    mu = pm.TruncatedNormal("mu", 3.28, kappa, lower=0, shape=m)
    alpha_hier = pm.Gamma("alpha_hier", 0.1667, 1, shape=p)
    noise = pm.TruncatedNormal("ifr_noise", 1, 0.1, lower=0, shape=m)
    alpha = alpha_hier - np.log(1.05) / 6
    rt = mu[:, None] * pt.exp(-(d["X"].astype(float) * alpha).sum(axis=2))  # (M, N2)
    # weight[t, j]: infections of day j cause weight[t, j] Rt infections on day t.
    lag = np.arange(n2)[:, None] - np.arange(n2)[None, :] - 1
    weight = np.where(lag >= 0, si[np.maximum(lag, 0)], 0.0)
    prediction = [y] * n0
    convolved = weight[:, :n0].sum(1)[:, None] * y[None, :]
    total = (n0 - 1) * y
    for t in range(n0, n2):
        total = total + prediction[t - 1]
        new = (pop - total) / pop * rt[:, t] * convolved[t]
        convolved = convolved + weight[:, t][:, None] * new[None, :]
        prediction.append(new)
    prediction = pt.stack(prediction)  # (N2, M)
    f = np.where((lag >= 0)[None], d["f"].T[:, np.maximum(lag, 0)], 0.0)  # (M, N2, N2)
    expected = noise[:, None] * (f * prediction.T[:, None, :]).sum(axis=2)  # (M, N2)
    start, stop = d["EpidemicStart"], d["N"]
    country = np.concatenate([np.full(stop[i] - start[i] + 1, i) for i in range(m)])
    day = np.concatenate([np.arange(start[i] - 1, stop[i]) for i in range(m)])
    mean = pt.maximum(expected[country, day], 1e-10)
    pm.NegativeBinomial("deaths", mu=mean, alpha=phi, observed=d["deaths"][day, country])

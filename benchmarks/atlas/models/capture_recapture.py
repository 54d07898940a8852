"""Closed populations by capture and recapture (Kery & Schaub 2012, chapter 6), and occupancy.

The data are augmented by animals that were never seen; whether each exists is summed out.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pytensor.tensor import TensorVariable

from benchmarks.atlas.models.terms import comb_log, log_sigmoid, logit
from benchmarks.atlas.stored import Data


def m0(d: Data) -> None:
    """One probability of capture."""
    s, t = d["y"].sum(1), d["T"]
    seen = s[s > 0]
    omega = pm.Uniform("omega", 0, 1)
    p = pm.Uniform("p", 0, 1)
    logp = (
        comb_log(t, seen).sum()
        + seen.sum() * pt.log(p)
        + (t * len(seen) - seen.sum()) * pt.log1p(-p)
    )
    zero = pt.logaddexp(pt.log(omega) + t * pt.log1p(-p), pt.log1p(-omega))
    pm.Potential("y", len(seen) * pt.log(omega) + logp + (d["M"] - len(seen)) * zero)


def mt(d: Data) -> None:
    """A probability of capture for each occasion."""
    y = d["y"]
    seen = y[y.sum(1) > 0]
    omega = pm.Uniform("omega", 0, 1)
    p = pm.Uniform("p", 0, 1, shape=d["T"])
    total = seen.sum(0)
    logp = (total * pt.log(p) + (len(seen) - total) * pt.log1p(-p)).sum()
    zero = pt.logaddexp(pt.log(omega) + pt.log1p(-p).sum(), pt.log1p(-omega))
    pm.Potential("y", len(seen) * pt.log(omega) + logp + (d["M"] - len(seen)) * zero)


def mb(d: Data) -> None:
    """Two probabilities of capture: caught on the occasion before, or not."""
    y = d["y"]
    seen = y[y.sum(1) > 0]
    before = np.hstack([np.zeros((len(seen), 1), int), seen[:, :-1]])
    omega = pm.Uniform("omega", 0, 1)
    p = pm.Uniform("p", 0, 1)
    c = pm.Uniform("c", 0, 1)
    counts = {(b, v): int(((before == b) & (seen == v)).sum()) for b in (0, 1) for v in (0, 1)}
    logp = (
        counts[0, 1] * pt.log(p)
        + counts[0, 0] * pt.log1p(-p)
        + counts[1, 1] * pt.log(c)
        + counts[1, 0] * pt.log1p(-c)
    )
    zero = pt.logaddexp(pt.log(omega) + d["T"] * pt.log1p(-p), pt.log1p(-omega))
    pm.Potential("y", len(seen) * pt.log(omega) + logp + (d["M"] - len(seen)) * zero)


def mh(d: Data) -> None:
    """A probability of capture for each animal."""
    y, t = d["y"], d["T"]
    omega = pm.Uniform("omega", 0, 1)
    mean_p = pm.Uniform("mean_p", 0, 1)
    sigma = pm.Uniform("sigma", 0, 5)
    eps_raw = pm.Normal("eps_raw", 0, 1, shape=d["M"])
    eps = logit(mean_p) + sigma * eps_raw
    logp = comb_log(t, y) + y * log_sigmoid(eps) + (t - y) * log_sigmoid(-eps)
    absent = pt.log1p(-omega)
    each = pt.where(y > 0, pt.log(omega) + logp, pt.logaddexp(pt.log(omega) + logp, absent))
    pm.Potential("y", each.sum())


def mth(d: Data) -> None:
    """Occasions and animals."""
    omega = pm.Uniform("omega", 0, 1)
    mean_p = pm.Uniform("mean_p", 0, 1, shape=d["T"])
    sigma = pm.Uniform("sigma", 0, 5)
    eps = sigma * pm.Normal("eps_raw", 0, 1, shape=d["M"])
    _captures(d, logit(mean_p)[None, :] + eps[:, None], omega)


def mtbh(d: Data) -> None:
    """Occasions, animals, and whether caught on the occasion before."""
    y = d["y"]
    before = np.hstack([np.zeros((len(y), 1), int), y[:, :-1]])
    omega = pm.Uniform("omega", 0, 1)
    mean_p = pm.Uniform("mean_p", 0, 1, shape=d["T"])
    gamma = pm.Normal("gamma", 0, 10)
    sigma = pm.Uniform("sigma", 0, 3)
    eps = sigma * pm.Normal("eps_raw", 0, 1, shape=d["M"])
    _captures(d, logit(mean_p)[None, :] + eps[:, None] + gamma * before, omega)


def _captures(d: Data, logit_p: TensorVariable, omega: TensorVariable) -> None:
    y = d["y"]
    logp = (y * log_sigmoid(logit_p) + (1 - y) * log_sigmoid(-logit_p)).sum(axis=1)
    both = pt.logaddexp(pt.log(omega) + logp, pt.log1p(-omega))
    pm.Potential("y", pt.where(y.sum(1) > 0, pt.log(omega) + logp, both).sum())


def multi_occupancy(d: Data) -> None:
    """Species of butterflies at sites, some never seen (Dorazio et al. 2006)."""
    n, sites, visits, species, x = d["n"], d["J"], d["K"], d["S"], d["X"]
    alpha = pm.Cauchy("alpha", 0, 2.5)
    beta = pm.Cauchy("beta", 0, 2.5)
    omega = pm.Beta("Omega", 2, 2)
    rho = pm.Deterministic("rho_uv", 2 * pm.Beta("rho01", 2, 2) - 1)
    sigma = pm.HalfCauchy("sigma_uv", 2.5, shape=2)
    uv1 = pm.Normal("uv1", 0, sigma[0], shape=species)
    uv2 = pm.Normal("uv2", rho * sigma[1] / sigma[0] * uv1, sigma[1] * pt.sqrt(1 - rho**2))
    psi, theta = alpha + uv1, beta + uv2
    yes, no = log_sigmoid(psi), log_sigmoid(-psi)
    detect, miss = log_sigmoid(theta), log_sigmoid(-theta)
    observed = (
        yes[:n, None] + comb_log(visits, x) + x * detect[:n, None] + (visits - x) * miss[:n, None]
    )
    unobserved = pt.logaddexp(yes + visits * miss, no)
    logp = n * pt.log(omega) + pt.where(x > 0, observed, unobserved[:n, None]).sum()
    never = pt.logaddexp(pt.log1p(-omega), pt.log(omega) + sites * unobserved[n:]).sum()
    pm.Potential("X", logp + never)

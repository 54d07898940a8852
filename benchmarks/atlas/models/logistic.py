"""Bernoulli data: wells, votes, dogs that learn."""

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from benchmarks.atlas.models.terms import log_sigmoid
from benchmarks.atlas.stored import Data


def wells(*columns: str) -> Callable[[Data], None]:
    """Switch to another well in Bangladesh (Gelman & Hill 2007, chapter 5)."""

    def build(d: Data) -> None:
        values = _wells_columns(d)
        x = np.column_stack([values[c] for c in columns]).astype(float)
        alpha = pm.Normal("alpha", 0, 10)
        beta = pm.Normal("beta", 0, 10, shape=x.shape[1])
        pm.Bernoulli("switched", logit_p=alpha + pt.dot(x, beta), observed=d["switched"])

    return build


def _wells_columns(d: Data) -> dict[str, np.ndarray]:
    """Return distance, arsenic, association and education; `c_` for centred columns."""
    plain = {"dist100": d["dist"] / 100, "arsenic": d["arsenic"], "educ4": d["educ"] / 4}
    c = {f"c_{name}": value - value.mean() for name, value in plain.items()}
    products = {
        "dist100:arsenic": plain["dist100"] * plain["arsenic"],
        "c_dist100:c_arsenic": c["c_dist100"] * c["c_arsenic"],
        "c_dist100:c_educ4": c["c_dist100"] * c["c_educ4"],
        "c_arsenic:c_educ4": c["c_arsenic"] * c["c_educ4"],
    }
    return {**plain, **c, **products, "assoc": d["assoc"]}


def wells_dist(d: Data) -> None:
    """Switch to another well, on the distance in metres."""
    beta = pm.Normal("beta", 0, 10, shape=2)
    pm.Bernoulli("switched", logit_p=beta[0] + beta[1] * d["dist"], observed=d["switched"])


def nes_logit(d: Data) -> None:
    """Vote on income (Gelman & Hill 2007, chapter 5)."""
    alpha = pm.Normal("alpha", 0, 10)
    beta = pm.Normal("beta", 0, 10, shape=1)
    pm.Bernoulli("vote", logit_p=alpha + beta[0] * d["income"], observed=d["vote"])


# Dogs that learn to avoid a shock (Bush & Mosteller 1955; Gelman & Hill 2007, chapter 24)


def dogs(d: Data) -> None:
    """A logistic regression on earlier avoidances and shocks."""
    avoid, shock = dogs_history(d["y"])
    beta = pm.Normal("beta", 0, 100, shape=3)
    pm.Bernoulli("y", logit_p=beta[0] + beta[1] * avoid + beta[2] * shock, observed=d["y"])


def dogs_log(d: Data) -> None:
    """The same without an intercept and with signs."""
    avoid, shock = dogs_history(d["y"])
    beta = pm.Uniform("beta", [-100.0, 0.0], [0.0, 100.0], shape=2)
    pm.Bernoulli("y", logit_p=beta[0] * avoid + beta[1] * shock, observed=d["y"])


def dogs_hierarchical(d: Data) -> None:
    """Powers of two rates; the first trial, whose probability is 1, is left out."""
    avoid, shock = dogs_history(d["y"])
    a = pm.Uniform("a", 0, 1)
    b = pm.Uniform("b", 0, 1)
    logp = shock[:, 1:] * pt.log(a) + avoid[:, 1:] * pt.log(b)
    pm.Bernoulli("y", p=pt.exp(logp), observed=d["y"][:, 1:])


def dogs_nonhierarchical(d: Data) -> None:
    """Two rates for each dog; LKJ(2) of a 2 x 2 matrix as (rho + 1) / 2 ~ Beta(2, 2)."""
    avoid, shock = dogs_history(d["y"])
    mu = pm.Logistic("mu_logit_ab", 0, 1, shape=2)
    sigma = pm.HalfNormal("sigma_logit_ab", 1, shape=2)
    rho = pm.Deterministic("rho", 2 * pm.Beta("rho01", 2, 2) - 1)
    z = pm.Normal("z", 0, 1, shape=(d["n_dogs"], 2))
    # As in Stan: z diag_pre_multiply(sigma, L), with the rows of z on the left.
    logit_a = mu[0] + z[:, 0] * sigma[0] + z[:, 1] * sigma[1] * rho
    logit_b = mu[1] + z[:, 1] * sigma[1] * pt.sqrt(1 - rho**2)
    log_a, log_b = log_sigmoid(logit_a), log_sigmoid(logit_b)
    logp = shock[:, 1:] * log_a[:, None] + avoid[:, 1:] * log_b[:, None]
    y = d["y"][:, 1:]
    pm.Potential("y", pt.where(y == 1, logp, pt.log1mexp(pt.minimum(logp, -1e-300))).sum())


def dogs_history(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of earlier avoidances and of earlier shocks."""
    shock = np.hstack([np.zeros((len(y), 1)), np.cumsum(y, 1)[:, :-1]])
    return np.arange(y.shape[1]) - shock, shock


def election88(d: Data) -> None:
    """Polls before the election of 1988, by state and groups (Gelman & Hill 2007, chapter 14)."""
    sizes = {
        "a": d["n_age"],
        "b": d["n_edu"],
        "c": d["n_age_edu"],
        "d": d["n_state"],
        "e": d["n_region_full"],
    }
    index = {
        "a": d["age"],
        "b": d["edu"],
        "c": d["age_edu"],
        "d": d["state"],
        "e": d["region_full"],
    }
    beta = pm.Normal("beta", 0, 100, shape=5)
    black, female = d["black"], d["female"]
    eta = (
        beta[0]
        + beta[1] * black
        + beta[2] * female
        + beta[4] * female * black
        + beta[3] * d["v_prev_full"]
    )
    for name, size in sizes.items():
        sigma = pm.Uniform(f"sigma_{name}", 0, 100)
        eta = eta + pm.Normal(name, 0, sigma, shape=size)[index[name] - 1]
    pm.Bernoulli("y", logit_p=eta, observed=d["y"])

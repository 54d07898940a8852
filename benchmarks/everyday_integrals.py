"""Integrate densities over R^d by importance sampling, for `everyday_references.py`."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from scipy import optimize, special, stats

# A function of arrays of shape (..., d) to log densities of shape (...).
LogJoint: TypeAlias = Callable[[np.ndarray], np.ndarray]


# Importance sampling


def importance_sampling(
    log_joint: LogJoint,
    start: np.ndarray,
    *,
    draws: int = 5_000,
    batches: int = 20,
    df: float = 5.0,
    final: LogJoint | None = None,
) -> tuple[float, float]:
    """Return the log of the integral of a density over R^d, and its standard error.

    The proposal, a Student-t distribution with `df` degrees of freedom, begins at the mode found
    from `start` and is fitted ten times to weighted draws before the batches of `draws` that count.
    Their density is `final`, if it is given; it may be an unbiased estimate of a density that
    `log_joint` approximates.
    """
    centre, covariance = laplace(log_joint, start)
    rng = np.random.default_rng(1)
    for _ in range(10):
        u, log_w = weighted_draws(log_joint, centre, covariance, df, draws, rng)
        w = truncated_weights(log_w)
        # Few effective draws have hardly a say: their covariance would be singular.
        share = 1 / (1 + 5 * len(start) * (w**2).sum())
        covariance = (1 - share) * covariance + share * np.cov(u.T, aweights=w)
        centre = (1 - share) * centre + share * (w @ u)
    proposal = (centre, covariance, df)
    batches = [weighted_draws(final or log_joint, *proposal, draws, rng)[1] for _ in range(batches)]
    log_w = np.concatenate(batches)
    w = np.exp(log_w - log_w.max())
    return float(log_w.max() + np.log(w.mean())), float(w.std() / w.mean() / np.sqrt(len(w)))


def weighted_draws(log_joint: LogJoint, centre, covariance, df: float, count: int, rng):
    """Return draws of a Student-t distribution and their log weights."""
    proposal = stats.multivariate_t(centre, covariance, df=df)
    u = proposal.rvs(count, random_state=rng).reshape(count, -1)
    log_density = np.concatenate([log_joint(u[i : i + 500]) for i in range(0, count, 500)])
    return u, log_density - proposal.logpdf(u)


def truncated_weights(log_w: np.ndarray) -> np.ndarray:
    """Return normalised weights, none above the mean times sqrt(n) (Ionides 2008)."""
    bound = special.logsumexp(log_w) - 0.5 * np.log(len(log_w))
    return special.softmax(np.minimum(log_w, bound))


def laplace(log_joint: LogJoint, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mode of a density and the inverse of its negative Hessian there."""
    found = optimize.minimize(lambda u: -log_joint(u), start, method="L-BFGS-B")
    step, identity = 1e-3, np.eye(len(start))
    pairs = identity[:, None] + identity, identity[:, None] - identity
    second = [log_joint(found.x + sign * step * p) for p in pairs for sign in (1, -1)]
    hessian = (second[0] + second[1] - second[2] - second[3]) / (4 * step**2)
    return found.x, np.linalg.inv(-hessian)


# Densities


def log_normal(x: np.ndarray, sd: float, mean: float = 0.0) -> np.ndarray:
    return stats.norm(mean, sd).logpdf(x)


def log_scale(u: np.ndarray, prior) -> np.ndarray:
    """Return the density of u = log s from that of a positive s."""
    return prior.logpdf(np.exp(u)) + u


def half_normal(u: np.ndarray, sd: float) -> np.ndarray:
    return log_scale(u, stats.halfnorm(scale=sd))

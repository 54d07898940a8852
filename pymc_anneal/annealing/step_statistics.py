"""What is kept of a step: a few sums over the particles of a chain.

With ``W`` the running weights before a step and ``u = f_{beta_k} / f_{beta_{k-1}}``, the sums of
``W u``, ``(W u)^2`` and ``W u^2`` give the running estimate, its effective sample size and the
discrepancy of the step; the mean and the square of the velocity its Fisher information. Blocks
reduce their own particles as they go, so memory does not grow with them, and are merged at the end.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jax.scipy.special import logsumexp
from scipy import special

from pymc_anneal.base.contracts import StepInfo


class Stats(NamedTuple):
    """Sums over the particles of a chain, by step; arrays of shape ``(steps, chains)``.

    With ``W`` the running weights before a step and ``u = f_{beta_k} / f_{beta_{k-1}}``:

    Attributes
    ----------
    log_w, log_w_squared, log_wu_squared
        Logs of the sums of ``W u``, ``(W u)^2`` and ``W u^2``.
    velocity, velocity_squared
        Means of ``v`` and ``v^2`` at ``beta_k`` under the weights ``W u``.
    accept_rate
        Mean acceptance probability.
    nan
        Number of proposals with a density that is NaN.
    """

    log_w: Any
    log_w_squared: Any
    log_wu_squared: Any
    velocity: Any
    velocity_squared: Any
    accept_rate: Any
    nan: Any


def reduce_step(log_weight, log_u, velocity, info: StepInfo, chains: int) -> Stats:
    """Return the sums of one step, arrays of shape ``(chains,)``.

    Parameters
    ----------
    log_weight, log_u, velocity : Array, shape (n,)
        ``log W``, ``log u`` and ``v`` of the particles, chain by chain.
    info
        What the transition reported.
    chains
        Number of chains.
    """
    log_weight, log_u, velocity = (a.reshape(chains, -1) for a in (log_weight, log_u, velocity))
    new = log_weight + log_u
    log_w = logsumexp(new, axis=1)
    share = jnp.exp(new - log_w[:, None])
    share = jnp.where(share > 0, share, 0.0)  # NaN where all weights are zero
    velocity = jnp.where(share > 0, velocity, 0.0)  # -inf where the likelihood is zero
    mean = (share * velocity).sum(axis=1)
    return Stats(
        log_w=log_w,
        log_w_squared=logsumexp(2 * new, axis=1),
        log_wu_squared=logsumexp(new + log_u, axis=1),
        velocity=mean,
        velocity_squared=(share * velocity**2).sum(axis=1),
        accept_rate=info.accept_rate.reshape(chains, -1).mean(axis=1),
        nan=info.nan.reshape(chains, -1).sum(axis=1),
    )


def merge_stats(parts: Sequence[Stats]) -> Stats:
    """Combine the statistics of blocks, of equal size, of the same chains."""
    log_w = np.stack([p.log_w for p in parts])
    total = np.logaddexp.reduce(log_w)
    with np.errstate(invalid="ignore"):
        share = np.nan_to_num(np.exp(log_w - total))

    def weighted(name: str) -> np.ndarray:
        return (share * np.stack([getattr(p, name) for p in parts])).sum(axis=0)

    def log_sum(name: str) -> np.ndarray:
        return np.logaddexp.reduce([getattr(p, name) for p in parts])

    return Stats(
        log_w=total,
        log_w_squared=log_sum("log_w_squared"),
        log_wu_squared=log_sum("log_wu_squared"),
        velocity=weighted("velocity"),
        velocity_squared=weighted("velocity_squared"),
        accept_rate=np.mean([p.accept_rate for p in parts], axis=0),
        nan=np.sum([p.nan for p in parts], axis=0),
    )


def discrepancies(stats: Stats, particles: int) -> np.ndarray:
    """``D_k = log(sum W u^2 sum W / (sum W u)^2)`` of each step, shape ``(K,)``.

    Parameters
    ----------
    stats
        Sums by step and chain.
    particles
        Number of particles over all chains.
    """
    log_w = special.logsumexp(stats.log_w, axis=1)
    before = np.concatenate([[np.log(particles)], log_w[:-1]])
    with np.errstate(invalid="ignore"):
        d = special.logsumexp(stats.log_wu_squared, axis=1) + before - 2 * log_w
    return np.maximum(np.nan_to_num(d), 0.0)

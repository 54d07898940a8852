"""Statistics of the annealing steps: sums over the particles of each chain.

With ``W`` the running weights before step ``k`` and ``u = f_{beta_k} / f_{beta_{k-1}}``, the sums
of ``W u``, ``(W u)^2`` and ``W u^2`` give the running estimate of the normaliser, its effective
sample size

    ESS = (sum W u)^2 / sum (W u)^2

and the discrepancy of the step (Syed et al. 2024; zero if all ``u`` are equal)

    D = log( sum W u^2  sum W / (sum W u)^2 ).

The mean and the mean square of the velocity give the Fisher information of the path. Each block
reduces its own particles at every step, so memory does not grow with the number of steps.
"""

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jax.scipy.special import logsumexp
from scipy import special

from pymc_anneal.base.array_namespace import array_namespace, special_functions
from pymc_anneal.base.contracts import StepInfo

# JAX arrays in the compiled loop, NumPy arrays outside of it.
ArrayT = TypeVar("ArrayT")


class Stats(NamedTuple, Generic[ArrayT]):
    """Sums over the particles of a chain; arrays of shape ``(steps, chains)``, or one step's row.

    With ``W`` the running weights before a step and ``u = f_{beta_k} / f_{beta_{k-1}}``:

    Attributes
    ----------
    log_w, log_w_squared, log_wu_squared
        Logs of the sums of ``W u``, ``(W u)^2`` and ``W u^2``, in nats.
    velocity, velocity_squared
        Means of ``v`` and ``v^2`` at ``beta_k`` under the weights ``W u``; ``v`` is the derivative
        of ``log f_beta`` in ``beta``.
    accept_rate
        Mean acceptance probability.
    nan
        Sum over the particles of the share of proposals at which the log density was NaN.
    """

    log_w: ArrayT
    log_w_squared: ArrayT
    log_wu_squared: ArrayT
    velocity: ArrayT
    velocity_squared: ArrayT
    accept_rate: ArrayT
    nan: ArrayT


def reduce_step(
    log_weight: jax.Array, log_u: jax.Array, velocity: jax.Array, info: StepInfo, chains: int
) -> Stats[jax.Array]:
    """Compute the sums of one step.

    Parameters
    ----------
    log_weight, log_u, velocity : Array, shape (chains * m,)
        ``log W``, ``log u`` and ``v`` of the particles, chain by chain.
    info : StepInfo
        Diagnostics of the transition.
    chains : int
        Number of chains.

    Returns
    -------
    Stats
        Arrays of shape ``(chains,)``.
    """
    log_weight, log_u, velocity = (a.reshape(chains, -1) for a in (log_weight, log_u, velocity))
    new = log_weight + log_u
    # One operation for all three sums compiles in half the time.
    sums = logsumexp(jnp.stack([new, 2 * new, new + log_u]), axis=2)
    log_w, log_w_squared, log_wu_squared = sums
    share = jnp.exp(new - log_w[:, None])
    share = jnp.where(share > 0, share, 0.0)  # NaN if all weights of the chain are zero
    velocity = jnp.where(share > 0, velocity, 0.0)  # -inf at a likelihood of zero
    mean = (share * velocity).sum(axis=1)
    return Stats(
        log_w=log_w,
        log_w_squared=log_w_squared,
        log_wu_squared=log_wu_squared,
        velocity=mean,
        velocity_squared=(share * velocity**2).sum(axis=1),
        accept_rate=info.accept_rate.reshape(chains, -1).mean(axis=1),
        nan=info.nan.reshape(chains, -1).sum(axis=1),
    )


def concatenate_stats(parts: Sequence[Stats[np.ndarray]]) -> Stats[np.ndarray]:
    """Return the statistics of consecutive pieces of a run as one."""
    return Stats(*(np.concatenate(pieces) for pieces in zip(*parts, strict=True)))


def merge_stats(parts: Sequence[Stats[np.ndarray]]) -> Stats[np.ndarray]:
    """Pool the statistics of blocks of equal size that hold particles of the same chains."""
    log_w = np.stack([p.log_w for p in parts])
    total = np.logaddexp.reduce(log_w)
    with np.errstate(invalid="ignore"):
        share = np.nan_to_num(np.exp(log_w - total))  # NaN if no block has any weight

    def pool_mean(values: list[np.ndarray]) -> np.ndarray:
        return np.asarray((share * np.stack(values)).sum(axis=0))

    def pool_sum(log_values: list[np.ndarray]) -> np.ndarray:
        return np.asarray(np.logaddexp.reduce(log_values))

    return Stats(
        log_w=np.asarray(total),
        log_w_squared=pool_sum([p.log_w_squared for p in parts]),
        log_wu_squared=pool_sum([p.log_wu_squared for p in parts]),
        velocity=pool_mean([p.velocity for p in parts]),
        velocity_squared=pool_mean([p.velocity_squared for p in parts]),
        accept_rate=np.mean([p.accept_rate for p in parts], axis=0),
        nan=np.sum([p.nan for p in parts], axis=0),
    )


def discrepancies(stats: Stats[np.ndarray], particles: int) -> np.ndarray:
    """Compute the discrepancy ``D`` of every step of a run, shape ``(K,)``."""
    log_w = special.logsumexp(stats.log_w, axis=1)
    before = np.concatenate([[np.log(particles)], log_w[:-1]])
    with np.errstate(invalid="ignore"):
        d = special.logsumexp(stats.log_wu_squared, axis=1) + before - 2 * log_w
    return np.asarray(np.maximum(np.nan_to_num(d), 0.0))


def discrepancy(log_u: jax.Array | np.ndarray) -> jax.Array | np.ndarray:
    """Compute the discrepancy ``D`` of a step from log ratios, those of zero left out."""
    xp = array_namespace(log_u)
    # It depends on differences alone, which are lost in the sum of numbers of 1e300.
    largest = log_u.max()
    log_u = log_u - xp.where(xp.isfinite(largest), largest, 0.0)
    both = xp.stack([log_u, 2 * log_u])
    log_sum, log_sum_squared = special_functions(xp).logsumexp(both, axis=1)
    found: jax.Array = log_sum_squared - 2 * log_sum + xp.log(xp.isfinite(log_u).sum())
    return found

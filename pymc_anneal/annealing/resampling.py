"""Systematic resampling, of populations on the way (Del Moral, Doucet & Jasra 2006) and at the end.

Where the effective sample size of a population's running weights falls below a share of its
particles, those are drawn anew in proportion to their weights, and each continues with the mean
weight. With a frozen schedule and frozen kernels the mean weight at the end is an unbiased
estimate of Z whatever the rule that decides when (Whiteley, Lee & Heine 2016). The particles of a
population then share ancestors: only populations are independent of each other. At the end of a
run its particles are resampled to draws of equal weight.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jax.scipy.special import logsumexp

from pymc_anneal.base.contracts import KernelState, Scalar


def resample_populations(
    key: jax.Array, state: KernelState, log_weight: jax.Array, chains: int, threshold: Scalar
) -> tuple[KernelState, jax.Array]:
    """Resample the populations that need it.

    Parameters
    ----------
    key
        Randomness.
    state : KernelState
        Leaves of shape ``(chains * m, ...)``, population by population.
    log_weight : Array, shape (chains * m,)
        Running log weights.
    chains
        Number of populations.
    threshold
        Effective sample size, as a share of ``m``, below which a population is resampled.

    Returns
    -------
    KernelState, Array of shape (chains * m,)
        The particles, and their log weights: of a resampled population, the log mean weight.
    """
    rows = log_weight.reshape(chains, -1)
    m, log_sum = rows.shape[1], logsumexp(rows, axis=1)
    log_ess = 2 * log_sum - logsumexp(2 * rows, axis=1)  # NaN where all weights are zero
    due = (log_ess < jnp.log(threshold * m))[:, None]

    def draw() -> tuple[KernelState, jax.Array]:
        index = jnp.where(due, _systematic(key, rows - log_sum[:, None]), jnp.arange(m))
        flat = (index + m * jnp.arange(chains)[:, None]).ravel()
        weights = jnp.where(due, log_sum[:, None] - jnp.log(m), rows)
        return jax.tree.map(lambda leaf: leaf[flat], state), weights.ravel()

    return jax.lax.cond(due.any(), draw, lambda: (state, log_weight))


def _systematic(key: jax.Array, log_share: jax.Array) -> jax.Array:
    """Return indices of shape ``(chains, m)``, increasing along each row."""
    chains, m = log_share.shape
    edges = jnp.cumsum(jnp.exp(log_share), axis=1)
    points = (jnp.arange(m) + jax.random.uniform(key, (chains, 1))) / m * edges[:, -1:]
    find = jax.vmap(lambda e, p: jnp.searchsorted(e, p, side="right"))
    return find(edges, points).clip(0, m - 1)


def systematic(rng: np.random.Generator, weight: np.ndarray, draws: int) -> np.ndarray:
    """Return increasing indices of shape ``(draws,)`` in proportion to weights not all zero."""
    edges = np.cumsum(weight) / weight.sum()
    points = (np.arange(draws) + rng.uniform()) / draws
    return np.searchsorted(edges, points, side="right").clip(0, len(weight) - 1)


def resample(log_weight: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Systematic resampling of one chain; return indices of shape ``(draws,)``, shuffled."""
    weight = np.exp(log_weight - log_weight.max())
    return rng.permutation(systematic(rng, weight, draws))


def equal_weights(
    position: np.ndarray,
    log_weight: np.ndarray,
    draws: int,
    rng: np.random.Generator,
    *,
    together: bool = False,
) -> np.ndarray:
    """Resample the particles of each chain to equal weights.

    Parameters
    ----------
    position, log_weight : ndarray, shapes (chains, particles, d) and (chains, particles)
    draws
        Number in each chain.
    rng
        Source of randomness.
    together
        Whether to keep the order of the particles, so that copies are neighbours.

    Returns
    -------
    ndarray, shape (chains, draws, d)
    """
    index = np.stack([resample(row, draws, rng) for row in log_weight])
    if together:
        index = np.sort(index, axis=1)
    return np.take_along_axis(position, index[:, :, None], axis=1)

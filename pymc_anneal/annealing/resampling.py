"""Systematic resampling, during a run (Del Moral, Doucet & Jasra 2006) and after it.

If the effective sample size of a population's running weights falls below a share of its
particles, new particles are drawn in proportion to the weights, and each continues with the mean
weight. With a fixed schedule and fixed kernels the mean weight at the end is an unbiased estimate
of Z for any rule that decides when to resample (Whiteley, Lee & Heine 2016). The particles of a
population then share ancestors: only populations are independent of each other. After the run, the
particles of each chain are resampled to draws of equal weight.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jax.scipy.special import logsumexp

from pymc_anneal.base.contracts import KernelState, Scalar


def resample_populations(
    key: jax.Array, state: KernelState, log_weight: jax.Array, chains: int, threshold: Scalar
) -> tuple[KernelState, jax.Array]:
    """Resample the populations whose weights are uneven.

    Leaves of the state have the shape ``(chains * m, ...)``, log weights ``(chains * m,)``,
    population by population. The threshold is an effective sample size as a share of ``m``. In a
    resampled population, log weights are their log mean weight.
    """
    rows = log_weight.reshape(chains, -1)
    m, log_sum = rows.shape[1], logsumexp(rows, axis=1)
    # NaN, hence not resampled, if all weights are zero.
    log_ess = 2 * log_sum - logsumexp(2 * rows, axis=1)
    due = (log_ess < jnp.log(threshold * m))[:, None]

    def draw() -> tuple[KernelState, jax.Array]:
        index = jnp.where(due, _systematic_rows(key, rows - log_sum[:, None]), jnp.arange(m))
        flat = (index + m * jnp.arange(chains)[:, None]).ravel()
        weights = jnp.where(due, log_sum[:, None] - jnp.log(m), rows)
        return jax.tree.map(lambda leaf: leaf[flat], state), weights.ravel()

    resampled: tuple[KernelState, jax.Array] = jax.lax.cond(
        due.any(), draw, lambda: (state, log_weight)
    )
    return resampled


def _systematic_rows(key: jax.Array, log_share: jax.Array) -> jax.Array:
    """Draw indices in proportion to ``exp(log_share)``, shape ``(chains, m)``, sorted by row."""
    chains, m = log_share.shape
    edges = jnp.cumsum(jnp.exp(log_share), axis=1)
    points = (jnp.arange(m) + jax.random.uniform(key, (chains, 1))) / m * edges[:, -1:]
    index: jax.Array = jax.vmap(partial(jnp.searchsorted, side="right"))(edges, points)
    return index.clip(0, m - 1)


def systematic(rng: np.random.Generator, weight: np.ndarray, draws: int) -> np.ndarray:
    """Draw sorted indices of shape ``(draws,)`` in proportion to weights, not all of them zero.

    `_systematic_rows` does this inside the compiled step, with a key and a fixed number of draws.
    """
    edges = np.cumsum(weight) / weight.sum()
    points = (np.arange(draws) + rng.uniform()) / draws
    return np.searchsorted(edges, points, side="right").clip(0, len(weight) - 1)


def resample(log_weight: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Resample one chain of log weights: a shuffled order of the particles, copies side by side.

    Copies then count as autocorrelation, of which effective sample sizes of draws are made.
    """
    index = systematic(rng, np.exp(log_weight - log_weight.max()), draws)
    place = rng.permutation(len(log_weight))
    return index[np.argsort(place[index], kind="stable")]


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
    position : ndarray, shape (chains, particles, d)
    log_weight : ndarray, shape (chains, particles)
    draws : int
        Number of draws in each chain.
    rng : Generator
        Source of randomness.
    together : bool
        Whether to keep the order of the particles, so that those with common ancestors are
        neighbours; otherwise copies of a particle are.

    Returns
    -------
    ndarray, shape (chains, draws, d)
    """
    index = np.stack([resample(row, draws, rng) for row in log_weight])
    if together:
        index = np.sort(index, axis=1)
    return np.take_along_axis(position, index[:, :, None], axis=1)

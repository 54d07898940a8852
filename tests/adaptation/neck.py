"""Effects that are wide in the neck of a funnel, and narrow elsewhere.

``log s ~ -Exp(1)``, and each of 80 effects is normal with variance ``1 / (1 + s^2)`` about
``s^2 / (1 + s^2)``: its posterior where the scale ``s`` multiplies a standard normal variable, and
one datum of unit error is ``s``. The evidence is one.
"""

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base import LogTerms

EFFECTS = 80
# Below, with a probability of 5 %, is the neck.
NECK = -3.0
PRIOR_SD = np.repeat([3.0, 2.0], [1, EFFECTS])


def terms(x: jax.Array) -> LogTerms:
    squared = jnp.exp(2 * x[0])
    effects = jax.scipy.stats.norm.logpdf(x[1:], squared / (1 + squared), (1 + squared) ** -0.5)
    log_posterior = jnp.where(x[0] < 0, x[0], -jnp.inf) + effects.sum()
    log_prior = jax.scipy.stats.norm.logpdf(x, 0, PRIOR_SD).sum()
    return LogTerms(log_prior, log_posterior - log_prior)


def draw_prior(seed: np.random.SeedSequence, draws: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, PRIOR_SD, (draws, 1 + EFFECTS))


def posterior(draws: int, seed: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    log_s = -rng.exponential(size=draws)
    squared = np.exp(2 * log_s)[:, None]
    e = rng.standard_normal((draws, EFFECTS))
    return np.column_stack([log_s, (squared + e * np.sqrt(1 + squared)) / (1 + squared)])

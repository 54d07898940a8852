"""Independent draws from mixtures.

Strata (numbers of draws in proportion to the weights) would have a smaller error, but not one that
can be read off the weights.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import jax
import numpy as np

# From a seed and a number n to draws of shape (n, d).
Sampler: TypeAlias = Callable[[np.random.SeedSequence, int], np.ndarray]


def mixed_draws(
    seed: np.random.SeedSequence,
    draws: int,
    weight: jax.Array | np.ndarray,
    samplers: Sequence[Sampler],
) -> np.ndarray:
    """Draw from a mixture of components of such shares, ``(J,)``: independent rows, ``(n, d)``."""
    seed_label, *seeds = seed.spawn(1 + len(samplers))
    rng = np.random.default_rng(seed_label)
    share = np.asarray(weight)
    counts = rng.multinomial(draws, share / share.sum())
    parts = [s(own, int(n)) for s, own, n in zip(samplers, seeds, counts, strict=True) if n]
    return np.asarray(rng.permutation(np.concatenate(parts)))

"""Seeds and keys: everything random follows from one ``numpy.random.SeedSequence``."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def seed_sequence(random_seed: Any) -> np.random.SeedSequence:
    """Return a fresh seed sequence for what users pass as ``random_seed``."""
    if isinstance(random_seed, np.random.SeedSequence):
        return np.random.SeedSequence(random_seed.entropy, spawn_key=random_seed.spawn_key)
    if isinstance(random_seed, np.random.Generator):
        return np.random.SeedSequence(random_seed.integers(2**63, size=4).tolist())
    try:
        return np.random.SeedSequence(random_seed)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`random_seed` is {random_seed!r}, expected a non-negative int, a sequence of them, "
            "a numpy SeedSequence or Generator, or None."
        ) from error


def key_of(seed: np.random.SeedSequence) -> jax.Array:
    """Make a JAX key from a seed."""
    return jax.random.wrap_key_data(
        jnp.asarray(seed.generate_state(2, np.uint32)), impl="threefry2x32"
    )

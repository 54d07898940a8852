"""Seeds and JAX keys; every random number of a run derives from one `numpy.random.SeedSequence`."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

# Values that users may pass as `random_seed`.
RandomSeed: TypeAlias = int | Sequence[int] | np.random.SeedSequence | np.random.Generator | None


def seed_sequence(random_seed: RandomSeed) -> np.random.SeedSequence:
    """Return a new seed sequence.

    Parameters
    ----------
    random_seed : int, sequence of int, SeedSequence, Generator or None
        A seed sequence is copied without its count of spawned children, so that equal arguments
        give equal runs; a generator is advanced; None takes entropy from the operating system.

    Raises
    ------
    ValueError
        The value cannot seed a generator.
    """
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


def describe_seed(seed: np.random.SeedSequence) -> str:
    """Return an expression for a seed that gives the same run as ``random_seed``."""
    entropy = seed.entropy if isinstance(seed.entropy, int) else np.asarray(seed.entropy).tolist()
    if not seed.spawn_key:
        return str(entropy)
    return f"SeedSequence({entropy}, spawn_key={tuple(seed.spawn_key)})"


def key_of(seed: np.random.SeedSequence) -> jax.Array:
    """Return the JAX key of a seed."""
    return key_from_words(seed.generate_state(2, np.uint32))


def spawned(seed: np.random.SeedSequence, index: int) -> np.random.SeedSequence:
    """Return a child that a new seed sequence spawns, without counting it as spawned."""
    return seed_sequence(seed).spawn(index + 1)[index]


def keys_of(seed: np.random.SeedSequence) -> Iterator[jax.Array]:
    """Yield JAX keys, one after the other; the same seed gives the same keys.

    Children of the seed, not of a JAX key, which would be a program to compile.
    """
    fresh = seed_sequence(seed)
    while True:
        yield key_of(fresh.spawn(1)[0])


def key_from_words(words: np.ndarray) -> jax.Array:
    """Return a JAX key made of random words, uint32 of shape ``(2,)``.

    The generator is named, so that JAX's default does not decide about the random numbers.
    """
    key: jax.Array = jax.random.wrap_key_data(jnp.asarray(words), impl="threefry2x32")
    return key

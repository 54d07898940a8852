"""Draws of Bernoulli units.

With a million units per step, random bits cost as much as the matrix products. PCG4D (Jarzynski &
Olano 2020) is a counter-based generator: a few multiplications and additions on four words of 32
bits, which pass the BigCrush tests of TestU01. Its mixing function is applied twice here, with the
key added both times, as a safety margin. A unit that is 1 with probability ``p`` compares 32 bits
with ``p``: probabilities are exact to 2^-31 or to the rounding of their floating type.
"""

from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np

ArrayT = TypeVar("ArrayT", np.ndarray, jax.Array)

# The linear congruential generator of Press et al. (Numerical Recipes), as in PCG4D.
_MULTIPLIER, _INCREMENT = 1664525, 1013904223


def random_bits(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Return uniform random 32-bit words.

    Parameters
    ----------
    key
        A JAX key of two words.
    shape
        Shape of the result, with at most 2^32 entries.

    Returns
    -------
    Array of uint32
    """
    words = jax.random.key_data(key)
    size = int(np.prod(shape))
    rows = -(-size // 4)
    counter = jnp.arange(rows, dtype=jnp.uint32)
    zero = jnp.zeros_like(counter)
    a, b, c, d = _mix(counter, zero + words[0], zero + words[1], ~counter)
    mixed = _mix(a + words[1], b, c + words[0], d)
    return jnp.stack(mixed).reshape(-1)[:size].reshape(shape)


def bernoulli(key: jax.Array, probability: jax.Array) -> jax.Array:
    """Draw 0 or 1, in the shape and floating type of the probabilities."""
    dtype = probability.dtype
    bits = random_bits(key, probability.shape)
    if dtype == jnp.float32:
        # 31 bits: signed integers are converted to floats by a single instruction.
        uniform = (bits >> 1).astype(jnp.int32).astype(dtype) * np.float32(2**-31)
        uniform = jnp.minimum(uniform, np.float32(1 - 2**-24))  # rounding may give 1
    else:
        uniform = (bits.astype(dtype) + 0.5) * 2.0**-32
    return _is_below(uniform, probability)


def bernoulli_numpy(rng: np.random.Generator, probability: np.ndarray) -> np.ndarray:
    """Draw 0 or 1 by NumPy, in the shape and floating type of the probabilities."""
    return _is_below(rng.random(probability.shape, dtype=probability.dtype.type), probability)


def _is_below(uniform: ArrayT, probability: ArrayT) -> ArrayT:
    return (uniform < probability).astype(probability.dtype)


def _mix(*words: jax.Array) -> tuple[jax.Array, ...]:
    a, b, c, d = (w * np.uint32(_MULTIPLIER) + np.uint32(_INCREMENT) for w in words)
    a, b, c, d = _round(a, b, c, d)
    return _round(*(v ^ (v >> 16) for v in (a, b, c, d)))


def _round(a: jax.Array, b: jax.Array, c: jax.Array, d: jax.Array) -> tuple[jax.Array, ...]:
    # Each line uses the new values of the lines above, which makes the map one to one.
    a = a + b * d
    b = b + c * a
    c = c + a * b
    return a, b, c, d + b * c

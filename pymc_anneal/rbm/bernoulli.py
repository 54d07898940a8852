"""Fast random bits for layers of Bernoulli units.

A million units a step make the random bits as costly as the matrix products. PCG4D (Jarzynski &
Olano 2020) is a counter-based generator of a few multiplications and additions on four words of 32
bits, which passes the tests of TestU01's BigCrush; here its mixing is applied twice, with the key
entering both times, as a margin. A unit that is on with probability ``p`` compares 32 bits with
``p``: probabilities are exact to 2^-31 or to the rounding of their own floating type.
"""

import jax
import jax.numpy as jnp
import numpy as np

_MULTIPLIER, _INCREMENT = 1664525, 1013904223


def random_bits(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Return uniform random 32-bit words.

    Parameters
    ----------
    key
        A JAX key of two words.
    shape
        Shape of the result, of at most 2^32 entries.

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


def _mix(*words: jax.Array) -> tuple[jax.Array, ...]:
    a, b, c, d = (w * np.uint32(_MULTIPLIER) + np.uint32(_INCREMENT) for w in words)
    a, b, c, d = _round(a, b, c, d)
    return _round(*(v ^ (v >> 16) for v in (a, b, c, d)))


def _round(a: jax.Array, b: jax.Array, c: jax.Array, d: jax.Array) -> tuple[jax.Array, ...]:
    a = a + b * d
    b = b + c * a  # each with the new value of the one before: the map is one to one
    c = c + a * b
    return a, b, c, d + b * c


def bernoulli(key: jax.Array, probability: jax.Array) -> jax.Array:
    """Draw 0 or 1, as numbers of the type of the probabilities."""
    dtype = probability.dtype
    bits = random_bits(key, probability.shape)
    if dtype == jnp.float32:  # 31 bits: the conversion of signed integers is a single instruction
        uniform = (bits >> 1).astype(jnp.int32).astype(dtype) * np.float32(2**-31)
        uniform = jnp.minimum(uniform, np.float32(1 - 2**-24))  # rounding may reach 1
    else:
        uniform = (bits.astype(dtype) + 0.5) * 2.0**-32
    return (uniform < probability).astype(dtype)

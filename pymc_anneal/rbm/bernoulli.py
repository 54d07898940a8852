"""Draws of Bernoulli units.

With a million units per step, random bits may cost as much as the matrix products. Here the word of
a unit is a function of its index and of the key alone, a few operations on 32 bits, which the
compiler joins with the comparison: no word is written to memory. The function is the mixing
function triple32 of Wellons (2018, https://github.com/skeeto/hash-prospector), three
multiplications and shifts that are one to one on 32 bits, with one word of the key added before
the first and the other one after it. Keys have to be those of JAX's own generator, which are
unrelated: two keys with the same second word give the same sequence of words, shifted.

A unit that is 1 with probability ``p`` compares 31 bits with ``p``: probabilities are exact to
2^-31 or to the rounding of their floating type.
"""

from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jax.typing import DTypeLike

ArrayT = TypeVar("ArrayT", np.ndarray, jax.Array)

# Shift and odd multiplier of each round of triple32.
_ROUNDS = (17, 0xED5AD4BB), (11, 0xAC4C1B51), (15, 0x31848BAB)
_LAST_SHIFT = 14

# From integers below 2^31 to floats below 1; times 2^-31 the largest ones would round to 1.
_SCALE = np.nextafter(np.float32(2**-31), np.float32(0))


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
    first, second = jax.random.key_data(key)
    word = _counter(shape) + first
    for number, (shift, multiplier) in enumerate(_ROUNDS):
        word = (word ^ (word >> shift)) * np.uint32(multiplier)
        if number == 0:
            word = word + second
    mixed: jax.Array = word ^ (word >> _LAST_SHIFT)
    return mixed


def _counter(shape: tuple[int, ...]) -> jax.Array:
    """Return the index of each entry in row-major order, as uint32."""
    counter = jnp.zeros(shape, jnp.uint32)
    for axis in range(len(shape)):
        stride = np.uint32(int(np.prod(shape[axis + 1 :])))
        counter = counter + stride * jax.lax.broadcasted_iota(jnp.uint32, shape, axis)
    return counter


def bernoulli(key: jax.Array, probability: jax.Array) -> jax.Array:
    """Draw 0 or 1, in the shape and floating type of the probabilities."""
    bits = random_bits(key, probability.shape)
    return _is_below(uniform(bits, probability.dtype), probability)


def uniform(bits: jax.Array, dtype: DTypeLike) -> jax.Array:
    """Return numbers from 0 to below 1 that increase with the words."""
    if dtype == jnp.float32:
        # 31 bits: signed integers are converted to floats by a single instruction.
        return jnp.multiply((bits >> 1).astype(jnp.int32).astype(dtype), _SCALE)
    return jnp.multiply(bits.astype(dtype) + 0.5, 2.0**-32)


def bernoulli_numpy(rng: np.random.Generator, probability: np.ndarray) -> np.ndarray:
    """Draw 0 or 1 by NumPy, in the shape and floating type of the probabilities."""
    return _is_below(rng.random(probability.shape, dtype=probability.dtype.type), probability)


def _is_below(uniform: ArrayT, probability: ArrayT) -> ArrayT:
    return (uniform < probability).astype(probability.dtype)

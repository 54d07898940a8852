"""Matrix products of binary units and weights.

On a GPU, products of 16-bit floating-point numbers are an order of magnitude faster than those of
float32. Units of 0 and 1 are exact in bfloat16, and a float32 weight is the exact sum of three
bfloat16 numbers. Three such products, accumulated in float32, are therefore as accurate as one of
float32. A single one with rounded weights would not be: the transitions would leave another density
invariant than the one that enters the weights.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

# Exponent and mantissa bits of bfloat16; three of its 8 significant bits hold the 24 of float32.
_EXPONENT, _MANTISSA, _PARTS = 8, 7, 3

# Columns of a weight matrix are padded to a multiple of this, the width of a vector register in
# single precision: the products of ragged ones take up to a tenth longer.
_COLUMNS = 16


def binary_product(units: jax.Array, weights: jax.Array | np.ndarray) -> jax.Array:
    """Return ``units @ weights`` for units of 0 and 1, in the way that is fastest on the device.

    Parameters
    ----------
    units : Array, shape (n, p)
        Each 0 or 1. Other values would be rounded to bfloat16 on a GPU.
    weights : Array, shape (p, q)
        Of the same floating type.

    Returns
    -------
    Array, shape (n, q)
    """
    if weights.dtype != jnp.float32:
        return units @ weights
    product: jax.Array = jax.lax.platform_dependent(
        units, weights, cuda=product_in_parts, default=jnp.matmul
    )
    return product


def product_with_biases(
    position: jax.Array, weights: jax.Array | np.ndarray, *biases: jax.Array | np.ndarray
) -> tuple[jax.Array, ...]:
    """Return ``v W``, ``(n, q)``, and ``a.v``, ``(n,)``, for each bias ``a``, by one product.

    Parameters
    ----------
    position : Array, shape (n, p)
        Units of 0 and 1.
    weights : Array, shape (p, q)
    *biases : Array, shape (p,)
    """
    q = weights.shape[1]
    # Where the parameters are the same at every step, XLA moves this out of the loop.
    wide = jnp.column_stack([weights, *biases]).astype(weights.dtype)
    wide = jnp.pad(wide, ((0, 0), (0, -wide.shape[1] % _COLUMNS)))
    product = binary_product(position, wide)
    return product[:, :q], *(product[:, q + i] for i in range(len(biases)))


def product_in_parts(units: jax.Array, weights: jax.Array) -> jax.Array:
    """Return ``units @ weights`` as the sum of three products in bfloat16."""
    multiply = partial(jnp.matmul, units.astype(jnp.bfloat16), preferred_element_type=jnp.float32)
    first, second, third = map(multiply, bfloat16_parts(weights))
    return third + second + first


def bfloat16_parts(weights: jax.Array) -> list[jax.Array]:
    """Return three arrays in bfloat16, the largest first, whose sum is an array in float32."""
    parts, rest = [], weights
    for _ in range(_PARTS):
        # XLA may leave out a conversion to bfloat16 and back, but not this rounding.
        part = jax.lax.reduce_precision(rest, _EXPONENT, _MANTISSA)
        parts.append(part.astype(jnp.bfloat16))
        rest = rest - part
    return parts

"""Cholesky factors of many small matrices, in plain arithmetic.

LAPACK goes through the matrices one by one, and with JAX 0.10 two threads that call it wait for
each other for ever (`annealing/lapack_turns.py`); a loop over columns takes all matrices at once.
"""

import jax
import jax.numpy as jnp


def factor(matrix: jax.Array) -> jax.Array:
    """Return the lower factors of symmetric matrices, shape ``(n, k, k)``.

    NaN where a matrix is not positive definite.
    """
    k = matrix.shape[-1]

    def column(j: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        rest, root = state
        below = jnp.where(jnp.arange(k) >= j, rest[:, :, j], 0.0)
        new = below / jnp.sqrt(rest[:, j, j])[:, None]
        return rest - new[:, :, None] * new[:, None, :], root.at[:, :, j].set(new)

    found: jax.Array = jax.lax.fori_loop(0, k, column, (matrix, jnp.zeros_like(matrix)))[1]
    return found


def inverse_factor(root: jax.Array) -> jax.Array:
    """Return the inverses of lower factors, shape ``(n, k, k)``."""
    unit = jnp.eye(root.shape[-1], dtype=root.dtype)

    def row(j: jax.Array, inverse: jax.Array) -> jax.Array:
        known = jnp.einsum("nk,nkl->nl", root[:, j], inverse)  # rows from j on are still zero
        return inverse.at[:, j].set((unit[j] - known) / root[:, j, j][:, None])

    found: jax.Array = jax.lax.fori_loop(0, root.shape[-1], row, jnp.zeros_like(root))
    return found

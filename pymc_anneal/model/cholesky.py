"""Cholesky factors and triangular systems of many small matrices at once.

On CPUs, JAX solves batches of triangular systems with many right-hand sides by a loop that takes
thirty times as long as the matrix products it replaces; the derivative of a batched Cholesky
factor is two of them. Here the factor is inverted by blocks, two of size ``m`` to one of size
``2m``, all pairs at once (Higham 2002, section 14.2):

    inv [A 0; B C] = [inv A, 0; -inv C B inv A, inv C].

The inverse is accurate to rounding times the condition number of the factor. A solution is
corrected by its residual once, which makes it as accurate as that of substitution (Higham 2002,
section 12.1). The derivative of the Cholesky factor ``L`` of ``S`` is

    dL = L phi(inv L dS inv L'),

with ``phi`` the lower triangle with half of its diagonal (Murray 2016, eq. 8).

`use_block_forms` replaces the Ops of PyTensor by subclasses that are translated to these functions.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.blockwise import Blockwise

try:
    from pytensor.tensor.linalg import Cholesky, SolveTriangular
except ImportError:  # PyTensor 2
    from pytensor.tensor.slinalg import Cholesky, SolveTriangular

from pymc_anneal.model.jax_dispatch import jax_funcify

# Blocks up to this size are inverted by substitution.
_BASE = 8


@jax.custom_jvp
def cholesky(matrix: jax.Array) -> jax.Array:
    """Compute the lower Cholesky factor of a symmetric matrix; NaN if it is not positive definite.

    Shapes are ``(..., n, n)``, and what is above the diagonal is not read.
    """
    return jax.lax.linalg.cholesky(matrix, symmetrize_input=False)


@cholesky.defjvp
def _cholesky_derivative(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    (matrix,), (change,) = primals, tangents
    factor = cholesky(matrix)
    inverse = invert_triangular(factor)
    symmetric = jnp.tril(change) + jnp.tril(change, -1).mT
    scaled = jnp.tril(_product(_product(inverse, symmetric), inverse.mT))
    half = jnp.where(jnp.eye(matrix.shape[-1], dtype=bool), scaled / 2, scaled)
    return factor, _product(factor, half)


@jax.custom_jvp
def invert_triangular(factor: jax.Array) -> jax.Array:
    """Invert lower triangular matrices, shape ``(..., n, n)``, read below the diagonal."""
    n = factor.shape[-1]
    doublings = max(0, int(np.ceil(np.log2(n / _BASE))))
    size = -(-n // 2**doublings)
    padded = _pad(factor, size * 2**doublings)
    inverse = _substitute(_blocks(padded, size, below=0))
    while size < padded.shape[-1]:
        inverse = _join(inverse, _blocks(padded, size, below=1))
        size *= 2
    return inverse[..., 0, :n, :n]


@invert_triangular.defjvp
def _inverse_derivative(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    (factor,), (change,) = primals, tangents
    inverse = invert_triangular(factor)
    return inverse, -_product(_product(inverse, jnp.tril(change)), inverse)


@jax.custom_jvp
def solve_triangular(factor: jax.Array, right: jax.Array) -> jax.Array:
    """Solve ``L x = b`` for a lower triangular matrix.

    Parameters
    ----------
    factor : Array, shape (..., n, n)
        What is above the diagonal is not read.
    right : Array, shape (..., n, k)

    Returns
    -------
    Array, shape (..., n, k)
    """
    return _refine(jnp.tril(factor), invert_triangular(factor), right)


@solve_triangular.defjvp
def _solution_derivative(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    (factor, right), (factor_change, change) = primals, tangents
    lower, inverse = jnp.tril(factor), invert_triangular(factor)
    solution = _refine(lower, inverse, right)
    rest = change - _product(jnp.tril(factor_change), solution)
    return solution, _refine(lower, inverse, rest)


def _refine(lower: jax.Array, inverse: jax.Array, right: jax.Array) -> jax.Array:
    """Solve ``L x = b`` with the inverse of ``L``, and correct the solution by its residual."""
    solution = _product(inverse, right)
    return solution + _product(inverse, right - _product(lower, solution))


def _product(left: jax.Array, right: jax.Array) -> jax.Array:
    return jnp.matmul(left, right, precision="highest")


def _pad(factor: jax.Array, size: int) -> jax.Array:
    """Extend a matrix by ones on the diagonal."""
    n = factor.shape[-1]
    widths = [(0, 0)] * (factor.ndim - 2) + [(0, size - n)] * 2
    return jnp.pad(factor, widths) + jnp.diag(jnp.arange(size) >= n).astype(factor.dtype)


def _blocks(matrix: jax.Array, size: int, below: int) -> jax.Array:
    """Return the blocks on the diagonal, or with ``below=1`` those that join two of them.

    The latter lie in every second row of blocks, left of the diagonal. The shape is
    ``(..., count, size, size)``.
    """
    rows = range(below * size, matrix.shape[-1], (1 + below) * size)
    left = below * size
    return jnp.stack([matrix[..., i : i + size, i - left : i - left + size] for i in rows], axis=-3)


def _substitute(blocks: jax.Array) -> jax.Array:
    """Invert lower triangular matrices row by row."""
    size = blocks.shape[-1]
    rows: list[jax.Array] = []
    for i in range(size):
        unit = jnp.broadcast_to(jnp.eye(size, dtype=blocks.dtype)[i], blocks.shape[:-1])
        known = sum((blocks[..., i, k, None] * row for k, row in enumerate(rows)), 0.0)
        rows.append((unit - known) / blocks[..., i, i, None])
    return jnp.stack(rows, axis=-2)


def _join(inverse: jax.Array, below: jax.Array) -> jax.Array:
    """Join inverses of neighbouring blocks on the diagonal, given the blocks below the first."""
    first, second = inverse[..., 0::2, :, :], inverse[..., 1::2, :, :]
    corner = -_product(_product(second, below), first)
    top = jnp.concatenate([first, jnp.zeros_like(first)], axis=-1)
    return jnp.concatenate([top, jnp.concatenate([corner, second], axis=-1)], axis=-2)


class BlockCholesky(Cholesky):  # type: ignore[misc]  # mypy does not see PyTensor's classes
    """Cholesky Op that is translated to `cholesky`."""


class BlockSolveTriangular(SolveTriangular):  # type: ignore[misc]
    """SolveTriangular Op for several right-hand sides that is translated to `solve_triangular`."""


def _translate_cholesky(op: Cholesky, **kwargs: Any) -> Callable[..., jax.Array]:
    return cholesky if op.lower else lambda matrix: cholesky(matrix.mT).mT


def _translate_solve(op: SolveTriangular, **kwargs: Any) -> Callable[..., jax.Array]:
    return solve_triangular if op.lower else _solve_upper


jax_funcify.register(BlockCholesky, _translate_cholesky)
jax_funcify.register(BlockSolveTriangular, _translate_solve)


def _solve_upper(factor: jax.Array, right: jax.Array) -> jax.Array:
    """Solve ``U x = b``: reversed in both directions, ``U`` is lower triangular."""
    return solve_triangular(factor[..., ::-1, ::-1], right[..., ::-1, :])[..., ::-1, :]


_OWN: dict[type, Any] = {Cholesky: BlockCholesky, SolveTriangular: BlockSolveTriangular}
# Ops at which `use_block_forms` looks.
REPLACED = (Blockwise, *_OWN)


def use_block_forms(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace an Op, or a batch of it, by its form here."""
    core = getattr(node.op, "core_op", node.op)
    own = _OWN.get(type(core))
    if own is None or (own is BlockSolveTriangular and (core.b_ndim == 1 or core.unit_diagonal)):
        return None
    op = own(**core._props_dict())
    batched = isinstance(node.op, Blockwise)
    return [(Blockwise(op, signature=node.op.signature) if batched else op)(*node.inputs)]

"""Turns of blocks whose densities call LAPACK.

With JAX 0.10, two programs in two threads wait for each other for ever if both call LAPACK:
Cholesky factors, triangular solutions, determinants, eigenvalues. There, blocks of such densities
take turns, chunk by chunk. Processes and newer versions of JAX need no turns.
"""

import threading

from contextlib import AbstractContextManager, nullcontext

import jax

from pymc_anneal.base.contracts import Path, PyTree

_MUST_TAKE_TURNS = jax.__version_info__ < (0, 12)
_lock = threading.Lock()


def lapack_turn(path: Path, position: PyTree) -> AbstractContextManager[object]:
    """Return the context in which to run a compiled chunk of a block."""
    return _lock if _MUST_TAKE_TURNS and calls_lapack(path, position) else nullcontext()


def calls_lapack(path: Path, position: PyTree) -> bool:
    """Whether the densities of a path are computed with LAPACK."""
    return "@lapack_" in _log_ratio.lower(path, position).as_text()


@jax.jit
def _log_ratio(path: Path, position: PyTree) -> jax.Array:
    return path.log_ratio(path.evaluate(position), 0.0, 1.0)

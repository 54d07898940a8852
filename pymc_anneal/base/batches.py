"""Evaluation of many positions: in batches of one size, and in parts that fit into a cache.

A program is compiled once for a size of batch. A batched density computes each of its intermediate
values for all positions before the next one. If such a value has as many numbers as the data have
rows, a batch does not fit into the cache of a processor, and reading and writing memory takes two
to three times as long as the arithmetic.
"""

import math

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

# Positions in a batch of a costly density: of more, memory takes longer than arithmetic.
COSTLY_BATCH = 32
# Numbers of the largest intermediate value of one part: 4 MB in double precision.
_CACHE = 2**19
# Smallest number for one position from which parts are faster: the other values take as much again.
_LARGE = 4096


def map_batches(
    function: Callable[..., Any], position: np.ndarray, size: int, *given: np.ndarray
) -> Any:
    """Apply a function to batches of positions and join what it returns.

    Parameters
    ----------
    function : callable
        From positions, shape ``(size, d)``, and what else is given, to a pytree of arrays of
        leading length ``size``.
    position : ndarray, shape (n, d)
    size : int
        Positions in a batch; the last one is filled up with its last row.
    *given : ndarray, shape (n, ...)
        Further arguments of the function, with a row for each position.

    Returns
    -------
    pytree of ndarray
        Of leading length ``n``.
    """
    n, arrays = len(position), (position, *given)
    if n % size:
        arrays = tuple(np.concatenate([a, np.repeat(a[-1:], -n % size, axis=0)]) for a in arrays)
    parts = zip(*(np.split(a, max(len(a) // size, 1)) for a in arrays), strict=True)
    found = [function(*own) for own in parts]
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:n], *found)


def in_parts(
    function: Callable[[jax.Array], Any], position: jax.Array, density: Callable[[jax.Array], Any]
) -> Any:
    """Apply a function to positions, in parts if they are many and take much memory.

    Parameters
    ----------
    function : callable
        From positions, shape ``(m, d)``, to a pytree of arrays of leading length ``m``.
    position : Array, shape (n, d)
    density : pytree
        JAX function of one position, shape ``(d,)``, that ``function`` evaluates.

    Returns
    -------
    pytree of Array
        Of leading length ``n``.
    """
    n, on_cpu = len(position), jax.default_backend() == "cpu"
    size = _part(n, _numbers(density, position[0])) if n > 1 and on_cpu else n
    if size == n:
        return function(position)
    found = jax.lax.map(function, position.reshape(n // size, size, -1))
    return jax.tree.map(lambda leaf: leaf.reshape(n, *leaf.shape[2:]), found)


def _part(n: int, numbers: int) -> int:
    """Return the size of equal parts of ``n`` positions; ``n`` if parts are not worthwhile."""
    if numbers < _LARGE or n * numbers < 2 * _CACHE:
        return n
    largest = max(_CACHE // numbers, 1)
    size = max(k for k in range(1, largest + 1) if n % k == 0)
    return size if size * 4 >= largest else n


def _numbers(density: Callable[[jax.Array], Any], row: jax.Array) -> int:
    """Return the size of the largest intermediate value of a density; 0 if it calls the host."""
    calls = list(_calls(jax.make_jaxpr(density)(row).jaxpr))
    if any("callback" in call.primitive.name for call in calls):
        return 0  # the host is called once for all positions
    return max((math.prod(out.aval.shape) for call in calls for out in call.outvars), default=0)


def _calls(program: Any) -> Iterator[Any]:
    """Yield the operations of a program, with those of its inner programs."""
    for call in program.eqns:
        yield call
        for inner in jax.tree.leaves(call.params):
            if hasattr(inner, "eqns"):
                yield from _calls(inner)

"""Evaluation of many positions in batches of one size, for which a program is compiled once."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

# Positions in a batch of a costly density: of more, memory takes longer than arithmetic.
COSTLY_BATCH = 32


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

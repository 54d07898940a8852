"""Evaluation of many positions in batches of one size, for which a program is compiled once."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

# Positions in a batch of a costly density: of more, memory takes longer than arithmetic.
COSTLY_BATCH = 32


def map_batches(function: Callable[[np.ndarray], Any], position: np.ndarray, size: int) -> Any:
    """Apply a function to batches of positions and join what it returns.

    Parameters
    ----------
    function : callable
        From positions, shape ``(size, d)``, to a pytree of arrays of leading length ``size``.
    position : ndarray, shape (n, d)
    size : int
        Positions in a batch; the last one is filled up with its last row.

    Returns
    -------
    pytree of ndarray
        Of leading length ``n``.
    """
    n = len(position)
    padded = np.pad(position, ((0, -n % size), (0, 0)), mode="edge") if n % size else position
    found = [function(batch) for batch in np.split(padded, max(len(padded) // size, 1))]
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:n], *found)

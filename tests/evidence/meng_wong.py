"""The bridge between two densities by the iteration of Meng & Wong (1996), written out."""

import numpy as np


def bridge(a: np.ndarray, b: np.ndarray, weight: np.ndarray, reverse: float) -> float:
    """Return ``log Z`` from log ratios at draws of both ends.

    Parameters
    ----------
    a, b : ndarray, shapes (n,) and (m,)
        Log ratios at draws of the first density and of the last.
    weight : ndarray, shape (m,)
        Weights of the latter, which sum to one.
    reverse : float
        Share of the latter in the bridge.
    """
    z = 1.0
    for _ in range(500):
        above = np.mean(np.exp(a) / ((1 - reverse) * z + reverse * np.exp(a)))
        z = above / (weight / ((1 - reverse) * z + reverse * np.exp(b))).sum()
    return float(np.log(z))

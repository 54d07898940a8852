"""Rows of a pooled family from draws of a known continuous distribution.

With ``F`` the distribution, ``z = Phi^-1(F(x))`` is standard normal whatever the tails of ``x``:
its mean is zero and its variance one, and the two estimates are uncorrelated.
"""

import numpy as np

from scipy import stats


def normal_scores(x: np.ndarray, law) -> np.ndarray:
    """Return ``Phi^-1(F(x))``, from whichever tail is exact."""
    lower, upper = law.cdf(x), law.sf(x)
    return np.where(lower < upper, stats.norm.ppf(lower), stats.norm.isf(upper))


def score_rows(name: str, x: np.ndarray, law, wider: float = 1.0) -> dict[str, tuple]:
    """Return the rows of the mean and the variance of the normal scores of draws.

    Equal draws are copies of one particle, which is counted once, by its share ``c_i / n``. The
    error of a share-weighted mean of ``h`` is ``(sum_i (c_i / n)^2 (h_i - E h)^2)^(1/2)``, in which
    the spread of the shares counts both their weights and the rounding of a resampling.

    Parameters
    ----------
    name : str
        What was drawn.
    x : ndarray, any shape
    law : frozen distribution of scipy.stats
    wider : float
        Factor of the scores, for the wrong twin.
    """
    value, copies = np.unique(x, return_counts=True)
    z, share = wider * normal_scores(value, law), copies / copies.sum()

    def row(h: np.ndarray, exact: float) -> tuple[float, float, float]:
        return float(share @ h), exact, float(np.sqrt(share**2 @ (h - exact) ** 2))

    return {f"{name}, mean": row(z, 0.0), f"{name}, variance": row(z**2, 1.0)}

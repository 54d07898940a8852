"""The posterior density of some coordinates at a point, from draws.

With the unnormalised posterior ``q(b, r)``, the coordinates of interest ``b``, all others ``r``, a
matrix ``A`` and any density ``w``, the shear ``u = r - A b`` has volume one, so that

    p(b_0 | y) = E[ w(b) q(b_0, r + A (b_0 - b)) / q(b, r) ]

over the posterior, for every ``w`` and ``A`` (importance weighted marginal density estimation;
Chen 1994, eq. 2.3, with ``A = 0``). ``A`` is the regression of ``r`` on ``b``: for a normal
posterior the ratio of the ``q`` then depends on ``b`` alone. ``w`` is a normal density inside of an
ellipsoid and zero outside, because in the tails its ratio to ``q`` may be large without a draw that
shows it; of several, that with the largest effective sample size is taken. ``A`` and ``w`` come
from one half of the draws, the mean from the other.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from scipy.stats import chi2, multivariate_normal

from pymc_anneal.evidence.ais import effective_sample_size
from pymc_anneal.evidence.mean_ratio import MeanRatio, mean_ratio
from pymc_anneal.evidence.posterior_density import LogDensity

# From values of the coordinates, shape (n, k), to log w, shape (n,).
_LogW: TypeAlias = Callable[[np.ndarray], np.ndarray]

# Mass of a normal density inside of the ellipsoid: for a normal posterior the ratio has a relative
# variance of 1 / 0.95 - 1 = 0.05.
_MASS = 0.95

# Centres of w between the mean of the draws and the point, and widths in standard deviations.
_CENTRES, _WIDTHS = (0.0, 0.25, 0.5, 1.0), (1.0, 0.8, 0.6, 0.4)


def posterior_density_at(
    draws: np.ndarray, log_density: LogDensity, coordinates: np.ndarray, value: np.ndarray
) -> MeanRatio:
    """Estimate the log posterior density of some coordinates at a point.

    Parameters
    ----------
    draws : ndarray, shape (chains, n, d)
        Posterior draws in the unconstrained space.
    log_density : Callable
        Log of the unnormalised posterior, from shape ``(m, d)`` to shape ``(m,)``.
    coordinates : ndarray of int, shape (k,)
        Indices of the coordinates.
    value : ndarray, shape (k,)
        The point.

    Returns
    -------
    MeanRatio
        In nats, with respect to the unconstrained coordinates.

    Raises
    ------
    ValueError
        A coordinate is constant among the draws, or the density at the point is zero.

    References
    ----------
    Chen (1994), Importance-weighted marginal Bayesian posterior density estimation.
    """
    chains, n, d = draws.shape
    first, second = (part.reshape(-1, d) for part in (draws[:, : n // 2], draws[:, n // 2 :]))
    slope = _regress(first, coordinates)

    def log_ratio(x: np.ndarray) -> np.ndarray:
        moved = x + (value - x[:, coordinates]) @ slope
        moved[:, coordinates] = value
        return log_density(moved) - log_density(x)

    b, fitted = first[:, coordinates], log_ratio(first)
    log_w = max(_candidates(b, value), key=lambda w: effective_sample_size(w(b) + fitted))
    return mean_ratio((log_w(second[:, coordinates]) + log_ratio(second)).reshape(chains, -1))


def _candidates(b: np.ndarray, value: np.ndarray) -> Iterator[_LogW]:
    """Yield densities at and around the draws, shape ``(n, k)``, of a point."""
    mean, covariance = b.mean(axis=0), np.atleast_2d(np.cov(b.T))
    for centre in _CENTRES:
        for width in _WIDTHS:
            yield _truncated_normal(mean + centre * (value - mean), width**2 * covariance)


def _truncated_normal(mean: np.ndarray, covariance: np.ndarray) -> _LogW:
    """Return the log density of a normal distribution inside of its ellipsoid."""
    normal = multivariate_normal(mean, covariance)
    # The density falls by half the squared distance from the centre.
    lowest = normal.logpdf(mean) - 0.5 * chi2.ppf(_MASS, len(mean))

    def log_w(x: np.ndarray) -> np.ndarray:
        value = np.atleast_1d(normal.logpdf(x))
        return np.where(value >= lowest, value - np.log(_MASS), -np.inf)

    return log_w


def _regress(x: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
    """Return the regression of all coordinates on some of them, shape ``(k, d)``."""
    b = x[:, coordinates]
    if (np.ptp(b, axis=0) == 0).any():
        raise ValueError("A coordinate of the null is the same in all draws: the chains are stuck.")
    covariance = np.atleast_2d(np.cov(b.T))
    joint = (b - b.mean(axis=0)).T @ (x - x.mean(axis=0)) / (len(x) - 1)
    return np.linalg.solve(covariance, joint)

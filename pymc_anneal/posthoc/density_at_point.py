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

On a curved ridge the ratio has a tail that few draws show. The witness is a count: the mean density
over a ball around the point, times its volume, is the share of the draws in it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from scipy.special import gammaln, logsumexp, ndtri
from scipy.stats import chi2, multivariate_normal
from scipy.stats.qmc import Halton

from pymc_anneal.evidence.ais import effective_sample_size
from pymc_anneal.evidence.mean_ratio import MeanRatio, mean_ratio
from pymc_anneal.evidence.posterior_density import LogDensity
from pymc_anneal.evidence.verdict import Verdict, verdict_from

# From values of the coordinates, shape (n, k), to log w, shape (n,).
_LogW: TypeAlias = Callable[[np.ndarray], np.ndarray]

# Mass of a normal density inside of the ellipsoid: for a normal posterior the ratio has a relative
# variance of 1 / 0.95 - 1 = 0.05.
_MASS = 0.95

# Share of the draws in the ball; its largest radius in standard deviations, beyond which the
# density varies too much for a few points; their number; errors by which both may differ, once in
# 1,000.
SHARE, _LARGEST, _POINTS, _ERRORS = 0.2, 1.0, 32, 3.3

# Centres of w between the mean of the draws and the point, and widths in standard deviations.
CENTRES, WIDTHS = (0.0, 0.25, 0.5, 1.0), (1.0, 0.8, 0.6, 0.4)


class PointDensity(NamedTuple):
    """The log posterior density at a point, and the mass around it in two ways, in nats.

    Attributes
    ----------
    density : MeanRatio
        With respect to the unconstrained coordinates.
    around : MeanRatio
        Log mass of a ball around the point, by its densities.
    counted : MeanRatio
        The same by the share of the draws in it.
    log_ratio : ndarray, shape (chains, n - n // 2)
        What `density` averages, at the second half of the draws.
    """

    density: MeanRatio
    around: MeanRatio
    counted: MeanRatio
    log_ratio: np.ndarray

    def verdict(self, remedy: str) -> Verdict:
        """Return whether to trust the density; `remedy` says what to do if one should not."""
        apart = self.around.log_mean - self.counted.log_mean
        if abs(apart) <= _ERRORS * np.hypot(self.around.mcse, self.counted.mcse):
            return self.density.verdict(remedy)
        doubt = (
            f"the density around the point accounts for {np.exp(self.around.log_mean):.2g} of "
            f"the draws, and {np.exp(self.counted.log_mean):.2g} of them are there: {remedy}"
        )
        return verdict_from([doubt], [])


def posterior_density_at(
    draws: np.ndarray, log_density: LogDensity, coordinates: np.ndarray, value: np.ndarray
) -> PointDensity:
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
    PointDensity

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
    slope, at_second = _regress(first, coordinates), log_density(second)

    def log_ratio(x: np.ndarray, at_x: np.ndarray, point: np.ndarray) -> np.ndarray:
        moved = x + (point - x[:, coordinates]) @ slope
        moved[:, coordinates] = point
        return np.asarray(log_density(moved) - at_x)

    b, fitted = first[:, coordinates], log_ratio(first, log_density(first), value)
    log_w = max(_candidates(b, value), key=lambda w: effective_sample_size(w(b) + fitted))
    weight = log_w(second[:, coordinates])
    at_point = (weight + log_ratio(second, at_second, value)).reshape(chains, -1)
    ball = _Ball.around(value, draws[:, :, coordinates].reshape(-1, len(value)))
    each = [weight + log_ratio(second, at_second, point) for point in ball.points()]
    return PointDensity(
        mean_ratio(at_point),
        mean_over(np.array(each) + ball.log_volume, chains),
        share_of(ball.contains(draws[:, :, coordinates])),
        at_point,
    )


def mean_over(log_ratio: np.ndarray, chains: int) -> MeanRatio:
    """Average over points and draws, shape ``(points, n)``; the points are a part of the error."""
    by_draw = logsumexp(log_ratio, axis=0) - np.log(len(log_ratio))
    found = mean_ratio(by_draw.reshape(chains, -1))
    by_point = np.exp(logsumexp(log_ratio, axis=1) - logsumexp(log_ratio))
    spread = np.std(by_point) * np.sqrt(len(by_point))  # relative error of a mean of as many
    return found._replace(mcse=float(np.hypot(found.mcse, spread)))


def share_of(inside: np.ndarray) -> MeanRatio:
    """Return the log share of draws, shape ``(chains, n)``; with an infinite error if it is 0."""
    if not inside.any():
        return MeanRatio(-np.inf, np.inf, 0.0, np.nan, np.nan)
    return mean_ratio(np.where(inside, 0.0, -np.inf))


@dataclass(frozen=True)
class _Ball:
    """A ball around a point, in coordinates in which draws have unit covariance."""

    centre: np.ndarray
    scale: np.ndarray
    radius: float

    @classmethod
    def around(cls, value: np.ndarray, b: np.ndarray) -> "_Ball":
        """Return the ball that has a share of the draws ``b``, shape ``(n, k)``."""
        scale = np.linalg.cholesky(np.atleast_2d(np.cov(b.T)))
        radius = np.quantile(_length(scale, b - value), SHARE)
        return cls(value, scale, min(float(radius), _LARGEST))

    @property
    def log_volume(self) -> float:
        k = len(self.centre)
        unit = k / 2 * np.log(np.pi) - gammaln(k / 2 + 1)
        return float(unit + k * np.log(self.radius) + np.log(np.diag(self.scale)).sum())

    def contains(self, b: np.ndarray) -> np.ndarray:
        """Whether each of some positions, shape ``(..., k)``, is inside."""
        return np.asarray(_length(self.scale, b - self.centre) <= self.radius)

    def points(self) -> np.ndarray:
        """Return points spread evenly over the ball, shape ``(m, k)``."""
        k = len(self.centre)
        if k == 1:
            place = np.linspace(-1, 1, 2 * _POINTS + 1)[1::2, None]
        else:
            uniform = Halton(k + 1, scramble=False).random(_POINTS + 1)[1:]  # the first is zero
            normal = ndtri(uniform[:, :k])
            length = np.linalg.norm(normal, axis=1, keepdims=True)
            place = normal / length * uniform[:, k:] ** (1 / k)
        return np.asarray(self.centre + self.radius * place @ self.scale.T)


def _length(scale: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the lengths of vectors, shape ``(..., k)``, in the units of a Cholesky factor."""
    return np.asarray(np.linalg.norm(np.linalg.solve(scale, x[..., None])[..., 0], axis=-1))


def _candidates(b: np.ndarray, value: np.ndarray) -> Iterator[_LogW]:
    """Yield densities at and around the draws, shape ``(n, k)``, of a point."""
    mean, covariance = b.mean(axis=0), np.atleast_2d(np.cov(b.T))
    for centre in CENTRES:
        for width in WIDTHS:
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

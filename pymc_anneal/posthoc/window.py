"""Windows: normal densities inside of an ellipsoid, and whether weighted draws are distributed so.

In ``k`` coordinates ``z`` in which the normal density is standard, and with the distribution
function ``F_k`` of chi-squared, the density inside of ``z'z <= c`` has the moments

    E[z'z] = k F_{k+2}(c) / F_k(c),    E[u'z] = 0    for every u.

Outside it is zero: in the tails its ratio to another density may be large without a draw that shows
it.
"""

from dataclasses import dataclass

import numpy as np

from scipy.stats import chi2

# Mass of the normal density inside of the ellipsoid: for a normal posterior its ratio has a
# relative variance of 1 / 0.95 - 1 = 0.05.
_MASS = 0.95


@dataclass(frozen=True)
class Window:
    """A normal density inside of an ellipsoid.

    Attributes
    ----------
    centre : ndarray, shape (k,)
    scale : ndarray, shape (k, k)
        Cholesky factor of the covariance.
    towards : ndarray, shape (k,)
        The direction ``u`` in which draws may be missing, in standard coordinates.
    """

    centre: np.ndarray
    scale: np.ndarray
    towards: np.ndarray

    @classmethod
    def between(cls, b: np.ndarray, value: np.ndarray, share: float, width: float) -> "Window":
        """Return the window with a share of the way from the mean of draws to a point.

        Parameters
        ----------
        b : ndarray, shape (n, k)
            The draws.
        value : ndarray, shape (k,)
            The point.
        share, width : float
            Place between the mean, 0, and the point, 1, and width in standard deviations.
        """
        mean, root = b.mean(axis=0), np.linalg.cholesky(np.atleast_2d(np.cov(b.T)))
        towards = np.linalg.solve(root, value - mean)
        length = np.linalg.norm(towards)
        unit = towards / length if length > 0 else np.eye(len(mean))[0]
        return cls(mean + share * (value - mean), width * root, unit)

    @property
    def _edge(self) -> float:
        """The largest ``z'z``."""
        return float(chi2.ppf(_MASS, len(self.centre)))

    def log_density(self, b: np.ndarray) -> np.ndarray:
        """Return the log density at positions, shape ``(..., k)``, in nats."""
        squared, k = np.square(self._standardise(b)).sum(axis=-1), len(self.centre)
        log_volume = np.log(np.diag(self.scale)).sum() + k / 2 * np.log(2 * np.pi)
        inside = -0.5 * squared - log_volume - np.log(_MASS)
        return np.where(squared <= self._edge, inside, -np.inf)

    def deviations(self, b: np.ndarray) -> np.ndarray:
        """Return ``z'z`` and ``u'z`` less their means, shape ``(2, ...)``, at ``(..., k)``."""
        z, k = self._standardise(b), len(self.centre)
        mean = k * chi2.cdf(self._edge, k + 2) / _MASS
        return np.stack([np.square(z).sum(axis=-1) - mean, z @ self.towards])

    def _standardise(self, b: np.ndarray) -> np.ndarray:
        centred = (b - self.centre)[..., None]
        return np.asarray(np.linalg.solve(self.scale, centred)[..., 0])

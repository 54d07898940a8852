"""Gaussian variational approximations of a posterior (Opper & Archambeau 2009).

With ``x ~ N(m, C)``, iterations

    m <- m + C E[grad],    C Cov(grad) C = Cov(x),

are exact for a normal density after one of them, from any draws.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np

from pymc_anneal.adaptation.particles import value_and_gradient
from pymc_anneal.adaptation.preconditioner import locate
from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.paths.geometric import GeometricPath

# Iterations of the fit; for posteriors that are nearly normal the second changes little.
ITERATIONS = 6
# Share of the positions at which the density has to be finite.
_LEAST_FINITE = 0.5


class NormalFit(NamedTuple):
    """A normal approximation: mean ``(d,)``, lower root of the covariance ``(d, d)``."""

    mean: np.ndarray
    root: np.ndarray


def fit_normal(
    log_terms: Callable[[jax.Array], LogTerms],
    position: np.ndarray,
    order: np.ndarray,
    rng: np.random.Generator,
) -> NormalFit | None:
    """Fit a normal approximation, from positions near the bulk.

    Parameters
    ----------
    log_terms
        JAX function of one position.
    position : ndarray, shape (n, d)
    order : ndarray of int, shape (d,)
        Coordinates in the order of the result, whose root is lower triangular.
    rng

    Returns
    -------
    NormalFit or None
        None if the density is not finite near the positions.
    """
    ndim = position.shape[1]
    z = rng.standard_normal((len(position) // 2, ndim))
    density = log_terms, np.concatenate([z, -z])
    mean, covariance = position.mean(axis=0), np.cov(position.T).reshape(2 * [ndim])
    best = current = _Iterate.at(*density, mean, covariance)
    fraction = 1.0
    for _ in range(ITERATIONS):
        if current is None or best is None:
            break
        proposed = current.step(*density, fraction)
        better = proposed is not None and proposed.bound > best.bound
        best = proposed if better else best
        # A posterior that is far from normal makes full steps overshoot.
        fraction, current = (1.0, proposed) if better else (fraction / 2, best)
    return None if best is None else best.ordered(order)


@dataclass(frozen=True)
class _Iterate:
    """A normal approximation and the log density at its points, shapes ``(n, d)`` and ``(n,)``.

    The bound is that of variational inference, ``E[log f] + log |L|``, up to a constant.
    """

    mean: np.ndarray
    covariance: np.ndarray
    position: np.ndarray
    gradient: np.ndarray
    bound: float

    @classmethod
    def at(
        cls,
        log_terms: Callable[[jax.Array], LogTerms],
        z: np.ndarray,
        mean: np.ndarray,
        covariance: np.ndarray,
    ) -> "_Iterate | None":
        try:
            root = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            return None
        position = mean + z @ root.T
        value, gradient = value_and_gradient(GeometricPath(log_terms), position, 1.0)
        finite = np.isfinite(value) & np.isfinite(gradient).all(axis=1)
        if not finite.mean() > _LEAST_FINITE:
            return None
        bound = value[finite].mean() + np.log(np.diag(root)).sum()
        return cls(mean, covariance, position[finite], gradient[finite], float(bound))

    def step(
        self, log_terms: Callable[[jax.Array], LogTerms], z: np.ndarray, fraction: float
    ) -> "_Iterate | None":
        """Go a fraction of the way to the next iterate."""
        mean, scale = locate(self.position, self.gradient)
        covariance = np.diag(scale**2) if scale.ndim == 1 else scale @ scale.T
        if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
            return None
        return _Iterate.at(
            log_terms,
            z,
            self.mean + fraction * (mean - self.mean),
            self.covariance + fraction * (covariance - self.covariance),
        )

    def ordered(self, order: np.ndarray) -> NormalFit | None:
        """Return the approximation with its coordinates in an order."""
        root = np.linalg.cholesky(self.covariance[np.ix_(order, order)])
        return NormalFit(self.mean[order], root)

"""Shears: some coordinates of draws are moved to a point, and the others along a ridge.

With coordinates of interest ``b`` and all others ``r``, the map

    b -> b_0,    r -> r + g(b_0) - g(b)

has volume one for every function ``g``. With the regression of ``r`` on ``b`` it keeps a draw of a
posterior on the ridge of that posterior: a linear one for a normal posterior, a quadratic one for a
curved ridge, one that is fitted to the draws near the point for a ridge of any other shape.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Shear:
    """A map of draws to a point.

    Attributes
    ----------
    coordinates : ndarray of int, shape (k,)
        Those that are moved to the point.
    mean, scale : ndarray, shape (k,)
        Of these coordinates; ``g`` is a polynomial of the standardised ones.
    degree : int
        1 or 2.
    coefficient : ndarray, shape (m, d)
        Of ``g``, for each of its terms.
    """

    coordinates: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    degree: int
    coefficient: np.ndarray

    @classmethod
    def fit(
        cls, x: np.ndarray, coordinates: np.ndarray, degree: int, weight: np.ndarray
    ) -> "Shear":
        """Fit the regression of all coordinates on some of them.

        Parameters
        ----------
        x : ndarray, shape (n, d)
            Draws.
        coordinates : ndarray of int, shape (k,)
        degree : int
        weight : ndarray, shape (n,)
            Weights of the draws.
        """
        b = x[:, coordinates]
        mean, scale = b.mean(axis=0), b.std(axis=0)
        term = _terms((b - mean) / scale, degree)
        root = np.sqrt(weight)[:, None]
        design = np.concatenate([np.ones((len(b), 1)), term], axis=1)
        coefficient = np.linalg.lstsq(root * design, root * x, rcond=None)[0][1:]
        return cls(coordinates, mean, scale, degree, coefficient)

    def move(self, x: np.ndarray, point: np.ndarray) -> np.ndarray:
        """Move draws, shape ``(n, d)``, to a point, shape ``(k,)``."""
        here, there = (
            _terms((b - self.mean) / self.scale, self.degree)
            for b in (x[:, self.coordinates], point[None])
        )
        moved = x + (there - here) @ self.coefficient
        moved[:, self.coordinates] = point
        return np.asarray(moved)


def count_terms(dimensions: int, degree: int) -> int:
    """Return the number of terms of a polynomial without its constant."""
    return dimensions + (degree == 2) * dimensions * (dimensions + 1) // 2


def _terms(b: np.ndarray, degree: int) -> np.ndarray:
    """Return the terms of a polynomial without its constant, shape ``(n, m)``."""
    if degree == 1:
        return b
    i, j = np.triu_indices(b.shape[1])
    return np.concatenate([b, b[:, i] * b[:, j]], axis=1)

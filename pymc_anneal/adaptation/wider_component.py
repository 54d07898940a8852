"""A component with wider tails along a few coordinates.

In many dimensions a Student-t density is hardly heavier than a normal one along a few coordinates:
one scale is drawn for all of them. Where all others ``e`` are about normal given a few coordinates
``theta``, tails are those of ``theta``. For a normal density of covariance ``S`` the wider one has

    S + (k^2 - 1) A S_tt A',    A = S_:t S_tt^{-1},

the covariance of ``theta`` times ``k^2``, and the same distribution of ``e`` given ``theta``.
"""

import numpy as np

from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.paths.references import GaussianReference

# Dimension of a model up to which all of its coordinates are widened.
_FEW = 5
# Volume of the wider density relative to the other; along fewer coordinates than some, a part of
# it.
_VOLUME, _FROM = 8.0, 3


def columns_to_widen(compiled: CompiledModel) -> np.ndarray:
    """Return the coordinates that the others are about normal given; all if they are few."""
    every, normal = np.arange(compiled.ndim), compiled.unimodal_columns
    if compiled.ndim <= _FEW:
        return every
    return np.setdiff1d(every, normal) if len(normal) else normal


def widened(normal: GaussianReference, columns: np.ndarray) -> GaussianReference:
    """Return a normal density with a larger spread along some coordinates.

    Parameters
    ----------
    normal
        The density.
    columns : ndarray of int, shape (k,)
        The coordinates; the distribution of the others given these stays as it is.
    """
    scale = np.asarray(normal.scale)
    root = scale if scale.ndim == 2 else np.diag(scale)
    unit = np.abs(root).max(axis=1)  # products of scales of 1e300 overflow
    covariance = (root / unit[:, None]) @ (root / unit[:, None]).T
    part = covariance[np.ix_(columns, columns)]
    slope = np.linalg.solve(part, covariance[columns]).T
    factor = _VOLUME ** (1 / max(len(columns), _FROM))
    wider = covariance + (factor**2 - 1) * slope @ part @ slope.T
    return GaussianReference(normal.mean, unit[:, None] * np.linalg.cholesky(wider))

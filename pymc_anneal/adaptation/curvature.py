"""The curvature of a log density, and scales from its mean over particles.

In many dimensions there are fewer particles than coordinates, and neither the covariance of the
particles nor that of the gradients ``g`` at them has full rank. By parts,

    E[-d^2 log f / dx dx'] = Cov(g),

and the left side has full rank at a single particle. A Gaussian of this curvature
agrees with the density in the covariance of its gradients; its mean is a Newton step away from that
of the particles. For a Gaussian density both are exact.
"""

import numpy as np

from pymc_anneal.adaptation.fit_reference import (
    MAX_DENSE,
    locate,
    newton_step,
    scale_of_curvature,
)
from pymc_anneal.adaptation.target_density import TargetDensity

# Step of central differences in units of the scale, where truncation and rounding errors are equal.
_DIFFERENCE = np.finfo(float).eps ** (1 / 3)
# Largest dimension of a scale from the curvature, and the particles over which it is averaged: the
# mean of four leaves a discrepancy of 3.2 in 1,600 dimensions (a Cox process), that of sixteen 2.2.
_MAX_DIMENSIONS, _PARTICLES = 2048, 16


def curvature(target: TargetDensity, position: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return minus the second derivatives of a log density, by central differences of gradients.

    The compiler takes longer for exact ones than all differences do.

    Parameters
    ----------
    target
        The density.
    position : ndarray, shape (d,)
    spread : ndarray, shape (d,)
        Standard deviations, in whose units differences are small.

    Returns
    -------
    ndarray, shape (d, d)
    """
    steps = _DIFFERENCE * np.diag(spread)
    above, below = np.split(
        target.gradient(np.concatenate([position + steps, position - steps])), 2
    )
    second = -(above - below) / (2 * _DIFFERENCE * spread[:, None])
    return np.asarray(second + second.T) / 2


def locate_by_curvature(
    target: TargetDensity, position: np.ndarray, slope: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return location and scale of a density, from its mean curvature if there are few particles.

    Parameters
    ----------
    target
        The density.
    position, slope : ndarray, shape (n, d)
        Particles and the log gradients at them.

    Returns
    -------
    mean : ndarray, shape (d,)
    scale : ndarray, shape (d,) or (d, d)
        A matrix up to 2,048 dimensions; standard deviations above, or where the mean curvature is
        not positive in all directions.
    """
    mean, scale = locate(position, slope)
    d = len(mean)
    if scale.ndim == 2 or not MAX_DENSE < d <= _MAX_DIMENSIONS or not target.gradients:
        return mean, scale
    spaced = np.linspace(0, len(position) - 1, min(len(position), _PARTICLES)).astype(int)
    total = sum(curvature(target, position[i], scale) for i in spaced)
    root = scale_of_curvature(np.asarray(total) / len(spaced))
    return (mean, scale) if root is None else (newton_step(position, slope, root), root)

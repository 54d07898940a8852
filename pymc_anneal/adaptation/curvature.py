"""The curvature of a log density, and scales from its mean over particles.

In many dimensions there are fewer particles than coordinates, and neither the covariance of the
particles nor that of the gradients ``g`` at them has full rank. By parts,

    E[-d^2 log f / dx dx'] = Cov(g),

and the left side has full rank at a single particle. A Gaussian of this curvature
agrees with the density in the covariance of its gradients; its mean is a Newton step away from that
of the particles. For a Gaussian density both are exact.

A tail, which a few heavy weights of particles show, has a curvature of its own: in the neck of a
funnel effects are as wide as their prior. Along the tail itself there is little curvature or none,
and the particles tell its length.
"""

import numpy as np

from pymc_anneal.adaptation.laplace_reference import scale_of_curvature
from pymc_anneal.adaptation.preconditioner import (
    MAX_DENSE,
    estimate_scale,
    locate,
    may_be_matrix,
    newton_step,
)
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.paths.references import lower_root

# Step of central differences in units of the scale, where truncation and rounding errors are equal.
_DIFFERENCE = np.finfo(float).eps ** (1 / 3)
# Largest dimension of a scale from the curvature, and the particles over which it is averaged: the
# mean of four leaves a discrepancy of 3.2 in 1,600 dimensions (a Cox process), that of sixteen 2.2.
_MAX_DIMENSIONS, _PARTICLES = 2048, 16
# Variance along a direction, relative to that of all particles, above which the curvature says
# nothing of a tail: the density goes on beyond where it is about normal.
_LONG = 4.0
# A Newton step longer than so many standard deviations of all particles, that ends as far from
# their mean, leaves them.
_FAR_STEP = 3.0


@np.errstate(invalid="ignore", over="ignore")  # at a singularity, which has no curvature
def curvature(target: TargetDensity, position: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return minus the second derivatives of a log density, by central differences of gradients.

    The compiler takes longer for exact ones than all differences do.

    Parameters
    ----------
    position : ndarray, shape (d,)
    spread : ndarray, shape (d,)
        Standard deviations, in whose units differences are small.

    Returns
    -------
    ndarray, shape (d, d)
        Not finite at a singularity.
    """
    # No step is shorter than what a difference of two positions resolves.
    length = np.maximum(_DIFFERENCE * spread, _DIFFERENCE**2 * np.abs(position))
    steps = np.diag(length)
    above, below = np.split(
        target.gradient(np.concatenate([position + steps, position - steps])), 2
    )
    second = -(above - below) / (2 * length[:, None])
    return np.asarray(second + second.T) / 2


def mean_curvature(
    target: TargetDensity, position: np.ndarray, share: np.ndarray, spread: np.ndarray
) -> np.ndarray:
    """Return the mean of `curvature` over particles of these shares, shape ``(d, d)``."""
    each = zip(share, position, strict=True)
    return np.asarray(sum(w * curvature(target, x, spread) for w, x in each))


def climbing_scale(target: TargetDensity, position: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return the scale ``|H|^(-1/2)`` of a density of curvature ``H``, on the way to a top.

    In its units a climb neither crawls along the longest direction nor turns to a saddle point
    (Dauphin et al. 2014, eq. 6). No direction is longer than the spread given.

    Parameters
    ----------
    position : ndarray, shape (d,)
    spread : ndarray, shape (d,)
        Standard deviations of the prior.

    Returns
    -------
    ndarray, shape (d, d)
        The spread on the diagonal where the density has no finite curvature.
    """
    units, scale = np.outer(spread, spread), np.diag(spread)
    for _ in range(2):  # the second time by differences in units of the scale itself
        second = units * curvature(target, position, np.linalg.norm(scale, axis=1))
        if not np.isfinite(second).all():
            return scale
        value, vector = np.linalg.eigh(second)
        scale = spread[:, None] * vector / np.sqrt(np.maximum(np.abs(value), 1.0))
    return scale


def locate_by_curvature(
    target: TargetDensity, position: np.ndarray, slope: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return location and scale of a density, from its mean curvature if there are few particles.

    Parameters
    ----------
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
    equal = np.full(len(spaced), 1 / len(spaced))
    root = scale_of_curvature(mean_curvature(target, position[spaced], equal, scale))
    return (mean, scale) if root is None else (newton_step(position, slope, root), root)


def locate_tail(
    target: TargetDensity, position: np.ndarray, weight: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return location and scale of a tail by its moments, and by its curvature.

    The latter where weights show too few particles for moments, and the density is curved there.
    It is too narrow where the particles are in several places.

    Parameters
    ----------
    position : ndarray, shape (n, d)
        Particles of the whole density.
    weight : ndarray, shape (n,)
        Weights under which they are those of the tail; they sum to one.

    Returns
    -------
    list of (mean, scale), shapes (d,) and (d,) or (d, d)
        One or two of them.
    """
    d, ess = position.shape[1], 1 / (weight**2).sum()
    by_moments = weight @ position, estimate_scale(position, weight, largest=MAX_DENSE)
    if not 1 < d <= _MAX_DIMENSIONS or may_be_matrix(ess, d, MAX_DENSE) or not target.gradients:
        return [by_moments]
    by_curvature = _tail_by_curvature(target, position, weight)
    return [by_moments] if by_curvature is None else [by_moments, by_curvature]


def _tail_by_curvature(
    target: TargetDensity, position: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return location and scale from the heaviest particles; None without curvature there."""
    heavy = np.argsort(weight)[-_PARTICLES:]
    heavy = heavy[weight[heavy] > 0]
    share, spread = weight[heavy] / weight[heavy].sum(), position.std(axis=0)
    mean, slope = share @ position[heavy], share @ target.gradient(position[heavy])
    if not (np.isfinite(slope).all() and (spread > 0).all()):
        return None
    second = mean_curvature(target, position[heavy], share, spread)
    if not np.isfinite(second).all():
        return None
    size, axes = np.linalg.eigh(second * np.outer(spread, spread))
    along = (position - mean) / spread @ axes
    curved, variance = _variance_along(size, along, weight)
    step = axes @ (curved * variance * (axes.T @ (spread * slope)))
    end = (mean - position.mean(axis=0)) / spread + step
    if np.minimum(np.abs(step), np.abs(end)).max() > _FAR_STEP:
        step = np.zeros_like(step)
    return mean + spread * step, spread[:, None] * lower_root(axes * np.sqrt(variance))


def _variance_along(
    size: np.ndarray, along: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return whether the density is curved along axes, and the variance there, shape ``(d,)`` each.

    `size` are the curvatures, `along` the places of the particles, shape ``(n, d)``. The spread of
    few particles is shrunk to that of all, as if one more had it.
    """
    whole, ess = along.var(axis=0), 1 / (weight**2).sum()
    curved = size * _LONG * whole > 1
    length = (ess * (weight @ along**2) + whole) / (ess + 1)
    return curved, np.where(curved, 1 / np.where(curved, size, 1.0), length)

"""Evidences that are infinite: mass that grows without end along one coordinate.

If the data fit exactly, the density of ``n`` observations grows as ``sigma^-n`` while a free scale
``sigma`` goes to zero, and no prior density that is positive there makes its integral finite. The
mass at a distance ``t`` along coordinate ``j``, by Laplace's method in the others,

    log M(t) = max log f(x) + (d - 1) / 2 log(2 pi) - log det(H) / 2,    x_j = m_j + s t,  s = +-1,

has to fall in a direction in which the evidence is finite. In PyMC's unconstrained space ``t`` is
the logarithm of a scale, or the log odds of a bounded variable. It is looked at where particles
have run far beyond the draws of the prior, and, if it grows there, in doubled distances: data may
be far away. These end where neighbouring numbers have another density. Where the density does not
fall like a normal one in the others, nothing is said: the tails of a sparse Dirichlet variable are
exponential, with curvatures that vanish, and Laplace's method would have their mass grow.
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np

from pymc_anneal.adaptation.particles import evaluate
from pymc_anneal.adaptation.preconditioner import bulk_deviation
from pymc_anneal.base.contracts import Path
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.programs import forgettable

# Standard deviations of the reference that make a unit of distance, of at least one: logarithms of
# scales and log odds have 1.1 to 1.8 under the usual priors, a normal location may have hundreds.
_UNIT = 2.0
# How far beyond all draws of the reference a particle has to be: a factor of 150 for a scale.
_BEYOND = 5.0
# Distances from the median of the reference: for a scale, from 1e-4 to 1e-12 of it. Measurements
# may have a scale of 1e-6; below 1e-13 of a location, its rounding is larger. They begin beyond the
# draws: mass grows inside of the prior wherever the data are there.
_DISTANCES = np.linspace(8.0, 28.0, 6)
# Slope of log M, per unit of t, above which it does not fall. Prior densities that are finite or
# infinite at zero fall with 1 or less: that of a gamma variable of shape 0.1 with 0.1.
_LEAST_SLOPE = -0.02
# How far beyond these it may fall yet: to a billion scales of the prior.
_LATER = 28.0 * 2.0 ** np.arange(25)
# Difference of the log density at neighbouring numbers that shows no fall, in nats.
_ROUNDING = 1.0
# Fall of the log density a standard deviation from its maximum up to which Laplace's method is
# believed: 0.5 nats for a normal density; 0.2 to 2 in places where it holds, and 1e5 along tails.
_MOST_FALL = 3.0
# Dimensions in which Hessians take little time.
_MAX_DIMENSIONS = 64
# Newton steps to the maximum at one distance, halvings of each, and the gain at which they end.
_STEPS, _HALVINGS, _GAIN = 40, 30, 1e-6
# Smallest eigenvalue of a Hessian of unit diagonal that is no rounding.
_LEAST_CURVATURE = 1e-9


class InfiniteEvidenceError(ValueError):
    """The evidence is infinite.

    Attributes
    ----------
    coordinate : int
        Along which the mass grows.
    slope : float
        Growth of the log mass for a unit of the coordinate, in nats.
    position : ndarray, shape (d,)
        The farthest position that was looked at.
    """

    def __init__(self, coordinate: int, slope: float, position: np.ndarray):
        super().__init__(f"The evidence is infinite along coordinate {coordinate} of x.")
        self.coordinate, self.slope, self.position = coordinate, slope, position

    def __reduce__(self) -> tuple[type["InfiniteEvidenceError"], tuple[int, float, np.ndarray]]:
        return InfiniteEvidenceError, (self.coordinate, self.slope, self.position)


class _Ridge(NamedTuple):
    """The maximum at one place of a coordinate.

    Attributes
    ----------
    position : ndarray, shape (d,)
    log_mass : float
        By Laplace's method in the other coordinates.
    deviations : ndarray, shape (d - 1, d)
        Their standard deviations along its axes.
    """

    position: np.ndarray
    log_mass: float
    deviations: np.ndarray

    def is_normal(self, path: Path) -> bool:
        """Whether the density falls along the axes as slowly as a normal one."""
        sides = np.concatenate([0 * self.position[None], self.deviations, -self.deviations])
        log_density = path.log_density(evaluate(path, self.position + sides), 1.0)
        return bool((log_density[0] - log_density < _MOST_FALL).all())


@double_precision
def check_finite_evidence(path: Path, reference: np.ndarray, position: np.ndarray) -> None:
    """Raise if the evidence is infinite in a direction in which particles have run away.

    Parameters
    ----------
    path
        Its end is the density.
    reference : ndarray, shape (m, d)
        Draws of the prior.
    position : ndarray, shape (n, d)
        Particles on their way to the posterior.

    Raises
    ------
    InfiniteEvidenceError
        The mass grows, or stays the same, as far as numbers show it.
    """
    if not 0 < position.shape[1] <= _MAX_DIMENSIONS:
        return
    unit = np.maximum(bulk_deviation(reference) / _UNIT, 1.0)
    for j, sign in _runaways(reference, position, unit):
        # Among the particles there, the nearest to the ridge: the others have not arrived.
        top = position[(sign * position[:, j]).argmax()]
        places = _places(sign * reference[:, j], unit[j])
        ridge = list(_follow(path, top, j, sign * places))
        if len(ridge) < len(places) or not all(found.is_normal(path) for found in ridge):
            continue
        slope = np.diff([found.log_mass for found in ridge]) / np.diff(_DISTANCES)  # by the unit
        later = sign * (places[-1] + unit[j] * _LATER)
        if (slope[1:] > _LEAST_SLOPE).all() and not _falls(path, ridge[-1], j, later):
            raise InfiniteEvidenceError(j, float(slope[-1] / unit[j]), ridge[-1].position)


def _places(reference: np.ndarray, unit: float) -> np.ndarray:
    """Return places along a coordinate beyond its draws, shape ``(m,)``."""
    middle = np.median(reference)
    start = max(reference.max() - middle, _DISTANCES[0])
    return np.asarray(middle + start + unit * (_DISTANCES - _DISTANCES[0]))


def _runaways(
    reference: np.ndarray, position: np.ndarray, unit: np.ndarray
) -> list[tuple[int, int]]:
    """Return coordinates and signs of directions in which particles are far from all draws."""
    below = reference.min(axis=0) - position.min(axis=0)
    above = position.max(axis=0) - reference.max(axis=0)
    beyond = np.stack([below, above]) / unit
    order = np.argsort(-beyond, axis=None)[: (beyond > _BEYOND).sum()]
    return [(int(i % beyond.shape[1]), 1 if i // beyond.shape[1] else -1) for i in order]


def _follow(
    path: Path, x: np.ndarray, coordinate: int, places: np.ndarray
) -> Iterator[_Ridge]:
    """Yield the ridge at places along a coordinate.

    It ends where the density given the coordinate has no maximum that Newton's method finds.
    """
    others = np.delete(np.arange(len(x)), coordinate)
    for place in places:
        found = _maximise(path, np.where(np.arange(len(x)) == coordinate, place, x), others)
        if found is None:
            return
        x = found.position
        yield found


def _falls(path: Path, last: _Ridge, coordinate: int, places: np.ndarray) -> bool:
    """Whether the log mass falls at later places, as far as numbers show it."""
    mass = last.log_mass
    for top, value, _ in _follow(path, last.position, coordinate, places):
        near = [float(_expand(path, np.nextafter(top, side))[0]) for side in (-np.inf, np.inf)]
        if not np.ptp(near) < _ROUNDING:
            return False
        if value < mass:
            return True
        mass = value
    return False


def _maximise(path: Path, start: np.ndarray, others: np.ndarray) -> _Ridge | None:
    """Return the maximum over some coordinates, and the log mass around it."""
    x = start
    for _ in range(_STEPS):
        value, slope, hessian = (np.asarray(part) for part in _expand(path, x))
        curvature = -hessian[np.ix_(others, others)]
        if not (np.isfinite(value) and np.isfinite(curvature).all()):
            return None
        unit = np.sqrt(np.maximum(np.abs(np.diag(curvature)), np.finfo(float).tiny))
        eigenvalue, vector = np.linalg.eigh(curvature / unit / unit[:, None])
        along = vector.T @ (slope[others] / unit)
        size = np.maximum(np.abs(eigenvalue), _LEAST_CURVATURE)
        step, gain = np.zeros(len(x)), float(along @ (along / size))
        if gain < _GAIN and (eigenvalue > _LEAST_CURVATURE).all():
            log_volume = np.log(unit).sum() + 0.5 * np.log(eigenvalue / (2 * np.pi)).sum()
            deviations = np.zeros((len(others), len(x)))
            deviations[:, others] = (vector / unit[:, None] / np.sqrt(eigenvalue)).T
            return _Ridge(x, float(value - log_volume), deviations)
        step[others] = vector @ (along / size) / unit
        tried = (x + 0.5**k * step for k in range(_HALVINGS))
        better = next((y for y in tried if float(_expand(path, y)[0]) > value), None)
        if better is None:
            return None
        x = better
    return None


@forgettable
@jax.jit
def _expand(path: Path, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the log density at one position, its gradient and its Hessian."""

    def log_density(x: jax.Array) -> jax.Array:
        return path.log_density(path.evaluate(x[None]), 1.0)[0]

    return log_density(x), jax.grad(log_density)(x), jax.jacrev(jax.grad(log_density))(x)

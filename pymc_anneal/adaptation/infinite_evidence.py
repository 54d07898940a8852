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
from functools import partial
from itertools import takewhile

import numpy as np

from pymc_anneal.adaptation.conditional_peak import ConditionalDensity, Peaks
from pymc_anneal.adaptation.preconditioner import bulk_deviation
from pymc_anneal.base.contracts import Path
from pymc_anneal.base.double_precision import double_precision

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
        density = ConditionalDensity(path, tuple(np.delete(np.arange(len(top)), j)))
        peaks = _follow(density, top, j, sign * places)
        ridge = list(takewhile(partial(_is_normal, density), peaks))
        if len(ridge) < len(places):
            continue
        slope = np.diff([peak.log_mass[0] for peak in ridge]) / np.diff(_DISTANCES)  # by the unit
        later = sign * (places[-1] + unit[j] * _LATER)
        if (slope[1:] > _LEAST_SLOPE).all() and not _falls(density, ridge[-1], j, later):
            raise InfiniteEvidenceError(j, float(slope[-1] / unit[j]), ridge[-1].position[0])


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
    density: ConditionalDensity, x: np.ndarray, coordinate: int, places: np.ndarray
) -> Iterator[Peaks]:
    """Yield the peak of the other coordinates at places along one of them, while it is finite."""
    for place in places:
        start = np.where(np.arange(len(x)) == coordinate, place, x)
        peak = density.peaks(start[None])
        if not np.isfinite(peak.log_mass[0]):
            return
        x = peak.position[0]
        yield peak


def _is_normal(density: ConditionalDensity, peak: Peaks) -> bool:
    """Whether the density falls from its peak about as a normal one does."""
    sides = np.repeat(peak.position, 2 * len(density.real), axis=0)
    deviations = peak.scale[0].T
    sides[:, density.real] += np.concatenate([deviations, -deviations])
    fall = peak.log_density - density.log_density(sides)
    return bool(((fall > 0) & (fall < _MOST_FALL)).all())


def _falls(density: ConditionalDensity, last: Peaks, coordinate: int, places: np.ndarray) -> bool:
    """Whether the log mass may fall at later places, as far as numbers show it."""
    mass = last.log_mass[0]
    for peak in _follow(density, last.position[0], coordinate, places):
        near = np.nextafter(np.repeat(peak.position, 2, axis=0), [[-np.inf], [np.inf]])
        if not (np.abs(density.log_density(near) - peak.log_density) < _ROUNDING).all():
            return False
        if peak.log_mass[0] < mass or not _is_normal(density, peak):
            return True
        mass = peak.log_mass[0]
    return False

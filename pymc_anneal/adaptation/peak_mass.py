"""The mass of a peak of any shape, by importance sampling around its top.

The curvature at the top says nothing of a cusp or a flat top. Widths do: the distances along each
coordinate, to both sides, at which the density falls by a factor of e; a climb ends anywhere on a
flat top, whose middle is between them. From there, draws of Student-t densities at several scales,

    q = sum_s t_nu(x; m, s^2 S S') / 3,    s = 1/2, 1, 2,

with the weights ``f / q`` estimate mass, mean and covariance of the peak, around which the next
draws are made (adaptive importance sampling: Oh & Berger 1992; Cappe et al. 2008). No gradient is
needed.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from scipy.special import logsumexp

from pymc_anneal.adaptation.fitted_reference import LEAST_ESS
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.paths.mixed_draws import mixed_draws
from pymc_anneal.paths.references import GaussianReference, StudentTReference

# From positions of shape (n, d) to log densities, shape (n,).
LogDensity: TypeAlias = Callable[[np.ndarray], np.ndarray]

# Fall of the log density in nats that marks a width.
_FALL = 1.0
# Distances in units of the spread at which the density is evaluated, from a billionth to four, and
# halvings of the logarithm of the first one at which it is low: a width that is twice too large in
# eight coordinates is that of 256 times the volume.
_DISTANCES, _HALVINGS = 2.0 ** np.arange(-30.0, 3.0), 3
# Scales of the draws and their degrees of freedom.
_SCALES, _DEGREES_OF_FREEDOM = (0.5, 1.0, 2.0), 5.0
# Draws of a round, at least and for each coordinate, and the largest number of rounds.
_LEAST_DRAWS, _DRAWS_PER_COORDINATE, _ROUNDS = 512, 32, 5
# Share of effective draws that ends the rounds, and their number for each coordinate that makes a
# dense covariance.
_GOOD, _DENSE = 0.25, 4.0


class Peak(NamedTuple):
    """A peak of a target.

    Attributes
    ----------
    normal : GaussianReference
        A normal density of its mean and covariance.
    log_mass : float
        Log of its mass, in nats.
    """

    normal: GaussianReference
    log_mass: float


def weigh(
    log_density: LogDensity,
    wide: GaussianReference,
    curved: GaussianReference | None,
    seed: np.random.SeedSequence,
) -> Peak | None:
    """Estimate mass, mean and covariance of a peak from a normal density with its widths.

    `curved` is the one of the curvature at the top, if there is one. It is returned as it is if
    enough of its draws have any weight: as a component it is better than one with the moments of a
    few hundred draws, in the tails first of all. None if too few draws have any weight.
    """
    count = max(_LEAST_DRAWS, _DRAWS_PER_COORDINATE * len(wide.mean))
    first, *others = seed.spawn(1 + _ROUNDS)
    if curved is not None:
        _, log_weight = _weighted_draws(log_density, curved, count, first)
        if _normalised(log_weight)[1] >= LEAST_ESS:
            return Peak(curved, float(logsumexp(log_weight) - np.log(count)))
    around, best, most = wide, None, LEAST_ESS
    for own in others:
        position, log_weight = _weighted_draws(log_density, around, count, own)
        _, ess = _normalised(log_weight)
        around = _located(position, log_weight, around)
        if ess >= most:
            mass = float(logsumexp(log_weight) - np.log(count))
            best, most = Peak(around, mass), ess
        if ess >= _GOOD * count:
            break
    return best


def widths(
    target: TargetDensity, top: np.ndarray, value: float, spread: np.ndarray
) -> GaussianReference:
    """Return a normal density with the widths of a peak along the coordinates.

    Parameters
    ----------
    top : ndarray, shape (d,)
    value
        Log density there.
    spread : ndarray, shape (d,)
        Standard deviations of a mode nearby, of which the widths are at most a few.
    """
    directions = np.concatenate([np.diag(spread), -np.diag(spread)])

    def fallen(distance: np.ndarray) -> np.ndarray:
        around = top + distance[..., None] * directions
        log_density = target.log_density(around.reshape(-1, len(top)))
        return ~(log_density > value - _FALL).reshape(distance.shape)

    right, left = _least_distance(fallen, len(directions)).reshape(2, -1) * spread
    middle = top + (right - left) / 2
    if target.log_density(middle[None])[0] > value - _FALL:
        return GaussianReference(middle, (right + left) / 2)
    # A peak at the edge of the support: distances from there are exponential, if it falls evenly.
    return GaussianReference(top, np.sqrt(2) * np.maximum(right, left))


def _least_distance(fallen: Callable[[np.ndarray], np.ndarray], directions: int) -> np.ndarray:
    """Return the distance in each direction at which a density has fallen, by bisection of logs."""
    low = fallen(np.repeat(_DISTANCES[:, None], directions, axis=1))
    first = np.where(low.any(axis=0), low.argmax(axis=0), len(_DISTANCES) - 1)
    inner, outer = _DISTANCES[np.maximum(first - 1, 0)], _DISTANCES[first]
    for _ in range(_HALVINGS):
        between = np.sqrt(inner * outer)
        low = fallen(between)
        inner, outer = np.where(low, inner, between), np.where(low, between, outer)
    return outer


def _weighted_draws(
    log_density: LogDensity,
    around: GaussianReference,
    count: int,
    seed: np.random.SeedSequence,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw around a normal density at several scales, with log weights; zero where ``f`` is NaN."""
    components = [
        StudentTReference(around.mean, scale * np.asarray(around.scale), _DEGREES_OF_FREEDOM)
        for scale in _SCALES
    ]
    share = np.full(len(components), 1 / len(components))
    position = mixed_draws(seed, count, share, [c.sample for c in components])
    each = [np.asarray(c.log_density(position)) for c in components]
    log_weight = log_density(position) - logsumexp(each, axis=0) + np.log(len(components))
    return position, np.where(np.isnan(log_weight), -np.inf, log_weight)


def _normalised(log_weight: np.ndarray) -> tuple[np.ndarray, float]:
    """Return weights that sum to one, and the effective number of draws; zero if all are zero."""
    if not np.isfinite(log_weight).any():
        return np.zeros(len(log_weight)), 0.0
    weight = np.exp(log_weight - logsumexp(log_weight))
    return weight, float(1 / np.square(weight).sum())


def _located(
    position: np.ndarray, log_weight: np.ndarray, before: GaussianReference
) -> GaussianReference:
    """Return a normal density with the moments of weighted draws, dense where they are many.

    The square root of their number, the heaviest, count the same where few have most of the weight
    (Koblents & Miguez 2015, section 3.3): the draws near the peak tell its scales.
    """
    weight, ess = _normalised(log_weight)
    if ess == 0.0:
        return before
    heaviest = np.sort(log_weight[log_weight > -np.inf])[-int(np.sqrt(len(log_weight))) :]
    if len(heaviest) < LEAST_ESS:  # hardly a draw is where the density is not zero
        return GaussianReference(weight @ position, np.asarray(before.scale))
    if ess < LEAST_ESS:
        weight, ess = _normalised(np.minimum(log_weight, heaviest[0]))
    mean = weight @ position
    centred = position - mean
    if ess >= _DENSE * position.shape[1]:
        return GaussianReference(mean, np.linalg.cholesky((weight[:, None] * centred).T @ centred))
    return GaussianReference(mean, np.sqrt(weight @ np.square(centred)))

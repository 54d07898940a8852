"""What a mixture misses of a target, also on the way up to a top that holds nothing.

The part of ``f`` that is above the mixture ``r`` of evidence ``Z`` has the density

    g = f / (1 + (e^2 Z r / f)^4).

What is searched for is weighed by it, and not by ``f``: importance sampling around a small peak
goes astray to what is known if that is nearby and larger.

The top of a density may have no mass: that of Neal's funnel is e^91 higher than its middle, and
holds 1e-40. But a climb to it passes over what may be missing, such as the neck. At places ``x`` of
the way Laplace's method gives the mass

    log M(x) = log f(x) + d/2 log 2 pi + log |S|,    S = |H(x)|^(-1/2),

too large where the density rises along the way, which costs a look. From the places of the largest
masses on, importance sampling (`peak_mass.py`) locates and weighs what is missing.
"""

from dataclasses import dataclass

import numpy as np

from pymc_anneal.adaptation.climb import climb_together
from pymc_anneal.adaptation.curvature import climbing_scale
from pymc_anneal.adaptation.fitted_reference import FittedReference, mixture_of
from pymc_anneal.adaptation.mixture_weights import log_ratio
from pymc_anneal.adaptation.peak_mass import Peak, weigh
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.paths.references import GaussianReference, lower_root

# Log ratio of target to mixture, in nats, above which there may be a peak that the mixture misses;
# at the mode of a skewed density it is about 1. Share of the evidence that a peak has to hold.
LEAST_PEAK, LEAST_MASS = 2.0, 1e-3
# Power of the ratio of mixture to target: a thousandth of what a mixture fits counts as missing.
_SHARP = 4.0
# Calls of the gradient for the climb, places on its way, and those that are weighed.
_MAX_CALLS, _PLACES, _ROUNDS, _WEIGHED = 200, 16, 2, 8
# Longest step from a place to the ridge, in units of the curvature: along the ridge it is longer.
_LONGEST = 3.0


def height_above(found: FittedReference, position: np.ndarray, terms: LogTerms) -> np.ndarray:
    """Return how far a target of these terms is above a mixture, in nats, shape ``(n,)``."""
    return log_ratio(found.path, position, terms) - found.typical_log_z


@dataclass(frozen=True)
class Missing:
    """What a measured mixture misses of a target."""

    target: TargetDensity
    found: FittedReference

    @np.errstate(over="ignore", invalid="ignore")  # outside of the support nothing is missed
    def log_density(self, position: np.ndarray) -> np.ndarray:
        """Return ``log g`` at positions of shape ``(n, d)``."""
        terms = self.target.evaluate(position)
        height = height_above(self.found, position, terms)
        return np.asarray(terms.log_posterior) - np.logaddexp(0.0, _SHARP * (LEAST_PEAK - height))

    def above(self, position: np.ndarray) -> np.ndarray:
        """Return whether the mixture is far below the target, shape ``(n,)``."""
        height = height_above(self.found, position, self.target.evaluate(position))
        return np.asarray(height > LEAST_PEAK)

    def holds(self, log_mass: float) -> bool:
        """Return whether a mass is worth a component."""
        return bool(log_mass > self.found.typical_log_z + np.log(LEAST_MASS))

    def is_new(self, peak: Peak) -> bool:
        """Return whether a peak holds mass, and the mixture is far below it."""
        top = np.asarray(peak.normal.mean)[None]
        return bool(self.above(top)[0]) and self.holds(peak.log_mass)


@np.errstate(over="ignore", invalid="ignore")  # places may be outside of the support
def missed_on_the_way(
    missing: Missing, candidate: np.ndarray, seed: np.random.SeedSequence, most: float
) -> list[Peak]:
    """Return what a mixture misses around a candidate, and on the way up from its first component.

    Parameters
    ----------
    missing
        What the mixture misses of a target.
    candidate : ndarray, shape (d,)
        A place where the target is above the mixture.
    most
        Evaluations of the target up to which further places are weighed.

    Returns
    -------
    list of Peak
        Several may be about the same part.
    """
    target, mixture = missing.target, mixture_of(missing.found.path)
    start, spread = mixture.mean[0], mixture.spread_near(mixture.mean[0])
    way = _way_up(target, start, spread)
    if len(way):  # not from the middle of a ring, where the density is zero
        way = way[missing.above(way)]
    near = [_normal_at(target, candidate, spread), *_heavy_places(missing, way, spread)]
    peaks = list[Peak]()
    for one, own in zip(near, seed.spawn(_WEIGHED), strict=False):
        if one is not None and target.evaluations < most:
            peak = weigh(missing.log_density, one.normal, None, own)
            peaks += [peak] if peak is not None and missing.holds(peak.log_mass) else []
    return peaks


def _heavy_places(missing: Missing, way: np.ndarray, spread: np.ndarray) -> list[Peak]:
    """Return the places of a way that hold something by Laplace's method, the heaviest first.

    First the whole way is looked at, then the part of it that holds something.
    """
    heavy = list[Peak]()
    for _ in range(_ROUNDS):
        places = _PLACES if len(way) else 0
        spaced = np.unique(np.linspace(0, len(way) - 1, places).astype(int))
        near = [_normal_at(missing.target, place, spread) for place in way[spaced]]
        kept = {i: p for i, p in enumerate(near) if p is not None and missing.holds(p.log_mass)}
        if not kept:
            break
        heavy += kept.values()
        first, last = max(min(kept) - 1, 0), min(max(kept) + 1, len(spaced) - 1)
        way = way[spaced[first] : spaced[last]]
    return sorted(heavy, key=lambda peak: -peak.log_mass)


def _way_up(target: TargetDensity, start: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return the places that a climb comes to, each higher than all before, shape ``(n, d)``."""
    place, value = list[np.ndarray](), [-np.inf]

    def function(position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        height, slope = target.value_and_gradient_singly(position)
        if height[0] > value[-1]:
            place.append(position[0])
            value.append(float(height[0]))
        return height, slope

    climb_together(function, start[None], spread, _MAX_CALLS)
    return np.array(place).reshape(-1, len(start))


def _normal_at(target: TargetDensity, place: np.ndarray, spread: np.ndarray) -> Peak | None:
    """Return the normal density of the curvature at a place, and its mass; None without a scale.

    It is at the ridge, if a Newton step across the way is one up: without such steps the mean of
    38 scores of Neal's funnel is -0.45, with them 0.00.
    """
    root = lower_root(climbing_scale(target, place, spread))
    if not (np.isfinite(root).all() and (np.diag(root) > 0).all()):
        return None
    axes, size, _ = np.linalg.svd(root)
    step = size * (target.gradient(place[None])[0] @ axes)
    step[~(np.abs(step) <= _LONGEST)] = 0.0
    both = np.stack([place, place + axes @ (size * step)])
    value = target.log_density(both)
    higher = int(value[1] > value[0])
    normal = GaussianReference(both[higher], root)
    return Peak(normal, float(value[higher] - normal.log_density(both[higher][None])[0]))

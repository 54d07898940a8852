"""What a mixture misses of a target.

The part of ``f`` that is above the mixture ``r`` of evidence ``Z`` has the density

    g = f / (1 + (e^2 Z r / f)^4).

What is searched for is weighed by it, and not by ``f``: importance sampling around a small peak
goes astray to what is known if that is nearby and larger.
"""

from dataclasses import dataclass

import numpy as np

from pymc_anneal.adaptation.fitted_reference import FittedReference
from pymc_anneal.adaptation.mixture_weights import log_ratio
from pymc_anneal.adaptation.peak_mass import Peak
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base.contracts import LogTerms

# Log ratio of target to mixture, in nats, above which there may be a peak that the mixture misses;
# at the mode of a skewed density it is about 1. Share of the evidence that a peak has to hold.
LEAST_PEAK, LEAST_MASS = 2.0, 1e-3
# Power of the ratio of mixture to target: a thousandth of what a mixture fits counts as missing.
_SHARP = 4.0


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

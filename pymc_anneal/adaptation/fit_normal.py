"""How far particles of a target are from a normal distribution."""

from dataclasses import dataclass

import numpy as np

from pymc_anneal.adaptation.fitted_reference import discrepancy_of, log_mean
from pymc_anneal.adaptation.preconditioner import locate
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.paths.geometric import GeometricPath
from pymc_anneal.paths.references import GaussianReference

# Draws of the normal distribution for each particle.
_DRAWS_PER_PARTICLE = 4


@dataclass
class NormalFit:
    """A normal distribution fitted to particles of a target.

    Attributes
    ----------
    normal : GaussianReference or None
        None if there is no fit.
    target : TargetDensity
    log_ratio_draws : ndarray, shape (m,)
        Log ratio of target to normal density at draws of the latter.
    discrepancy : float
        ``D`` of one step from the normal distribution to the target; infinite if there is no fit.
    """

    normal: GaussianReference | None
    target: TargetDensity
    log_ratio_draws: np.ndarray
    discrepancy: float

    @property
    def evaluations(self) -> int:
        """Evaluations of gradient or density so far."""
        return self.target.evaluations

    @property
    def log_z(self) -> float:
        """Importance sampling estimate of the log evidence, in nats."""
        return log_mean(self.log_ratio_draws)

    def log_ratio(self, position: np.ndarray) -> np.ndarray:
        """Return the log ratio of target to normal density, zero where the former is NaN."""
        assert self.normal is not None
        log_density = self.target.log_density(position)
        found = log_density - np.asarray(self.normal.log_density(position))
        return np.where(np.isnan(log_density), -np.inf, found)


@double_precision
def fit_normal(
    path: GeometricPath,
    position: np.ndarray,
    seed: np.random.SeedSequence,
    batch: int | None = None,
) -> NormalFit:
    """Fit a normal distribution to particles, and measure one step from there to the target.

    Parameters
    ----------
    path
        A path with the target at its end.
    position : ndarray, shape (n, d)
        Particles of the target, to which the normal distribution is fitted.
    batch
        Positions that are evaluated together; default: as many as there are particles.
    """
    target = TargetDensity(path, batch or len(position))
    try:
        normal = GaussianReference(*locate(position, target.gradient(position)))
    except ValueError:  # singular
        return NormalFit(None, target, np.zeros(0), np.inf)
    fit = NormalFit(normal, target, np.zeros(0), np.inf)
    fit.log_ratio_draws = fit.log_ratio(normal.sample(seed, _DRAWS_PER_PARTICLE * len(position)))
    with np.errstate(invalid="ignore"):  # all densities may be zero
        found = discrepancy_of(fit.log_ratio_draws, fit.log_ratio(position))
    fit.discrepancy = found if np.isfinite(found) else np.inf
    return fit

"""How far particles of a target are from a normal distribution."""

import numpy as np

from pymc_anneal.adaptation.fit_reference import locate
from pymc_anneal.adaptation.fitted_reference import discrepancy_of
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.paths.geometric import GeometricPath
from pymc_anneal.paths.references import GaussianReference

# Draws of the normal distribution for each particle.
_DRAWS_PER_PARTICLE = 4


@double_precision
def distance_from_normal(
    path: GeometricPath,
    position: np.ndarray,
    seed: np.random.SeedSequence,
    batch: int | None = None,
) -> tuple[float, int]:
    """Measure the discrepancy of one step from a normal distribution to a target.

    Parameters
    ----------
    path
        A path with the target at its end.
    position : ndarray, shape (n, d)
        Particles of the target, to which the normal distribution is fitted.
    seed
        Source of randomness.
    batch
        Positions that are evaluated together; default: as many as there are particles.

    Returns
    -------
    discrepancy : float
        ``D`` of the step; infinite if there is no fit.
    evaluations : int
        Evaluations of gradient or density.
    """
    target = TargetDensity(path, batch or len(position))
    try:
        normal = GaussianReference(*locate(position, target.gradient(position)))
    except ValueError:  # singular
        return np.inf, target.evaluations
    ratios = [
        _without_nan(target.log_density(x)) - np.asarray(normal.log_density(x))
        for x in (normal.sample(seed, _DRAWS_PER_PARTICLE * len(position)), position)
    ]
    with np.errstate(invalid="ignore"):  # all densities may be zero
        found = discrepancy_of(*ratios)
    return found if np.isfinite(found) else np.inf, target.evaluations


def _without_nan(log_density: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(log_density), -np.inf, log_density)

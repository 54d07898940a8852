"""The evidence under another prior, from draws that are moved on to its posterior.

Where the ratio of the priors rises beyond all of its values at the draws, its mean hangs on draws
that are not there. An ensemble (`stretch_moves.py`) that starts at the draws moves to the posterior
of the new prior, and both samples are bridged (`evidence/bridged_ratio.py`). Sweeps go on until the
two samples tell the same.

Of four groups with a scale of HalfNormal(1), three wider priors and 24 seeds, the mean of the
ratios was 0.5 too low in the median, and the six of 72 that were trusted by two to seven of their
errors. Both samples are 0.02 too low, errors are 0.03 to 0.06, and all are trusted.
"""

from functools import partial
from typing import NamedTuple

import jax
import numpy as np

from pymc_anneal.adaptation.target_density import TargetDensity, operations
from pymc_anneal.base.batches import COSTLY_BATCH
from pymc_anneal.evidence.bennett import disagreement
from pymc_anneal.evidence.bridged_ratio import bridged_ratio
from pymc_anneal.evidence.diagnostics import MAX_DISAGREEMENT
from pymc_anneal.evidence.mean_ratio import MeanRatio, mean_ratio
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.location_scale import location_scale_model
from pymc_anneal.paths.geometric import GeometricPath
from pymc_anneal.posthoc.prior_change import PriorChange
from pymc_anneal.posthoc.stretch_moves import stretch

# Walkers, at least and for each coordinate.
_WALKERS, _PER_COORDINATE = 512, 4
# Sweeps of the first turn for so many coordinates, and turns, each of twice as many. Thirty groups
# whose scale triples need 2,000 sweeps; after 400 the estimate is 0.15 to 0.3 too low.
_SWEEPS, _COORDINATES, _TURNS = 400, 25, 4
# Times at which the ensemble is looked at, after half of the sweeps of a turn.
_TIMES = 3
# Standard errors within which the two samples tell the same: a turn more than is needed in a third.
_AGREED = 1.0
# Operations of the first turn: half a minute. All turns together take fifteen times as many.
_MOST_OPERATIONS = 2e10
# Log density of the old prior beyond which 1e-6 of it is lost when it is taken out of a sum.
_LARGE = 1e10


class Moved(NamedTuple):
    """The mean ratio by both samples, and why it is not to be trusted; "" if it is.

    `highest` is the largest log ratio of all draws.
    """

    ratio: MeanRatio
    doubt: str
    highest: float


def obstacle_to_moves(compiled: CompiledModel, draws: int) -> str:
    """Say why an ensemble cannot move from so many draws; "" if it can."""
    if compiled.discrete:
        return f"variable '{compiled.discrete[0].name}' is discrete"
    if compiled.calls:
        return "a part of the model is called back"
    if draws < _PER_COORDINATE * compiled.ndim:
        return f"{draws} draws are few for {compiled.ndim} coordinates"
    program = jax.make_jaxpr(compiled.log_terms)(np.zeros(compiled.ndim))
    evaluations = _walkers(compiled.ndim) * _first_sweeps(compiled.ndim)
    return "its density is costly" if operations(program) * evaluations > _MOST_OPERATIONS else ""


def move_to_prior(
    compiled: CompiledModel,
    change: PriorChange,
    draws: np.ndarray,
    log_ratio: np.ndarray,
    seed: np.random.SeedSequence,
) -> Moved:
    """Estimate the log of the mean ratio of two priors by draws of both posteriors.

    Parameters
    ----------
    compiled
        The model with the old prior.
    change
    draws : ndarray, shape (chains, n, d)
        Of the old posterior, unconstrained.
    log_ratio : ndarray, shape (chains, n)
        Log ratios of the priors at them.
    seed
    """
    rng, d, flat = np.random.default_rng(seed), compiled.ndim, draws.reshape(-1, draws.shape[2])
    coordinates = location_scale_model(compiled)
    if coordinates is not None:  # walkers do not leave the neck of a hierarchy
        flat = coordinates.non_centred.unconstrain(compiled.constrain(flat))
        compiled = coordinates.non_centred
    target = TargetDensity(GeometricPath(compiled.log_terms), COSTLY_BATCH * 8)
    walkers = _first(flat, log_ratio.ravel(), rng)
    walk = partial(stretch, partial(_log_density, compiled, target, change), rng=rng)
    sweeps = _first_sweeps(d)
    for _ in range(_TURNS):
        walkers, times = walk(walkers, sweeps=sweeps // 2), list[np.ndarray]()
        for _ in range(_TIMES):
            walkers = walk(walkers, sweeps=sweeps // (2 * _TIMES))
            times.append(change.log_ratio(compiled.constrain(walkers)))
        moved, sweeps = np.stack(times), 2 * sweeps
        highest = float(max(log_ratio.max(), moved.max()))
        if moved.min() > log_ratio.max():
            doubt = "no draw that was moved there is near to another"
            return Moved(mean_ratio(log_ratio), doubt, highest)
        score = abs(disagreement(log_ratio, moved))
        if score < _AGREED:
            break
    far = f"draws moved there disagree by {score:.1f} standard errors"
    doubt = far if score > MAX_DISAGREEMENT else ""
    return Moved(bridged_ratio(log_ratio, moved), doubt, highest)


def _walkers(d: int) -> int:
    return max(_WALKERS, _PER_COORDINATE * d)


def _first_sweeps(d: int) -> int:
    return int(_SWEEPS * max(1.0, d / _COORDINATES))


def _first(draws: np.ndarray, log_ratio: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Choose distinct draws, those of large ratios rather than others: copies span no space."""
    order = np.argsort(-(log_ratio + rng.gumbel(size=len(log_ratio))), kind="stable")
    return draws[order[: _walkers(draws.shape[1])]]


def _log_density(
    compiled: CompiledModel, target: TargetDensity, change: PriorChange, x: np.ndarray
) -> np.ndarray:
    """Return the log density of the new posterior at positions, shape ``(n,)``; -inf for NaN."""
    values = compiled.constrain(x)
    old = change.log_old(values)
    with np.errstate(invalid="ignore"):
        density = target.log_density(x) - old + change.log_new(values)
    return np.where((np.abs(old) < _LARGE) & (density < np.inf), density, -np.inf)

"""Choice of the coordinates of latent normal variables given the data.

Where a posterior is far from normal in the coordinates of the model, and the model has latent
normal variables with a linear predictor, their coordinates given the other variables and the data
(`model/conditional_normal.py`) are tried. The density takes longer there, and is close to normal
for horseshoes and Gaussian processes, which have no good reference in other coordinates.

Particles drawn anew given the rest know one mode. Those of the survey that are held out stay as
they are, and the coordinates are not taken if they show mass elsewhere.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from pymc_anneal.adaptation.fit_normal import NormalFit, fit_normal
from pymc_anneal.adaptation.plan import NEAR
from pymc_anneal.adaptation.witnesses import to_fit
from pymc_anneal.base.batches import COSTLY_BATCH
from pymc_anneal.base.contracts import Transition
from pymc_anneal.model.conditional_normal import ConditionalModel, conditional_coordinates
from pymc_anneal.model.derivatives import SMOOTH
from pymc_anneal.paths.geometric import GeometricPath
from pymc_anneal.pipeline.hear_witnesses import Draws, Hearing, hear_witnesses
from pymc_anneal.pipeline.model_target import ModelTarget
from pymc_anneal.pipeline.session import Session, explaining_nan
from pymc_anneal.pipeline.target import PilotedRun, RunCandidate

# Discrepancy of the posterior from a normal distribution above which the coordinates are tried.
_FAR = 8.0
# Least effort of a run in the other coordinates, in evaluations: about those of the survey for each
# nat of the discrepancy. Below it, the run takes less time than the compilation of the map.
_LEAST_EFFORT = 1_000_000
# Share of this discrepancy that may be left: the density takes longer to evaluate.
_GAIN = 0.5
# Discrepancy up to which a run takes a step or two, and the transition need not be tuned.
_ONE_STEP = 1.0
# Multiplications of a map that may be evaluated for moves; larger ones serve runs of one step. The
# density of a model takes a few thousand to a hundred thousand.
_MOST_WORK = 150_000
# Rounds of tuning, half of the usual number: the particles are where they belong.
_ROUNDS = 2


def given_data(
    session: Session,
    base: ModelTarget,
    surveyed: PilotedRun,
    known: PilotedRun,
    transition: Transition,
    seed: np.random.SeedSequence,
) -> tuple[ModelTarget, PilotedRun] | None:
    """Choose between known coordinates and those of latent normal variables given the data.

    `base` is the model in non-centred coordinates, `surveyed` the run from the prior with a survey
    there, `known` the run in the coordinates chosen so far, with the particles of the survey.
    Returns the model in these coordinates and the run with its particles there; None unless they
    bring the posterior near to a normal distribution.
    """
    if base.compiled.derivatives.order < SMOOTH:
        return None
    seeds = seed.spawn(4)
    distance = _fit(session, known, known.pilot.position, seeds[0]).discrepancy
    worthwhile = distance >= _FAR and distance * surveyed.pilot.evaluations >= _LEAST_EFFORT
    coordinates = conditional_coordinates(base.compiled) if worthwhile else None
    if coordinates is None:
        return None
    own = coordinates.at(coordinates.centre(surveyed.pilot.position))
    position = _mapped(own, coordinates.columns, surveyed.pilot.position, seeds[1])
    chosen = replace(base, compiled=own)
    candidate = chosen.candidate()
    with explaining_nan(chosen):
        fit = _fit(session, candidate, position, seeds[2], COSTLY_BATCH)
        nearer = fit.discrepancy
        if not np.isfinite(nearer) or nearer > largest_distance(coordinates.work, distance):
            return None
        if _hear(session, surveyed, own.from_model, fit).objection:
            return None
        since, found = session.meter.evaluations, (surveyed.pilot, candidate, transition, position)
        if nearer <= _ONE_STEP:
            tuned = session.rescale_at_target(*found)
        else:
            tuned = session.tune_at_target(*found, seeds[3], _ROUNDS)
            if not tuned.has_step_size(transition):
                return None
    session.meter.change_density(since)
    return chosen, candidate.with_pilot(tuned)


def largest_distance(work: int, distance: float) -> float:
    """Return the discrepancy up to which coordinates are worth a map of so many multiplications.

    The other coordinates have the discrepancy ``distance``.
    """
    return max(NEAR, _GAIN * distance) if work <= _MOST_WORK else _ONE_STEP


def _mapped(
    model: ConditionalModel, columns: np.ndarray, position: np.ndarray, seed: np.random.SeedSequence
) -> np.ndarray:
    """Map particles to the coordinates of a model, shape ``(n, d)``.

    The latent variables of the particles to fit are drawn again, from their normal distribution
    given the rest: those of a survey may have got stuck.
    """
    moved = model.from_model(position).copy()
    rows = to_fit(np.arange(len(moved)))
    normal = np.random.default_rng(seed).standard_normal((len(rows), len(columns)))
    moved[np.ix_(rows, columns)] = normal
    return moved


def _fit(
    session: Session,
    candidate: RunCandidate,
    position: np.ndarray,
    seed: np.random.SeedSequence,
    batch: int | None = None,
) -> NormalFit:
    """Fit a normal distribution to those of the particles that are not held out."""
    particles = to_fit(position)
    fit = partial(fit_normal, _path(candidate), particles, seed, batch or len(position))
    return session.meter.run("Coordinates", fit)


def _hear(
    session: Session,
    surveyed: PilotedRun,
    to_coordinates: Callable[[np.ndarray], np.ndarray],
    fit: NormalFit,
) -> Hearing:
    """Ask the witnesses whether a normal density in other coordinates misses any mass."""

    def log_ratio(position: np.ndarray) -> np.ndarray:
        return fit.log_ratio(to_coordinates(position))

    draws = Draws.of_weights(fit.log_ratio_draws)
    return hear_witnesses(session, surveyed, log_ratio, draws, fit.log_z)


def _path(candidate: RunCandidate) -> GeometricPath:
    assert isinstance(candidate.path, GeometricPath)
    return candidate.path

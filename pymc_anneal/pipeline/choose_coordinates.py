"""Choice of the coordinates of location-scale variables.

A survey in non-centred coordinates ``e``, in which the prior has no funnels, brings particles to
the posterior. With ``z_w = w mu + sigma^w e`` (`model/location_scale.py`), the weight of an entry
minimises its divergence from a normal variable given location and scale,

    KL(z_w || N) = log sd(z_w | mu, log sigma) - w E[log sigma] + const,

the negentropy of ``z_w`` with the residual standard deviation of a linear regression. For random
walks, the divergence is that of all entries and the log scale together from a joint normal
distribution, with the volume of their covariance. If nothing is gained, the run goes on in
non-centred coordinates.
"""

from dataclasses import replace

import numpy as np

from pymc_anneal.adaptation.tuning import needs_pilot
from pymc_anneal.base.contracts import Transition
from pymc_anneal.base.seeds import spawned
from pymc_anneal.model.location_scale import LocationScaleModel, location_scale_model
from pymc_anneal.pipeline.coordinates_given_data import given_data
from pymc_anneal.pipeline.explain_infinite import explaining_infinite
from pymc_anneal.pipeline.model_target import ModelTarget
from pymc_anneal.pipeline.session import Session, explaining_nan
from pymc_anneal.pipeline.target import PilotedRun

# Weights that are tried, the first of which is that of the survey.
_WEIGHTS = (0.0, 0.5, 1.0)
# Least gain of an entry, in nats: above the noise of a few hundred particles.
_LEAST_GAIN = 0.1
# Least gain of all entries for which coordinates change: a divergence of one nat between
# reference and posterior is about one step more.
_LEAST_TOTAL = 1.0
# Gain of the non-centred increments of random walks over their values, in nats, from which they
# are taken. Transitions are slower in the increments, whose correlations are long. On eight walks
# of 60 and 100 steps, from vague to sharp data, this chose the cheaper coordinates.
_WALK_GAIN = 1.5


def choose_coordinates(
    session: Session, target: ModelTarget, transition: Transition
) -> tuple[ModelTarget, PilotedRun | None]:
    """Choose the coordinates of a model by the particles of a survey.

    Returns
    -------
    target : ModelTarget
        The model in the coordinates chosen.
    surveyed : PilotedRun or None
        The run from the prior with the survey in these coordinates; None without a survey, of a
        transition that needs none.
    """
    if session.settings.reject_nan or not needs_pilot(transition):
        return target, None
    seeds = session.seeds.coordinates.spawn(3)
    model = location_scale_model(target.compiled)
    base = target if model is None else replace(target, compiled=model.non_centred)
    # A model without a choice has the survey that the fit of a reference would make.
    own = spawned(session.seeds.reference, 0) if model is None else seeds[0]
    with explaining_nan(base), explaining_infinite(base):
        surveyed = session.survey(base.candidate(), transition, own)
    chosen, known = base, surveyed
    if model is not None:
        chosen, known = _move_to_best(session, target, model, transition, surveyed, seeds[1])
    return given_data(session, base, surveyed, known, transition, seeds[2]) or (chosen, known)


def _move_to_best(
    session: Session,
    target: ModelTarget,
    model: LocationScaleModel,
    transition: Transition,
    surveyed: PilotedRun,
    seed: np.random.SeedSequence,
) -> tuple[ModelTarget, PilotedRun]:
    """Choose the weights, and move the particles of the survey to their coordinates."""
    pilot = surveyed.pilot
    weight = best_weights(model, pilot.position)
    if not weight.any():
        return replace(target, compiled=model.non_centred), surveyed
    chosen = target if (weight == 1).all() else replace(target, compiled=model.at(weight))
    position = model.move(pilot.position, weight, chosen.compiled.variables)
    candidate = chosen.candidate()
    with explaining_nan(chosen):
        tuned = session.tune_at_target(pilot, candidate, transition, position, seed)
    return chosen, candidate.with_pilot(tuned)


def best_weights(model: LocationScaleModel, position: np.ndarray) -> np.ndarray:
    """Return the weights in whose coordinates particles are nearest to normal.

    Parameters
    ----------
    model
        The model as a function of the weights.
    position : ndarray, shape (n, d)
        Particles of the posterior, in non-centred coordinates.

    Returns
    -------
    ndarray, shape (k,)
        All 0 if others gain too little.
    """
    location, scale = model.location_and_scale(position)
    standard = position[:, model.columns]
    if not np.isfinite(location).all() or not np.isfinite(np.log(scale)).all():
        return np.zeros(model.size)
    weights = np.empty(model.size)
    single = np.ones(model.size, dtype=bool)
    for walk in model.walks:
        parts = location[:, walk], scale[:, walk], standard[:, walk]
        weights[walk] = float(_gain_of_increments(*parts) < _WALK_GAIN)
        single[walk] = False
    parts = location[:, single], scale[:, single], standard[:, single]
    weights[single] = _best_of_entries(*parts)
    return weights


def _best_of_entries(location: np.ndarray, scale: np.ndarray, standard: np.ndarray) -> np.ndarray:
    """Return the weight of each entry, shape ``(k,)``; all arrays have shape ``(n, k)``."""
    log_scale = np.log(scale)
    divergence = np.array(
        [
            _residual_log_sd(w * location + scale**w * standard, location, log_scale)
            - w * log_scale.mean(axis=0)
            for w in _WEIGHTS
        ]
    )
    gain = divergence[0] - divergence
    best = np.where(gain.max(axis=0) > _LEAST_GAIN, gain.argmax(axis=0), 0)
    total = np.take_along_axis(gain, best[None], axis=0).sum()
    weights: np.ndarray = np.take(_WEIGHTS, best) * (total > _LEAST_TOTAL)
    return weights


def _gain_of_increments(location: np.ndarray, scale: np.ndarray, standard: np.ndarray) -> float:
    """Return how much nearer to normal non-centred increments are than centred ones, in nats.

    The values of the walk are sums of the centred increments, with the same volume. All arrays have
    shape ``(n, k)``.
    """
    log_scale, centred = np.log(scale), location + scale * standard
    varying = log_scale[:, np.ptp(log_scale, axis=0) > 0][:, -1:]
    rows = [np.column_stack([z, varying]) for z in (standard, centred)]
    if len(standard) <= rows[0].shape[1]:  # too few particles for a covariance
        return 0.0
    own, other = (np.linalg.slogdet(np.cov(row.T))[1] for row in rows)
    return float((other - own) / 2 - log_scale.mean(axis=0).sum())


def _residual_log_sd(z: np.ndarray, location: np.ndarray, log_scale: np.ndarray) -> np.ndarray:
    """Return the log residual standard deviations of columns regressed on location and log scale.

    All arrays have shape ``(n, k)``; the result has shape ``(k,)``.
    """
    residual = np.empty(z.shape[1])
    for j, column in enumerate(z.T):
        design = np.column_stack([np.ones(len(z)), location[:, j], log_scale[:, j]])
        fitted = design @ np.linalg.lstsq(design, column, rcond=None)[0]
        residual[j] = np.log(np.maximum(np.std(column - fitted), np.finfo(float).tiny))
    return residual

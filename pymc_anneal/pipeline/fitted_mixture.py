"""Choice between the prior and a mixture fitted to particles of the posterior.

A survey, a rough pilot from the prior, brings particles to the posterior, and a mixture of
references is fitted to them (`fit_mixture.py`). The fit measures the discrepancy ``D`` of the whole
path from the mixture:

- If the path from the prior is no longer, it is taken, with the survey as its pilot if ``D < 3``.
- If ``D < 3``, a run of a few steps from the mixture is planned without further pilots.
- If particles of the survey that were held out, or draws by levels, lie where the mixture has next
  to no mass, the prior is taken, and so it is if levels find more evidence, or if these particles
  lie where a pilot from the mixture never gets.
- Otherwise a pilot from the mixture measures its path, within a share of the cost of the run from
  the prior, and the cheaper of both is taken by the predicted cost

      cost = (sum_k sqrt(D_k tau_k c_k))^2,

  gradients per particle for a variance of one of the log weights.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from pymc_anneal.adaptation.fit_mixture import fit_to_particles
from pymc_anneal.adaptation.fitted_reference import (
    FittedReference,
    draw_start,
    mixture_of,
)
from pymc_anneal.adaptation.mixture_weights import log_ratio
from pymc_anneal.adaptation.pilot import Pilot, PilotTooLongError
from pymc_anneal.adaptation.plan import NEAR, NEAR_VARIANCE, RUN_SHARE, planned_variance
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.adaptation.witnesses import to_fit
from pymc_anneal.base.batches import COSTLY_BATCH
from pymc_anneal.base.contracts import Transition
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.evidence.heavy_tail import estimate_with_tail
from pymc_anneal.evidence.held_out import LEVEL_OF_CHOICES, is_too_low
from pymc_anneal.evidence.levels import Levels
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.paths.geometric import GeometricPath
from pymc_anneal.pipeline.hear_witnesses import Draws, LogRatio, hear_witnesses
from pymc_anneal.pipeline.model_target import ModelTarget
from pymc_anneal.pipeline.options import Options
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.split_levels import DrawsByLevels, draws_of, split_levels
from pymc_anneal.pipeline.target import Choice, PilotedRun, RunCandidate
from pymc_anneal.transitions.independence import IndependenceMetropolis

# Discrepancy up to which proposals from the mixture may serve as transitions: a third are accepted.
# Moves by gradients leave the tails sooner, and are taken where they do not take too long: with
# proposals, 6,000 evaluations after 80,000, 1 of 24 runs of a horseshoe missed the wanted error.
_BY_PROPOSALS = 1.0
# Proposals of a step, of which `trial.py` takes six: near to them a density accepts more than half.
_PROPOSALS = 2
# What speaks against a mixture of some of the modes.
_INCOMPLETE = "the search for modes took its share of the run from the prior and went on"
# Evaluations of a search that goes on finding modes, and of the pilot from a mixture, as a share of
# those of the run from the prior; but at least as many as the survey took.
_SHARE = 0.25


def choose_mixture(
    session: Session,
    target: ModelTarget,
    transition: Transition,
    options: Options,
    surveyed: PilotedRun | None = None,
) -> Choice:
    """Fit a mixture to the particles of a survey, and choose between it and the prior.

    `surveyed` is the run from the prior with a survey as its pilot; by default one is made.

    Returns
    -------
    Choice
        The candidate has a pilot, unless it is the prior.
    """
    compiled, prior, insist = target.compiled, target.candidate(), options.reference == "pilot"
    seed_survey, seed_fit, seed_pilot = session.seeds.reference.spawn(3)
    surveyed = surveyed or session.survey(prior, transition, seed_survey)
    mixture = _fit(session, compiled, prior, surveyed, seed_fit, options.hints_in(compiled))
    pilot, fitted = surveyed.pilot, mixture.fitted
    assert fitted is not None
    if mixture.objection and not insist:
        return _prior_instead(prior, mixture)
    price = fitted.price(pilot.rough_log_z)
    whatever = insist or price > 1
    # Draws of zero likelihood included.
    of_prior = pilot.barrier**2 - pilot.log_reference_mass
    if of_prior <= fitted.discrepancy and not whatever:
        near = pilot.barrier**2 <= NEAR  # the survey will do for a pilot
        return Choice(replace(surveyed if near else prior, built_from=mixture), {})
    if fitted.discrepancy <= NEAR:
        near = compiled.costly and fitted.discrepancy <= _BY_PROPOSALS
        long = near and session.settings.free_transition and _is_long(session, pilot, fitted)
        found = pilot_of_fit(pilot, fitted)
        return Choice(mixture.with_pilot(by_proposals(found, fitted) if long else found), {})
    budget = np.inf if insist else price * _budget(session, surveyed)
    try:
        found = session.short_pilot(mixture, transition, seed_pilot, len(pilot.position), budget)
    except PilotTooLongError as error:
        reason = f"the path from the mixture is too long: {error}"
        return Choice(replace(prior, built_from=mixture), {}, reason)
    measured = _hear_pilot(session, compiled, surveyed, mixture.with_pilot(found))
    if measured.objection and not insist:
        return _prior_instead(prior, measured)
    compared = {"prior": surveyed, "mixture": measured}
    if insist or measured.cost <= price * surveyed.cost:
        return Choice(measured, compared)
    return Choice(replace(prior, built_from=measured), compared)


def _fit(
    session: Session,
    compiled: CompiledModel,
    prior: RunCandidate,
    surveyed: PilotedRun,
    seed: np.random.SeedSequence,
    hints: np.ndarray | None,
) -> RunCandidate:
    """Return the run from a mixture, with what the witnesses say that it misses."""
    pilot = surveyed.pilot
    levels, every = split_levels(session, compiled, surveyed), len(pilot.position)
    particles = to_fit(pilot.position)
    further = draws_of(levels, len(particles), session.seeds.levels)
    with session.display.busy("Fit", "a mixture of densities, and further modes"):
        most = _budget(session, surveyed)
        position = None if further is None else further.position
        fit = partial(fit_to_particles, surveyed=every, further=position, hints=hints, most=most)
        fit = partial(fit, compiled, particles, seed, pilot.evaluations)
        fitted = session.meter.run("Fit", fit)
    log_ratio_to = ratio_to(fitted, compiled, surveyed)
    known = fitted.met_share_of(pilot.rough_log_z)
    draws = Draws.of_weights(fitted.log_ratio_draws)._replace(known=known)
    # A mixture that is far is too low for that alone: the particles of its pilot are asked.
    log_z = fitted.log_z if fitted.discrepancy <= NEAR else np.inf
    hearing = hear_witnesses(session, surveyed, log_ratio_to, draws, log_z)
    return RunCandidate(
        "mixture",
        draw_start(fitted.path, prior.draw_reference),
        fitted.path,
        built_from=surveyed,
        fitted=fitted,
        levels=levels,
        objection=hearing.objection
        or object_by_levels(levels, fitted, further, log_ratio_to, draws)
        or ("" if fitted.complete else _INCOMPLETE),
    )


def object_by_levels(
    levels: Levels | None,
    fitted: FittedReference,
    found_by: DrawsByLevels | None,
    log_ratio_to: LogRatio,
    draws: Draws,
) -> str:
    """Return what levels, and draws by them, say that a mixture misses; "" if nothing."""
    if levels is None or found_by is None:
        return ""
    fit, families = estimate_with_tail("the mixture", fitted.log_ratio_draws), levels.mcse**-2
    highest = fit.log_evidence + fit.mcse
    if is_too_low(highest, levels.log_evidence, families, LEVEL_OF_CHOICES):
        return (
            f"log Z is {levels.log_evidence:.4g} +- {levels.mcse:.2g} by levels, "
            f"{fit.log_evidence:.4g} +- {fit.mcse:.2g} by the mixture"
        )
    return found_by.miss(log_ratio_to, draws, LEVEL_OF_CHOICES)


def _hear_pilot(
    session: Session, compiled: CompiledModel, surveyed: PilotedRun, measured: PilotedRun
) -> PilotedRun:
    """Ask the witnesses whether a pilot from a mixture misses a part of the posterior.

    Its particles count as independent, which they are not: a wrong objection costs time.
    """
    assert measured.fitted is not None
    log_ratio_to, position = ratio_to(measured.fitted, compiled, surveyed), measured.pilot.position
    known = measured.fitted.met_share_of(surveyed.pilot.rough_log_z)
    session.meter.add("Witnesses", len(position), 0.0)
    draws = Draws.even(log_ratio_to(position))._replace(known=known)
    hearing = hear_witnesses(session, surveyed, log_ratio_to, draws, measured.pilot.log_z)
    return replace(measured, objection=hearing.objection)


def ratio_to(fitted: FittedReference, compiled: CompiledModel, surveyed: PilotedRun) -> LogRatio:
    """Return the log ratio of a posterior to a mixture, from positions ``(n, d)`` to ``(n,)``."""
    size = COSTLY_BATCH if compiled.costly else len(surveyed.pilot.position)
    target = TargetDensity(GeometricPath(compiled.log_terms), size)
    return lambda position: log_ratio(fitted.path, position, target.evaluate(position))


def _prior_instead(prior: RunCandidate, mixture: RunCandidate) -> Choice:
    """Return the choice of the prior, with the reason."""
    reason = f"the mixture misses a part of the posterior: {mixture.objection}"
    return Choice(replace(prior, built_from=mixture), {}, reason)


def _budget(session: Session, surveyed: PilotedRun) -> float:
    """Return the evaluations that a search for modes may take, or a pilot from the mixture."""
    settings, pilot = session.settings, surveyed.pilot
    particles = settings.draws * settings.chains
    variance = planned_variance(particles, settings.target_mcse)
    return max(_SHARE * surveyed.cost / variance * particles, pilot.evaluations)


def _is_long(session: Session, survey: Pilot, fitted: FittedReference) -> bool:
    """Whether a run from the mixture by the moves of the survey takes more than its share."""
    settings, spent = session.settings, session.meter.evaluations_of_density
    steps = max(1.0, fitted.discrepancy / NEAR_VARIANCE)
    evaluations = settings.draws * settings.chains * steps * float(survey.cost[-1])
    return evaluations > RUN_SHARE * spent


@double_precision
def pilot_of_fit(survey: Pilot, fitted: FittedReference) -> Pilot:
    """Return what a pilot from the mixture would find, without moves of its own.

    The mixture is so near to the posterior that the transition tuned for the posterior serves the
    whole path.
    """
    betas, discrepancy = fitted.profile()
    every = np.ones(len(discrepancy))
    return Pilot(
        betas=betas,
        discrepancy=discrepancy,
        log_reference_mass=fitted.log_reference_mass,
        transition=survey.transition.at(1.0),
        tau=max(float(survey.tau[-1]), 1.0) * every,
        cost=float(survey.cost[-1]) * every,
        accept_rate=float(survey.accept_rate[-1]) * every,
        log_z=fitted.log_z,
        position=survey.position,
        ancestor=survey.ancestor,
    )


def by_proposals(pilot: Pilot, fitted: FittedReference) -> Pilot:
    """Return a pilot with proposals from a mixture that is near as moves, in place of its own."""
    every = np.ones(len(pilot.discrepancy))
    proposals = IndependenceMetropolis(mixture_of(fitted.path), np.asarray(_PROPOSALS))
    return replace(pilot, transition=proposals, tau=every, cost=_PROPOSALS * every)

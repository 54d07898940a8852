"""Configurations of discrete variables (`adaptation/configurations.py`): a bound, and a start.

The masses of the configurations that a search finds bound the evidence from below: a run that ends
below the bound has missed one of them. Where the search has weighed all neighbours of what holds
the mass, the run starts from a mixture over the configurations, which has a share of the prior,
unless particles of a survey from the prior show that it misses a part of the posterior.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from pymc_anneal.adaptation.conditional_peak import ConditionalDensity
from pymc_anneal.adaptation.configurations import DRAWS, Configurations, find_configurations
from pymc_anneal.adaptation.fitted_reference import (
    FittedReference,
    draw_start,
    log_mean,
    normalised,
)
from pymc_anneal.adaptation.particles import evaluate
from pymc_anneal.adaptation.plan import NEAR
from pymc_anneal.annealing.resampling import systematic
from pymc_anneal.base.batches import map_batches
from pymc_anneal.base.contracts import Transition
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.evidence.ais import highest_log_evidence
from pymc_anneal.evidence.held_out import LEVEL
from pymc_anneal.evidence.witness import Witness
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.derivatives import SMOOTH
from pymc_anneal.model.parents import likelihood_has_parents
from pymc_anneal.paths.geometric import GeometricPath, ReferencePath, ReferenceTerms
from pymc_anneal.pipeline.counted_run import ForwardStages
from pymc_anneal.pipeline.fitted_mixture import pilot_of_fit
from pymc_anneal.pipeline.hear_witnesses import Draws, Hearing, hear_witnesses
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.start import Request, Start
from pymc_anneal.pipeline.target import Choice, PilotedRun, RunCandidate

# Name of the reference in results.
NAME = "configurations"
# Real coordinates up to which peaks given the discrete ones are climbed to: of more, curvatures
# take longer than the run.
_MAX_REAL = 32
# Share of the prior in the reference, and draws that compare it with the particles of a survey.
_PRIOR_SHARE, _COMPARED = 0.1, 1024
# Errors of the bound by which a run has to stay below it to have missed something.
_ERRORS = 4.0


def look_at_configurations(session: Session, compiled: CompiledModel) -> Configurations | None:
    """Search for configurations of the discrete variables; None, see `explain_no_search`."""
    if not compiled.discrete or not compiled.has_likelihood:
        return None
    if explain_no_search(session, compiled):
        return None
    search = partial(_search, session, compiled)
    return session.meter.run("Configurations", partial(session.log.stage, "Configurations", search))


def explain_no_search(session: Session, compiled: CompiledModel) -> str:
    """Say why configurations are not looked for; "" if they are."""
    if session.settings.audit == "off":
        return "audit='off'"
    if session.settings.fixed_steps is not None:
        return "the number of steps was given"
    if compiled.calls:
        return "a part of the model is called back, for each of thousands of configurations"
    real = _real(compiled)
    if len(real) > _MAX_REAL:
        return (
            f"{len(real)} continuous coordinates beside discrete variables, of at most {_MAX_REAL}"
        )
    if real and (compiled.derivatives.order < SMOOTH or compiled.costly):
        return "no second derivatives to search with beside discrete variables"
    return ""


def _search(session: Session, compiled: CompiledModel) -> Configurations | None:
    seed_draws, seed_search = session.seeds.configurations.spawn(2)
    density = ConditionalDensity(GeometricPath(compiled.log_terms), _real(compiled))
    discrete = [j for v in compiled.discrete for j in range(v.start, v.stop)]
    bounds = [v.support or ((-np.inf, np.inf),) * (v.stop - v.start) for v in compiled.discrete]
    with session.display.busy("Configurations", "of the discrete variables, and their masses"):
        draws = compiled.sample_prior(seed_draws, DRAWS)
        return find_configurations(density, draws, discrete, sum(bounds, ()), seed_search)


def _real(compiled: CompiledModel) -> tuple[int, ...]:
    continuous = (v for v in compiled.variables if not v.discrete)
    return tuple(j for v in continuous for j in range(v.start, v.stop))


def start_from_configurations(session: Session, request: Request) -> Start | None:
    """Return the start from a mixture over configurations, or from the prior if it misses any.

    None if another reference is asked for, or there are no configurations.
    """
    found, compiled = request.configurations, request.target.compiled
    if request.options.reference != "auto" or found is None:
        return None
    transition = request.options.transition
    choice = _choose(session, compiled, request.target.candidate(), transition, found)
    return Start(request.target, transition, choice)


def _choose(
    session: Session,
    compiled: CompiledModel,
    prior: RunCandidate,
    transition: Transition,
    found: Configurations,
) -> Choice:
    """Choose between the prior and a mixture over configurations, by the particles of a survey."""
    if not found.complete:
        reason = "configurations of the discrete variables beyond those weighed hold a part"
        return Choice(prior, {}, reason)
    seed_survey, seed_draws = session.seeds.reference.spawn(2)
    surveyed = session.survey(prior, transition, seed_survey)
    path = ReferencePath(compiled.log_terms, found.reference, _PRIOR_SHARE)
    draw = draw_start(path, prior.draw_reference)
    to_ratio = ratio_to(path)
    at_draws = to_ratio(draw(seed_draws, _COMPARED))
    draws = Draws.of_weights(at_draws)
    hearing = hear_witnesses(session, surveyed, to_ratio, draws, log_mean(at_draws))
    at_particles = to_ratio(surveyed.pilot.position)
    session.meter.add("Fit", len(at_draws) + len(at_particles), 0.0)
    candidate = RunCandidate(NAME, draw, path, built_from=surveyed)
    if hearing.objection:
        reason = f"the configurations miss a part of the posterior: {hearing.objection}"
        return Choice(prior, {NAME: candidate}, reason)
    fitted = FittedReference(path, at_draws, at_particles, 0, 0, np.empty((0, 0)), np.empty(0))
    near = fitted.discrepancy <= NEAR
    pilot = pilot_of_fit(surveyed.pilot, fitted) if near else None
    return Choice(replace(candidate, pilot=pilot), {})


def ratio_to(path: ReferencePath) -> Callable[[np.ndarray], np.ndarray]:
    """Return the log ratio of the posterior to the start of a path, ``(n, d)`` to ``(n,)``."""

    @double_precision
    def log_ratio(position: np.ndarray) -> np.ndarray:
        terms: ReferenceTerms = map_batches(partial(evaluate, path), position, _COMPARED)
        return np.asarray(terms.log_target - terms.log_reference)

    return log_ratio


def hear_about_configurations(session: Session, forward: ForwardStages) -> Hearing | None:
    """Ask a survey from the prior whether a run from configurations misses a part.

    None if there was none.
    """
    candidate, surveyed = forward.candidate, forward.candidate.built_from
    if candidate.reference != NAME or not isinstance(surveyed, PilotedRun):
        return None
    assert isinstance(candidate.path, ReferencePath)
    log_ratio, log_weight = ratio_to(candidate.path), forward.run.log_weight
    weight = normalised(log_weight.ravel())
    position = forward.run.position.reshape(len(weight), -1)
    rng = np.random.default_rng(session.seeds.witnesses)
    session.meter.add("Witnesses", 2 * _COMPARED, 0.0)
    draws = Draws.even(log_ratio(position[systematic(rng, weight, 2 * _COMPARED)]))
    draws = draws._replace(effective=min(1 / np.square(weight).sum(), 2.0 * _COMPARED))
    most = highest_log_evidence(log_weight)
    return hear_witnesses(session, surveyed, log_ratio, draws, most, LEVEL)


def doubt_by_configurations(found: Configurations | None, most: float) -> list[str]:
    """Return the doubt about a run whose evidence is at most ``most``, below the bound."""
    if found is None or found.log_evidence - _ERRORS * found.mcse <= most:
        return []
    return [
        f"the run misses a part of the posterior: {found.number} configurations of the discrete "
        f"variables hold {found.log_evidence:.4g} +- {found.mcse:.2g} in log Z alone; take more "
        "draws, or sum discrete variables out of the model"
    ]


def witnesses_by_configurations(found: Configurations | None) -> tuple[Witness, ...]:
    """Return the configurations as a witness, whose estimate is a lower bound."""
    if found is None:
        return ()
    return (Witness("configurations, at least", found.number, found.log_evidence, found.mcse),)


def say_what_configurations_left_out(
    session: Session, compiled: CompiledModel, found: Configurations | None, log_evidence: float
) -> str:
    """Say what the search for configurations has not looked at."""
    if not likelihood_has_parents(compiled):
        return ""
    missing = explain_no_search(session, compiled)
    if missing:
        return f"modes were not looked for: {missing}"
    if found is None:
        return f"modes were not looked for: the density is zero at all of {DRAWS} prior draws"
    if found.every:
        further = "another peak of the continuous variables given the discrete ones may be missed"
        return further if _real(compiled) else ""
    share = min(float(np.exp(found.log_evidence - log_evidence)), 1.0)
    apart = "more than two changes" if found.pairs else "more than a change"
    held = "" if found.complete else f", which hold {share:.2g} of the evidence,"
    return (
        f"configurations {apart} of discrete variables away from the {found.number} that were "
        f"weighed{held} may be missed"
    )

"""The mode audit of a run (`evidence/mode_audit.py`)."""

from functools import partial

import numpy as np
import xarray as xr

from pymc_anneal.adaptation.fit_mixture import fit_to_particles, may_have_mixture
from pymc_anneal.adaptation.fitted_reference import FittedReference, normalised
from pymc_anneal.annealing.resampling import systematic
from pymc_anneal.evidence.ais import ais, highest_log_evidence
from pymc_anneal.evidence.held_out import LEVEL
from pymc_anneal.evidence.levels import Levels
from pymc_anneal.evidence.mode_audit import ModeAudit, audit_draws
from pymc_anneal.evidence.witness import Witness
from pymc_anneal.model.derivatives import SMOOTH
from pymc_anneal.model.log_concavity import is_log_concave_model
from pymc_anneal.model.parents import likelihood_has_parents, likelihood_is_constant
from pymc_anneal.pipeline.counted_run import ForwardStages
from pymc_anneal.pipeline.fitted_mixture import ratio_to
from pymc_anneal.pipeline.hear_witnesses import Draws, Hearing, hear_witnesses
from pymc_anneal.pipeline.model_target import ModelTarget
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.split_levels import draws_of
from pymc_anneal.pipeline.target import PilotedRun

# Particles of the run to which a mixture is fitted, if none was fitted before.
_PARTICLES = 512
# Draws of the run with which the held-out particles are compared, and those of a costly density:
# with 2,000 and a hundred independent witnesses, a missed tenth is seen in 95 % of runs.
_HEARD, _HEARD_IF_COSTLY = 2048, 256
# Climbs of which one leads to a mode on average, for at least one to find it with 95 %.
_AT_LEAST_ONCE = 3
# Probability that a part of the posterior escapes all held-out particles, for which its share is
# said, and the effective number of these below which it is: the share is 14 % then.
_UNSEEN, _FEW = 0.05, 20
# What to do about a mode that a run has missed.
_ADVICE = "the run missed it; reference='pilot' starts from all modes that were found"


def fit_for_audit(
    session: Session, target: ModelTarget, forward: ForwardStages
) -> FittedReference | None:
    """Return the mixture that was fitted on the way to a run, or one fitted to its particles.

    None if no mixture can be fitted: for discrete variables, for priors that are not normalised,
    and for runs whose number of steps was given, which nothing is adapted for.
    """
    known = (c.fitted for c in forward.candidate.lineage if c.fitted is not None)
    return next(known, None) or _fit_to_run(session, target, forward)


def audit_run(fitted: FittedReference, forward: ForwardStages) -> ModeAudit:
    """Compare the modes of a mixture with those that a run has found."""
    found = ais(forward.run.log_weight).log_evidence
    return audit_draws(fitted, *_weighted_particles(forward), found)


def hear_about_run(session: Session, target: ModelTarget, forward: ForwardStages) -> Hearing | None:
    """Ask the held-out particles of the survey, and levels, what a run misses of the posterior.

    None if nothing was surveyed.
    """
    lineage = forward.candidate.lineage
    surveys = ((c.fitted, c.built_from) for c in lineage if isinstance(c.built_from, PilotedRun))
    fitted, surveyed = next((pair for pair in surveys if pair[0] is not None), (None, None))
    if fitted is None or surveyed is None:
        return None
    position, weight = _weighted_particles(forward)
    rng = np.random.default_rng(session.seeds.witnesses)
    log_ratio = ratio_to(fitted, target.compiled, surveyed)
    count = _HEARD_IF_COSTLY if target.compiled.costly else _HEARD
    drawn = position[systematic(rng, weight, count)]
    session.meter.add("Witnesses", count, 0.0)
    draws = Draws.even(log_ratio(drawn))._replace(
        effective=min(1 / np.square(weight).sum(), float(count)),
        known=fitted.met_share_of(surveyed.pilot.rough_log_z),
    )
    most = highest_log_evidence(forward.run.log_weight)
    hearing = hear_witnesses(session, surveyed, log_ratio, draws, most, LEVEL)
    by_levels = draws_of(levels_of(forward), count, session.seeds.levels)
    if by_levels is None:
        return hearing
    session.meter.add("Witnesses", count, 0.0)
    both = filter(None, (hearing.objection, by_levels.miss(log_ratio, draws, LEVEL)))
    return hearing._replace(objection="; ".join(both))


def doubt_run(
    target: ModelTarget,
    forward: ForwardStages,
    audit: ModeAudit | None,
    hearing: Hearing | None,
) -> list[str]:
    """Name the mass that a run missed, and a likelihood that is constant where it has been."""
    doubts = [] if audit is None else audit.doubts(target.compiled, _ADVICE)
    if hearing is not None and hearing.objection:
        doubts.append(
            f"the run misses a part of the posterior: {hearing.objection}; take "
            "reference='prior' and more draws"
        )
    if target.compiled.has_likelihood and _never_varies(forward):
        doubts.append(
            "the likelihood has the same value at all particles: it depends on the parameters "
            "only in a region that was not found, or not at all"
        )
    return doubts


def nothing_to_miss(target: ModelTarget, forward: ForwardStages) -> bool:
    """Whether the likelihood is known to have everywhere the value that it has at all particles."""
    compiled = target.compiled
    if not compiled.has_likelihood or not _never_varies(forward):
        return False
    return compiled.ndim == 0 or likelihood_is_constant(compiled)


def _never_varies(forward: ForwardStages) -> bool:
    return len(np.unique(forward.run.log_weight)) == 1


def doubt_density(session: Session, target: ModelTarget, forward: ForwardStages) -> tuple[str, ...]:
    """Name what is wrong with a density that was summed or folded, at draws of the posterior."""
    if not np.isfinite(forward.run.log_weight.max()):  # the result will say so
        return ()
    position, weight = _weighted_particles(forward)
    rng = np.random.default_rng(session.seeds.sum)
    doubt = target.compiled.doubt_density(position[rng.choice(len(weight), _PARTICLES, p=weight)])
    return (doubt,) if doubt else ()


def witnesses_of(levels: Levels | None) -> tuple[Witness, ...]:
    """Return levels as a witness, if they were split to their end."""
    if levels is None or not levels.complete:
        return ()
    return (Witness("levels", levels.levels, levels.log_evidence, levels.mcse),)


def levels_of(forward: ForwardStages) -> Levels | None:
    """Return what multilevel splitting found beside the survey of a run, if it was asked."""
    return next((c.levels for c in forward.candidate.lineage if c.levels is not None), None)


def say_what_was_not_examined(
    session: Session,
    target: ModelTarget,
    fitted: FittedReference | None,
    levels: Levels | None,
    hearing: Hearing | None = None,
) -> str:
    """Say which modes nothing has looked for; "" if there is nothing to find."""
    compiled = target.compiled
    one_mode = len(compiled.unimodal_columns) == compiled.ndim or is_log_concave_model(
        compiled.model
    )
    if one_mode or not likelihood_has_parents(compiled):
        return ""
    return _say_of_modes(session, target, fitted, levels) + _say_of_few(hearing)


def _say_of_few(hearing: Hearing | None) -> str:
    """Say which share of the posterior may have escaped the held-out particles, if they are few."""
    if hearing is None or hearing.hole.witnesses >= _FEW:
        return ""
    share = 1 - _UNSEEN ** (1 / hearing.hole.witnesses)
    return (
        f"; the held-out particles are few (effectively {hearing.hole.witnesses:.2g}): a part of "
        f"{share:.0%} may have escaped them all"
    )


def _say_of_modes(
    session: Session,
    target: ModelTarget,
    fitted: FittedReference | None,
    levels: Levels | None,
) -> str:
    """Say which modes no search and no levels have looked for."""
    compiled = target.compiled
    if fitted is None:
        return f"modes were not looked for: {_explain_no_audit(session, target)}"
    if fitted.climbs:
        odds = max(fitted.climbs // _AT_LEAST_ONCE, 2)
        few = f" ({fitted.effort:.0%} of the usual search, since an evaluation takes long)"
        return (
            f"a mode to which fewer than 1 in {odds} draws of the prior climb may be missed"
            f"{few if fitted.effort < 1 else ''}"
        )
    if compiled.derivatives.order == SMOOTH:
        return f"a mode that the survey passed by may be missed: {compiled.ndim} dimensions"
    if levels is None:
        return (
            "a mode that the survey passed by may be missed: no second derivatives to search with, "
            "and levels, predicted to take more than seconds, only by audit='levels'"
        )
    if not levels.complete:
        return f"a mode may be missed: levels ended unfinished at {levels.evaluations} evaluations"
    return "a narrow mode may be missed: no second derivatives to search with"


def _explain_no_audit(session: Session, target: ModelTarget) -> str:
    """Say why the modes of a finished run were not looked for."""
    if session.settings.audit == "off":
        return "audit='off'"
    if session.settings.fixed_steps is not None:
        return "the number of steps was given"
    lacking = target.compiled.lacking
    return f"the search takes {lacking}" if lacking else "no mixture could be fitted"


def modes_dataset(target: ModelTarget, audit: ModeAudit) -> xr.Dataset:
    """Return the table of modes: the model's variables at each, log mass and shares."""
    free = {v.name for v in target.compiled.variables}
    values = target.compiled.constrain(audit.centre)
    columns = {
        "mode_log_mass": audit.log_mass,
        "mode_share": audit.share,
        "mode_share_mcse": audit.share_mcse,
        "mode_share_of_run": audit.among_draws,
    }
    here = {name: value for name, value in values.items() if name in free}
    return target.named({**here, **columns}, ("mode",))


def _fit_to_run(
    session: Session, target: ModelTarget, forward: ForwardStages
) -> FittedReference | None:
    """Fit a mixture to the particles of a planned run."""
    pilot, planned = forward.pilot, session.settings.fixed_steps is None
    if pilot is None or not planned or not may_have_mixture(target.compiled):
        return None
    seed_draws, seed_fit = session.seeds.audit.spawn(2)
    position, weight = _weighted_particles(forward)
    rng = np.random.default_rng(seed_draws)
    particles = position[rng.choice(len(weight), size=_PARTICLES, p=weight)]
    with session.display.busy("Audit", "searching for further modes"):
        budget = pilot.evaluations
        fit = partial(fit_to_particles, target.compiled, particles, seed_fit, budget)
        return session.meter.run("Audit", fit)


def _weighted_particles(forward: ForwardStages) -> tuple[np.ndarray, np.ndarray]:
    """Return the particles of the run, shape ``(n, d)``, and their normalised weights."""
    position = forward.run.position
    weight = normalised(forward.run.log_weight.ravel())
    return position.reshape(len(weight), position.shape[2]), weight

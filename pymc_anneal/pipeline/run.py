"""One call, from top to bottom.

    choose start and path  ->  pilot  ->  trial, plan  ->  counted run  ->  reverse run
                           ->  mode audit

Only the choices and the pilot adapt. Whatever is counted runs with a frozen schedule and frozen
kernels on random streams of its own, so that the estimate of Z is unbiased.
"""

from dataclasses import dataclass, replace

import xarray as xr

from pymc_anneal.adaptation.configurations import Configurations
from pymc_anneal.adaptation.fitted_reference import FittedReference
from pymc_anneal.adaptation.flat_likelihood import FlatLikelihoodError
from pymc_anneal.base.contracts import Transition
from pymc_anneal.evidence.ais import highest_log_evidence
from pymc_anneal.evidence.witness import Witness
from pymc_anneal.execution.blocks import AnnealedRun
from pymc_anneal.pipeline.audit import (
    audit_run,
    doubt_density,
    doubt_run,
    fit_for_audit,
    hear_about_run,
    levels_of,
    modes_dataset,
    nothing_to_miss,
    say_what_was_not_examined,
    witnesses_of,
)
from pymc_anneal.pipeline.choose_start import choose_start
from pymc_anneal.pipeline.choose_transition import walk_along_steps
from pymc_anneal.pipeline.counted_run import ForwardStages, count
from pymc_anneal.pipeline.explain_infinite import explaining_infinite
from pymc_anneal.pipeline.hear_witnesses import Hearing
from pymc_anneal.pipeline.look_at_configurations import (
    doubt_by_configurations,
    hear_about_configurations,
    look_at_configurations,
    say_what_configurations_left_out,
    witnesses_by_configurations,
)
from pymc_anneal.pipeline.model_target import ModelTarget
from pymc_anneal.pipeline.options import Options
from pymc_anneal.pipeline.path_choice import PathRequest
from pymc_anneal.pipeline.reverse import Reverse, run_reverse
from pymc_anneal.pipeline.reverse_start import ReverseStart
from pymc_anneal.pipeline.session import Session, explaining_nan
from pymc_anneal.pipeline.settings import pilot_required
from pymc_anneal.pipeline.target import Choice, RunCandidate, Target
from pymc_anneal.pipeline.trial import plan_run


@dataclass(frozen=True)
class Stages:
    """Results of all stages of a run.

    Attributes
    ----------
    target : Target
        The target in the coordinates of the run.
    reference_choice, path_choice : Choice
    forward : ForwardStages
        Pilot, plan and counted run.
    reverse : Reverse or None
    interrupted : bool
        Whether the reverse run was stopped, before or after its first block, or the audit.
    modes : Dataset or None
        Table of the modes of the posterior; None if they were not looked for.
    audited : FittedReference or None
        The mixture of these modes.
    doubts : tuple of str
        Doubts of the audit.
    hearing : Hearing or None
        What the held-out particles of the survey said of the run; None without a survey.
    configurations : Configurations or None
        Those of the discrete variables, if they were looked for.
    witnesses : tuple of Witness
        Those that do not come with these results.
    limits : str
        Which modes nothing has looked for; "" if there are no others.
    """

    target: Target
    reference_choice: Choice
    path_choice: Choice
    forward: ForwardStages
    reverse: Reverse | None = None
    interrupted: bool = False
    modes: xr.Dataset | None = None
    audited: FittedReference | None = None
    doubts: tuple[str, ...] = ()
    hearing: Hearing | None = None
    configurations: Configurations | None = None
    witnesses: tuple[Witness, ...] = ()
    limits: str = ""

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Both choices."""
        return self.reference_choice, self.path_choice


def run_model(session: Session, target: ModelTarget, options: Options) -> Stages:
    """Choose start and path for a model, then run all stages.

    Along flat steps of the likelihood there is no gradient to move by: random walks take its place.

    Raises
    ------
    ValueError
        Levels are asked for, and there is no survey.
    """
    try:
        return _run_model(session, target, options)
    except FlatLikelihoodError as error:
        compiled, kernel = walk_along_steps(target.compiled, options.transition, error)
        target, options = replace(target, compiled=compiled), replace(options, transition=kernel)
        return run_model(replace(session, target=target), target, options)


def _run_model(session: Session, target: ModelTarget, options: Options) -> Stages:
    """Choose start and path for a model, then run all stages."""
    with explaining_nan(target):
        found = look_at_configurations(session, target.compiled)
    start = choose_start(session, target, options, found)
    session, target = replace(session, target=start.target), start.target
    with explaining_nan(target), explaining_infinite(target):
        first, transition = start.choice.chosen, start.transition
        asked = PathRequest(session, first, transition, options.moments_from)
        paths = options.path.build(asked)
        back = options.reverse_from
        stages = run_candidate(session, paths.chosen, transition, start.choice, paths, back)
        stages = replace(stages, configurations=found)
        if stages.forward.run.interrupted:
            return stages
        try:
            return _audited(session, target, stages)
        except KeyboardInterrupt:
            return replace(stages, interrupted=True)


def _audited(session: Session, target: ModelTarget, stages: Stages) -> Stages:
    """Return the stages with the doubts of the witnesses, and what these could not see."""
    stages = replace(stages, doubts=doubt_density(session, target, stages.forward))
    if nothing_to_miss(target, stages.forward):
        return stages
    if session.settings.audit == "off":
        return replace(stages, limits=say_what_was_not_examined(session, target, None, None))
    if target.compiled.discrete:
        return _audited_by_configurations(session, target, stages)
    forward = stages.forward
    fitted, levels = fit_for_audit(session, target, forward), levels_of(forward)
    audit = audit_run(fitted, forward) if fitted else None
    hearing = hear_about_run(session, target, forward)
    return replace(
        stages,
        modes=modes_dataset(target, audit) if audit else None,
        audited=fitted,
        doubts=(*stages.doubts, *doubt_run(target, forward, audit, hearing)),
        hearing=hearing,
        witnesses=witnesses_of(levels),
        limits=say_what_was_not_examined(session, target, fitted, levels, hearing),
    )


def _audited_by_configurations(session: Session, target: ModelTarget, stages: Stages) -> Stages:
    """Return the stages of a model with discrete variables with what its configurations say."""
    forward, found, compiled = stages.forward, stages.configurations, target.compiled
    hearing = hear_about_configurations(session, forward)
    doubts = doubt_run(target, forward, None, hearing)
    most = highest_log_evidence(forward.run.log_weight)
    doubts += doubt_by_configurations(found, most)
    return replace(
        stages,
        doubts=(*stages.doubts, *doubts),
        hearing=hearing,
        witnesses=witnesses_by_configurations(found),
        limits=say_what_configurations_left_out(session, compiled, found, most),
    )


def run_candidate(
    session: Session,
    candidate: RunCandidate,
    transition: Transition,
    reference_choice: Choice | None = None,
    path_choice: Choice | None = None,
    reverse_from: ReverseStart | None = None,
) -> Stages:
    """Run all stages along the path of a candidate: pilot, plan, counted run, reverse run."""
    forward = run_forward(session, candidate, transition)
    only = Choice(candidate, {})
    reverse, interrupted = _run_reverse(session, forward, reverse_from)
    return Stages(
        session.target,
        reference_choice or only,
        path_choice or only,
        forward,
        reverse,
        interrupted,
    )


def run_forward(session: Session, candidate: RunCandidate, transition: Transition) -> ForwardStages:
    """Run pilot, trials, plan and counted run along the path of a candidate.

    Its pilot is used if it has one; parameters of the transition that are None are tuned by it.
    """
    settings, pilot = session.settings, candidate.pilot
    if pilot is None and pilot_required(settings, transition):
        pilot = session.pilot(candidate, transition, session.seeds.pilot)
    tuned = transition if pilot is None else pilot.transition
    plan, trials = None, tuple[AnnealedRun, ...]()
    if pilot is not None and settings.fixed_steps is None:
        plan, trials = plan_run(session, candidate, pilot)
    run = count(session, candidate, pilot, plan, tuned)
    return ForwardStages(candidate, pilot, plan, tuned, run, trials)


def _run_reverse(
    session: Session, forward: ForwardStages, start: ReverseStart | None
) -> tuple[Reverse | None, bool]:
    """Run backwards if asked to; stopped before its first block, keep the forward run."""
    if start is None or forward.run.interrupted:
        return None, False
    try:
        reverse = run_reverse(session, forward, start)
    except KeyboardInterrupt:
        return None, True
    return reverse, reverse.run.interrupted

"""The trial: a frozen run of one block, which measures the variance of the log weights.

It is not counted. With the real transitions the variance is larger than for perfect ones; the plan
of steps and particles is based on the measured variance.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from pymc_anneal.adaptation.pilot import Pilot
from pymc_anneal.adaptation.plan import NEAR, Plan, make_plan, trial_steps
from pymc_anneal.evidence.diagnostics import log_weight_variance
from pymc_anneal.execution.blocks import AnnealedRun
from pymc_anneal.pipeline.rounds import (
    MAX_GROWTH,
    build_schedule,
    make_run_blocks,
    path_lengths,
)
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.settings import Settings
from pymc_anneal.pipeline.target import Choice, RunCandidate, spent_evaluations

# Trials until the log weights are even enough to plan by.
_MAX_TRIALS = 4
# Variance of the log weights above which its estimate is too rough to plan by.
_MAX_TRIAL_VARIANCE = 3.0
# Bounds on the variance of the log weights of a run from a fitted reference: tails that the fit
# missed need a few steps, and below the lower bound a longer run gains nothing.
_NEAR_VARIANCE, _LEAST_VARIANCE = 0.5, 0.05


def plan_run(
    session: Session, candidate: RunCandidate, pilot: Pilot
) -> tuple[Plan, tuple[AnnealedRun, ...]]:
    """Plan steps and particles from trials: blocks annealed like those of the counted run.

    No trial is needed if the reference is near: its fit has measured the variance of one step.

    Returns
    -------
    plan : Plan
    trials : tuple of AnnealedRun
        Each longer than the one before; the plan follows from the last.
    """
    if candidate.one_step_variance <= NEAR:
        return _plan_from_fit(session.settings, candidate, pilot), ()
    trials = _run_trials(session, candidate, pilot)
    plan = session.log.stage("Plan", partial(_plan_from, session.settings, pilot, trials[-1]))
    return plan, tuple(trials)


def _plan_from_fit(settings: Settings, candidate: RunCandidate, pilot: Pilot) -> Plan:
    """Plan a run from a reference near the posterior, not shorter than what came before it.

    The error falls with the length of the run: a shorter one would waste the adaptation.
    """
    spent = spent_evaluations((Choice(candidate, {}),), pilot)
    particles = settings.draws * settings.chains
    single = candidate.one_step_variance
    bounds = single / _NEAR_VARIANCE, single / _LEAST_VARIANCE
    steps = np.clip(spent / (particles * float(pilot.cost[-1])), *bounds)
    plan = _make_plan(settings, pilot, variance=single, steps=1, seconds=0.0)
    return replace(plan, steps=max(plan.steps, int(np.ceil(steps))))


def _run_trials(session: Session, candidate: RunCandidate, pilot: Pilot) -> list[AnnealedRun]:
    """Run a block with more and more steps until its log weights are even enough to plan by."""
    trials: list[AnnealedRun] = []
    steps = trial_steps(pilot)
    for seed in session.seeds.trial.spawn(_MAX_TRIALS):
        betas = build_schedule(session.settings, steps, path_lengths(pilot))
        blocks = make_run_blocks(session, candidate, pilot.transition, betas, 1, seed)
        trials.append(session.anneal("Trial", blocks))
        variance = log_weight_variance(trials[-1].log_weight)
        if variance <= _MAX_TRIAL_VARIANCE:
            break
        steps = int(np.ceil(steps * min(variance, MAX_GROWTH)))
    return trials


def _plan_from(settings: Settings, pilot: Pilot, trial: AnnealedRun) -> Plan:
    variance = log_weight_variance(trial.log_weight)
    seconds = trial.seconds / (trial.steps * trial.particles)
    return _make_plan(settings, pilot, variance=variance, steps=trial.steps, seconds=seconds)


def _make_plan(
    settings: Settings, pilot: Pilot, *, variance: float, steps: int, seconds: float
) -> Plan:
    """Plan a run from the variance of ``steps`` steps and the seconds of one of one particle."""
    return make_plan(
        variance=variance,
        steps=steps,
        fixed_steps=settings.fixed_steps,
        particles=settings.draws * settings.chains,
        target_mcse=settings.target_mcse,
        log_reference_mass=pilot.log_reference_mass,
        seconds=seconds,
        budget_seconds=60 * settings.max_minutes,
    )

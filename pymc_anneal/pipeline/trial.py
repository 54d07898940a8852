"""The trial: a frozen run of one block, which measures the variance of the log weights.

It is not counted. With the real transitions the variance is larger than for perfect ones; the plan
of steps and particles is based on the measured variance.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from pymc_anneal.adaptation.pilot import Pilot
from pymc_anneal.adaptation.plan import Plan, make_plan, trial_steps
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
from pymc_anneal.pipeline.target import RunCandidate

# Trials until the log weights are even enough to plan by.
_MAX_TRIALS = 4
# Variance of the log weights above which its estimate is too rough to plan by.
_MAX_TRIAL_VARIANCE = 3.0


def plan_run(session: Session, candidate: RunCandidate, pilot: Pilot) -> Plan:
    """Plan steps and particles from a trial: a block annealed like those of the counted run."""
    trials = _run_trials(session, candidate, pilot)
    return session.log.stage("Plan", partial(_plan_from, session.settings, pilot, trials))


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


def _plan_from(settings: Settings, pilot: Pilot, trials: list[AnnealedRun]) -> Plan:
    trial = trials[-1]
    plan = make_plan(
        variance=log_weight_variance(trial.log_weight),
        steps=trial.steps,
        fixed_steps=settings.fixed_steps,
        particles=settings.draws * settings.chains,
        target_mcse=settings.target_mcse,
        log_reference_mass=pilot.log_reference_mass,
        seconds=trial.seconds / (trial.steps * trial.particles),
        budget_seconds=60 * settings.max_minutes,
    )
    return replace(plan, evaluations=sum(t.evaluations for t in trials))

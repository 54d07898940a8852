"""Trials: frozen runs of one block, which measure what the plan of the counted run follows from.

A trial is not counted. With the real transitions the variance of the log weights is larger than for
perfect ones, their tail may be heavier than that of a normal distribution, and the transitions may
lag behind the path. As long as one of these spoils a trial, a longer one follows; the plan of steps
and particles is based on the last, and is longer than those that were spoilt. Where many times the
steps leave the weights as uneven as before, the transitions are stuck, and the plan is as short as
the first trial. So all growth lies before the counted run, which is made once.
"""

import warnings

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from pymc_anneal.adaptation.fitted_reference import normalised
from pymc_anneal.adaptation.pilot import Pilot
from pymc_anneal.adaptation.plan import NEAR, NEAR_VARIANCE, RUN_SHARE, Plan, make_plan, trial_steps
from pymc_anneal.base.caller import levels_to_caller
from pymc_anneal.evidence.agreement import HARMLESS_BIAS, Estimate, lag
from pymc_anneal.evidence.diagnostics import (
    leaves_error_unknown,
    log_weight_variance,
    weight_pareto_k,
)
from pymc_anneal.evidence.heavy_tail import estimate_with_tail
from pymc_anneal.execution.blocks import AnnealedRun
from pymc_anneal.pipeline.counted_run import build_schedule, make_run_blocks, path_lengths
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.target import RunCandidate
from pymc_anneal.transitions.independence import IndependenceMetropolis
from pymc_anneal.transitions.stay import Stay

# Trials at most; the law of the variance, 1/K, reaches any number of steps in two or three.
_MAX_TRIALS = 5
# Variance of the log weights above which its estimate is too rough to plan by.
_MAX_TRIAL_VARIANCE = 3.0
# Bounds on the growth of the number of steps from one trial to the next.
_MIN_GROWTH, _MAX_GROWTH = 2.0, 8.0
# Variance of a trial, and predicted error in nats, above which no run is of use: kernels are stuck.
_HOPELESS_GROWTH, _HOPELESS_ERROR = 1e6, 3.0
# Steps, in those of the first trial, with which the variance, which falls as 1/K, has to be below
# this share of the first, or the transitions are stuck: of a sine without noise and random walks it
# was 5.1, 6.2, 4.6 with 1, 5, 32 times the steps. Of 53 other runs no trial was above 8 times.
_STUCK_GROWTH, _STUCK_SHARE = 16, 0.5
# Share of the time that is left that a trial may take.
_TRIAL_SHARE = 0.5
_HOPELESS = (
    "By its trial a run would have an error of {:.2g} nats in all the time there is, so it is as "
    "short as the trial. Narrower priors may help, or variables on another scale."
)
_STUCK = (
    "A trial of {} times the steps had weights as uneven as one of {}: the moves do not join the "
    "parts of the posterior, and the run is as short as the first trial. Another "
    "parametrisation may help, or `transition`."
)
# Share of the posterior draws of importance sampling that are copied by chance at most, and the
# largest number of particles for each draw.
_WITHOUT_COPIES, _LARGEST_POOL = 0.95, 4.0
# Variance of the log weights of a run from a fitted reference below which a longer one gains
# nothing.
_LEAST_VARIANCE = 0.05
# Steps with proposals from the reference as moves. Of eight schools, they leave no weight above
# twice the mean in 8 of 8 runs, where one step leaves a Pareto k of 0.5 to 1.3.
_STEPS_WITH_PROPOSALS = 6


def plan_run(
    session: Session, candidate: RunCandidate, pilot: Pilot
) -> tuple[Plan, tuple[AnnealedRun, ...]]:
    """Plan steps and particles from trials: blocks annealed like those of the counted run.

    Black boxes whose calls leave no time for a trial are planned by the fit of a reference that is
    near, or by the pilot.

    Returns
    -------
    plan : Plan
    trials : tuple of AnnealedRun
        Each longer than the one before; the plan follows from the last.
    """
    if isinstance(pilot.transition, Stay):  # The fit has measured the weights themselves.
        return _plan_importance_sampling(session, candidate, pilot), ()
    kept = partial(session.log.stage, "Plan")
    # Near the posterior, the fit of the reference has measured the variance of one step.
    near = candidate.one_step_variance <= NEAR
    fitted = kept(partial(_plan_from_fit, session, candidate, pilot)) if near else None
    steps = fitted.steps if fitted else trial_steps(pilot)
    trials: list[AnnealedRun] = []
    if _has_time(session, pilot, steps):
        trials = _run_trials(session, candidate, pilot, steps)
        least = fitted.steps if fitted else 1
        plan = kept(partial(_plan_from_trials, session, pilot, trials, least))
    else:
        plan = fitted or kept(partial(_plan_from_pilot, session, pilot))
    overrun = session.call_budget.describe_overrun(plan.predicted_seconds)
    if overrun:
        warnings.warn(overrun, stacklevel=levels_to_caller())
    return replace(plan, note=" ".join(filter(None, (plan.note, overrun)))), tuple(trials)


def _plan_from_fit(session: Session, candidate: RunCandidate, pilot: Pilot) -> Plan:
    """Plan a run from a reference near the posterior, in proportion to what came before it.

    The error falls with the length of the run: a much shorter one would waste the adaptation.
    """
    spent = session.meter.evaluations_of_density
    particles = session.settings.draws * session.settings.chains
    single = candidate.one_step_variance
    bounds = single / NEAR_VARIANCE, single / _LEAST_VARIANCE
    steps = np.clip(RUN_SHARE * spent / (particles * float(pilot.cost[-1])), *bounds)
    # Proposals from the reference leave its tails in a few steps, and more would gain little.
    if isinstance(pilot.transition, IndependenceMetropolis):
        steps = _STEPS_WITH_PROPOSALS
    plan = _make_plan(session, pilot, variance=single, steps=1, seconds=0.0)
    wanted = max(plan.steps, int(np.ceil(steps)))
    seconds = _step_seconds(session, pilot) * plan.particles
    affordable = session.call_budget.counted_seconds / max(seconds, 1e-12)
    planned = max(1, int(min(wanted, affordable)))
    note = _describe_cut(session, replace(plan, steps=wanted), planned, plan.particles)
    return replace(plan, steps=planned, predicted_seconds=seconds * planned, note=note)


def _plan_importance_sampling(session: Session, candidate: RunCandidate, pilot: Pilot) -> Plan:
    """Plan a run of one step, with particles enough for draws of the posterior without copies.

    Systematic resampling copies a particle whose weight is above the mean of those drawn.
    """
    assert candidate.fitted is not None
    plan = _make_plan(session, pilot, variance=candidate.fitted.discrepancy, steps=1, seconds=0.0)
    weight = np.sort(normalised(candidate.fitted.log_ratio_draws))
    heavy = weight[np.searchsorted(np.cumsum(weight), _WITHOUT_COPIES)]
    pool = np.clip(heavy * len(weight), 1.0, _LARGEST_POOL)
    draws = session.settings.draws * session.settings.chains
    return replace(plan, steps=1, particles=max(plan.particles, int(np.ceil(pool * draws))))


def _step_seconds(session: Session, pilot: Pilot) -> float:
    """Return the time of the calls of one step of one particle; 0 for a model in JAX."""
    return (session.call_budget.seconds_per_evaluation or 0.0) * float(pilot.cost.mean())


def _has_time(session: Session, pilot: Pilot, steps: int) -> bool:
    """Whether a trial takes no more than its share of the time for calls of black boxes."""
    if session.call_budget.seconds_per_evaluation is None:
        return True
    particles = session.settings.block_draws * session.settings.chains
    evaluations = particles * steps * float(pilot.cost.mean())
    return session.log.stage(
        "Time", lambda: evaluations <= _TRIAL_SHARE * session.call_budget.evaluations
    )


def _run_trials(
    session: Session, candidate: RunCandidate, pilot: Pilot, steps: int
) -> list[AnnealedRun]:
    """Run a block with more and more steps until its weights are fit to plan by."""
    trials: list[AnnealedRun] = []
    for seed in session.seeds.trial.spawn(_MAX_TRIALS):
        betas = build_schedule(session.settings, steps, path_lengths(pilot))
        blocks = make_run_blocks(session, candidate, pilot.transition, betas, 1, seed)
        trials.append(session.anneal_fully("Trial", blocks))
        growth = session.log.stage("Growth", partial(_affordable_growth, session, trials))
        if growth == 1:
            break
        steps = int(np.ceil(steps * growth))
    return trials


def _affordable_growth(session: Session, trials: Sequence[AnnealedRun]) -> float:
    """Return how many times longer the next trial is; 1 if the last one will do.

    A trial that would take more than its share of the time, or is hopeless, is not begun.
    """
    hopeless = _HOPELESS_GROWTH < log_weight_variance(trials[-1].log_weight) < np.inf
    if hopeless or _are_stuck(trials):
        return 1.0
    growth = min(_needed_growth(session.settings.target_mcse, trials), _MAX_GROWTH)
    time = _TRIAL_SHARE * session.call_budget.counted_seconds
    return growth if growth * trials[-1].seconds <= time else 1.0


def _are_stuck(trials: Sequence[AnnealedRun]) -> bool:
    """Whether the weights of the last trial are as uneven as those of a much shorter first one."""
    first, last = (log_weight_variance(trial.log_weight) for trial in (trials[0], trials[-1]))
    much_longer = trials[-1].steps >= _STUCK_GROWTH * trials[0].steps
    return bool(much_longer and max(_MAX_TRIAL_VARIANCE, _STUCK_SHARE * first) < last < np.inf)


def _needed_growth(target_mcse: float, trials: Sequence[AnnealedRun]) -> float:
    """Return how many times the steps of the last trial would make it fit to plan by."""
    last = trials[-1]
    variance = log_weight_variance(last.log_weight)
    heavy = leaves_error_unknown(last.log_weight, weight_pareto_k(last.log_weight))
    growth = _growth_against_lag(trials, target_mcse)
    if variance > _MAX_TRIAL_VARIANCE:
        growth = max(growth, variance)
    return max(growth, _MIN_GROWTH) if growth > 1 or heavy else 1.0


def _growth_against_lag(trials: Sequence[AnnealedRun], mcse: float) -> float:
    """Return how many times the steps would make the bias by a lag harmless; 1 if it is.

    With the number of steps the bias falls in proportion, the error in proportion to its root.
    """
    found = lag(trial_estimates(trials))
    if found is None or not found.matters(mcse):
        return 1.0
    return (found.bias / (HARMLESS_BIAS * mcse)) ** 2


def trial_estimates(trials: Sequence[AnnealedRun]) -> list[Estimate]:
    """Return the estimates of trials, each with its number of steps."""
    return [estimate_with_tail("a trial", t.log_weight, t.steps) for t in trials]


def _plan_from_trials(
    session: Session, pilot: Pilot, trials: Sequence[AnnealedRun], least_steps: int
) -> Plan:
    """Plan a run longer than the trials that were too short; as short as the first if stuck."""
    if _are_stuck(trials):
        note = _STUCK.format(trials[-1].steps // trials[0].steps, trials[0].steps)
        return _plan_from_trial(session, pilot, trials[0], 1, note)
    after_short = [int(_MIN_GROWTH * trial.steps) for trial in trials[:-1]]
    return _plan_from_trial(session, pilot, trials[-1], max([least_steps, *after_short]))


def _plan_from_trial(
    session: Session, pilot: Pilot, trial: AnnealedRun, least_steps: int, stuck: str = ""
) -> Plan:
    """Plan a run of at least some steps from a trial; no longer than it where it is stuck."""
    variance = log_weight_variance(trial.log_weight)
    if not np.isfinite(variance):
        raise ValueError(
            f"Of {trial.particles} particles of a trial at most one ended where the likelihood is "
            f"not zero, which is about {np.exp(pilot.log_reference_mass):.1g} of the prior: no run "
            "from there would end. Move or narrow the prior to where the likelihood is not zero, "
            "or soften the bounds (a normal error in place of a uniform one)."
        )
    # A trial of a step or two is compiled while it runs, and that time does not count.
    measured = trial.seconds / (trial.steps * trial.particles)
    return _make_plan(
        session,
        pilot,
        variance=variance,
        steps=trial.steps,
        seconds=max(measured, _step_seconds(session, pilot)),
        least_steps=least_steps,
        stuck=stuck,
    )


def _plan_from_pilot(session: Session, pilot: Pilot) -> Plan:
    """Plan a run by the pilot's prediction: a variance of one."""
    seconds, steps = _step_seconds(session, pilot), trial_steps(pilot)
    plan = _make_plan(session, pilot, variance=1.0, steps=steps, seconds=seconds)
    note = "`max_minutes` left no time for a trial: the plan follows from the pilot alone."
    return replace(plan, note=f"{note} {plan.note}".strip())


def _make_plan(
    session: Session,
    pilot: Pilot,
    *,
    variance: float,
    steps: int,
    seconds: float,
    least_steps: int = 1,
    stuck: str = "",
) -> Plan:
    """Plan a run from the variance of ``steps`` steps and the seconds of one of one particle.

    Where it says why the particles are ``stuck``, or no run is of use, these steps are enough.
    """
    settings = session.settings
    draws = settings.draws * settings.chains
    within = partial(
        make_plan,
        variance=variance,
        steps=steps,
        least_steps=least_steps,
        particles=draws,
        target_mcse=settings.target_mcse,
        log_reference_mass=pilot.log_reference_mass,
        seconds=seconds,
    )
    time, as_trial = session.call_budget.counted_seconds, seconds * steps * draws
    wanted, plan = within(), within(budget_seconds=time)
    long = wanted.steps > _HOPELESS_GROWTH * steps
    if as_trial < time and (stuck or long or plan.predicted_mcse > _HOPELESS_ERROR):
        plan = within(budget_seconds=as_trial)
        return replace(plan, note=stuck or _HOPELESS.format(plan.predicted_mcse))
    return replace(plan, note=_describe_cut(session, wanted, plan.steps, plan.particles))


def _describe_cut(session: Session, wanted: Plan, steps: int, particles: int) -> str:
    """Say what of a wanted plan was cut to the budget of time; "" if nothing was."""
    if (steps, particles) == (wanted.steps, wanted.particles):
        return ""
    return (
        f"`max_minutes` = {session.settings.max_minutes:g} cut the plan from {wanted.steps} steps "
        f"of {wanted.particles} particles to {steps} of {particles}."
    )

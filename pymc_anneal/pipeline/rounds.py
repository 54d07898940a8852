"""Stages of a run: pilot, trial, plan, counted rounds.

Only the pilot adapts while it runs. The trial is frozen and not counted; it measures what the
transitions make of the schedule. The counted rounds are frozen, each with streams of its own.
"""

import time

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pymc_anneal.adaptation.pilot import Pilot, run_pilot
from pymc_anneal.adaptation.plan import Plan, effective_length, make_plan, refine, trial_steps
from pymc_anneal.adaptation.tuning import needs_pilot
from pymc_anneal.annealing.step_statistics import discrepancies
from pymc_anneal.base.contracts import Transition
from pymc_anneal.evidence.ais import ais, combined_log_weights, population_means
from pymc_anneal.evidence.diagnostics import MAX_PARETO_K, log_weight_variance, weight_pareto_k
from pymc_anneal.execution.blocks import AnnealedRun, spaced_rungs
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.settings import Options
from pymc_anneal.schedules.named import FromPilot
from pymc_anneal.schedules.validate import check_schedule

_MAX_TRIALS = 4


_TRUSTED_VARIANCE = 3.0  # above it a trial's variance is itself too rough to plan by


_MAX_GROWTH = 8.0  # of the number of steps from one round to the next


class Survey(NamedTuple):
    """Effective length of the path between temperatures: what a variational schedule needs."""

    betas: np.ndarray
    length: np.ndarray


@dataclass(frozen=True)
class Outcome:
    """What all stages left; ``pilot`` and ``plan`` are None where there was no need of them."""

    pilot: Pilot | None
    plan: Plan | None
    rounds: list[AnnealedRun]
    transition: Transition

    @property
    def log_weight(self) -> np.ndarray:
        """Log weights of all rounds, pooled, shape ``(chains, particles)``."""
        weights = [r.log_weight for r in self.rounds]
        return combined_log_weights(weights, [r.steps * r.particles for r in self.rounds])

    @property
    def evaluations(self) -> int:
        """Evaluations of gradient or density of all stages."""
        stages = [self.pilot, self.plan, *self.rounds]
        return sum(stage.evaluations for stage in stages if stage is not None)

    @property
    def round(self) -> np.ndarray:
        """Round of each particle, from 1, shape ``(particles,)``."""
        return np.repeat(
            np.arange(len(self.rounds)) + 1, [len(r.log_weight[0]) for r in self.rounds]
        )


def run_rounds(session: Session, kernel: Transition, pilot: Pilot | None = None) -> Outcome:
    """Run all stages.

    Parameters
    ----------
    session
        Model, path, options.
    kernel
        The transition; its parameters that are None are tuned.
    pilot
        The pilot, if it has been run already.

    Returns
    -------
    Outcome
    """
    options = session.options
    _, seed_trial, seed_rounds = session.seed.spawn(3)
    if pilot is None and _needs_pilot(options, kernel):
        pilot = survey(session, kernel, session.pilot_seed)
    transition = kernel if pilot is None else pilot.transition
    steps, particles, plan = options.fixed_steps or 0, options.draws * options.chains, None
    if pilot is not None and options.fixed_steps is None:
        plan = plan_run(session, pilot, seed_trial)
        steps, particles = plan.steps, plan.particles
    rounds = _counted_rounds(session, pilot, transition, steps, particles, seed_rounds)
    return Outcome(pilot, plan, rounds, transition)


def _counted_rounds(
    session: Session,
    pilot: Pilot | None,
    transition: Transition,
    steps: int,
    particles: int,
    seed: np.random.SeedSequence,
) -> list[AnnealedRun]:
    """Run rounds, each longer than the one before, until the error is as wanted."""
    options, begin = session.options, time.perf_counter()
    surveyed = None if pilot is None else Survey(pilot.betas, effective_length(pilot))
    rounds: list[AnnealedRun] = []
    for number, child in enumerate(seed.spawn(options.max_rounds), start=1):
        betas = _schedule(options, steps, surveyed)
        name = "Annealing" if number == 1 else f"Round {number}"
        try:
            blocks = session.blocks(transition, betas, particles, child)
            extra = _recorded(options, len(betas) - 1, pilot)
            rounds.append(session.run(name, [replace(b, **extra) for b in blocks]))
        except KeyboardInterrupt:
            if not rounds:
                raise
            rounds[-1] = replace(rounds[-1], interrupted=True)  # the rounds before are whole
        seconds_left = 60 * options.max_minutes - (time.perf_counter() - begin)
        decide = partial(_growth, options, rounds[-1], seconds_left)
        growth = session.journal.stage("Growth", decide)
        if growth is None:
            break
        steps = int(np.ceil(steps * growth))
        surveyed = _refined(surveyed, pilot, rounds[-1])
    return rounds


def _recorded(options: Options, steps: int, pilot: Pilot | None) -> dict[str, Any]:
    """Where the particles are recorded; nowhere if resampling makes them depend on each other."""
    if options.resample:
        return {"resample": options.resample}
    return {"rungs": spaced_rungs(steps, pilot.barrier if pilot else np.nan)}


def _needs_pilot(options: Options, kernel: Transition) -> bool:
    laid_out = isinstance(options.schedule, FromPilot)
    return laid_out or needs_pilot(kernel) or options.fixed_steps is None


def survey(
    session: Session,
    kernel: Transition,
    seed: np.random.SeedSequence,
    max_evaluations: float = np.inf,
) -> Pilot:
    """Run the pilot from draws of the reference."""
    seed_start, seed_run = seed.spawn(2)
    n = max(session.options.chains * session.options.block_draws, 256)

    def run() -> Pilot:
        position = session.draw_reference(seed_start, n)
        session.display.start_pilot()
        return run_pilot(
            session.path, kernel, position, seed_run, session.display.pilot, max_evaluations
        )

    return session.journal.stage("Pilot", run)


def plan_run(session: Session, pilot: Pilot, seed: np.random.SeedSequence) -> Plan:
    """Plan the counted run, from a trial."""
    trials = _trials(session, pilot, seed)
    return session.journal.stage("Plan", partial(_plan, session, pilot, trials))


def _trials(session: Session, pilot: Pilot, seed: np.random.SeedSequence) -> list[AnnealedRun]:
    """Run one block until its log weights are even enough to plan by: the last run."""
    trials: list[AnnealedRun] = []
    steps = trial_steps(pilot)
    surveyed = Survey(pilot.betas, effective_length(pilot))
    for child in seed.spawn(_MAX_TRIALS):
        betas = _schedule(session.options, steps, surveyed)
        trials.append(session.run("Trial", session.blocks(pilot.transition, betas, 1, child)))
        variance = log_weight_variance(trials[-1].log_weight)
        if variance <= _TRUSTED_VARIANCE:
            break
        steps = int(np.ceil(steps * min(variance, _MAX_GROWTH)))
    return trials


def _plan(session: Session, pilot: Pilot, trials: list[AnnealedRun]) -> Plan:
    options, trial = session.options, trials[-1]
    plan = make_plan(
        variance=log_weight_variance(trial.log_weight),
        steps=trial.steps,
        fixed_steps=options.fixed_steps,
        particles=options.draws * options.chains,
        target_mcse=options.target_mcse,
        log_reference_mass=pilot.log_reference_mass,
        seconds=trial.seconds / (trial.steps * trial.particles),
        budget_seconds=60 * options.max_minutes,
    )
    return replace(plan, evaluations=sum(t.evaluations for t in trials))


def _schedule(options: Options, steps: int, surveyed: Survey | None) -> np.ndarray:
    if isinstance(options.schedule, np.ndarray):
        return options.schedule
    if not isinstance(options.schedule, FromPilot):
        return check_schedule(options.schedule(steps))
    assert surveyed is not None  # such a schedule always has a pilot
    return options.schedule.lay_out(surveyed.betas, surveyed.length, steps, options.max_step)


def _refined(surveyed: Survey | None, pilot: Pilot | None, finished: AnnealedRun) -> Survey | None:
    """Return what a finished round says about the path."""
    if pilot is None:
        return surveyed
    d = discrepancies(finished.stats, finished.particles)
    return Survey(finished.betas, refine(finished.betas, d, pilot))


def _growth(options: Options, finished: AnnealedRun, seconds_left: float) -> float | None:
    """Return by how much to lengthen the next round, None where none is needed or possible."""
    fixed = options.fixed_steps is not None
    if fixed or finished.interrupted:
        return None
    units = population_means(finished.log_weight, finished.population_size)
    sound = not weight_pareto_k(units) > MAX_PARETO_K
    error = ais(finished.log_weight, population_size=finished.population_size).mcse
    if sound and error <= options.target_mcse:
        return None
    variance = log_weight_variance(finished.log_weight)
    growth = float(np.clip(variance / 0.25, 2.0, _MAX_GROWTH))
    return growth if growth * finished.seconds <= seconds_left else None

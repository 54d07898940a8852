"""Counted rounds: frozen schedule, frozen kernels, each round with random streams of its own."""

import time

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from pymc_anneal.adaptation.pilot import Pilot
from pymc_anneal.adaptation.plan import (
    Plan,
    effective_length,
    planned_variance,
    refine_length,
)
from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.step_statistics import discrepancies
from pymc_anneal.base.contracts import Transition
from pymc_anneal.evidence.agreement import HARMLESS_BIAS, Estimate, lag
from pymc_anneal.evidence.ais import combined_log_weights
from pymc_anneal.evidence.diagnostics import MAX_PARETO_K, log_weight_variance
from pymc_anneal.evidence.heavy_tail import ais_with_tail, estimate_with_tail
from pymc_anneal.execution.blocks import AnnealedRun, StartDraws, make_blocks, recorded_steps
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.settings import Settings
from pymc_anneal.pipeline.target import RunCandidate
from pymc_anneal.schedules.named import FromPilot
from pymc_anneal.schedules.validate import check_schedule

# Bounds on the growth of the number of steps from one round to the next.
MIN_GROWTH, MAX_GROWTH = 2.0, 8.0
# Variance at which the next round aims, as a share of what is wanted: a round follows only if the
# plan was too optimistic.
_NEXT_SHARE = 0.5


class PathLengths(NamedTuple):
    """Effective lengths of the path: the input of schedules that come from a pilot.

    Attributes
    ----------
    betas : ndarray, shape (m + 1,)
    length : ndarray, shape (m,)
    """

    betas: np.ndarray
    length: np.ndarray


class Records(NamedTuple):
    """How a counted round treats its particles on the way.

    Attributes
    ----------
    steps : ndarray of int, or None
        Numbers of steps after which particles are recorded.
    positions : bool
        Whether their positions are recorded too.
    resample : float
        Relative effective sample size below which a population is resampled; 0: never.
    """

    steps: np.ndarray | None = None
    positions: bool = False
    resample: float = 0.0


@dataclass(frozen=True)
class ForwardStages:
    """Results of the forward stages.

    Attributes
    ----------
    candidate : RunCandidate
        Reference and path of the run.
    pilot, plan : Pilot, Plan or None
        None if the stage was skipped.
    transition : Transition
        The tuned transition.
    rounds : tuple of AnnealedRun
    trials : tuple of AnnealedRun
        The runs that the plan follows from; not counted.
    """

    candidate: RunCandidate
    pilot: Pilot | None
    plan: Plan | None
    transition: Transition
    rounds: tuple[AnnealedRun, ...]
    trials: tuple[AnnealedRun, ...] = ()

    @property
    def last(self) -> AnnealedRun:
        """The last round."""
        return self.rounds[-1]

    @property
    def log_weight(self) -> np.ndarray:
        """Log weights of all rounds, pooled, shape ``(chains, particles)``."""
        weights = [r.log_weight for r in self.rounds]
        return combined_log_weights(weights, [r.steps * r.particles for r in self.rounds])

    @property
    def round_of_particle(self) -> np.ndarray:
        """Round of each particle, from 1, shape ``(particles,)``."""
        counts = [r.log_weight.shape[1] for r in self.rounds]
        return np.repeat(np.arange(len(counts)) + 1, counts)

    @property
    def evaluations(self) -> int:
        """Evaluations of gradient or density of trials and rounds."""
        return sum(run.evaluations for run in (*self.trials, *self.rounds))


def run_rounds(
    session: Session,
    candidate: RunCandidate,
    pilot: Pilot | None,
    plan: Plan | None,
    transition: Transition,
    trials: Sequence[AnnealedRun] = (),
) -> list[AnnealedRun]:
    """Run rounds, each longer than the one before, until the error is as wanted.

    Trials and earlier rounds show whether the transitions lag behind the path.
    """
    settings, begin = session.settings, time.perf_counter()
    seconds = session.call_budget.counted_seconds
    steps = plan.steps if plan else settings.fixed_steps or 0
    particles = plan.particles if plan else settings.draws * settings.chains
    lengths = None if pilot is None else path_lengths(pilot)
    rounds: list[AnnealedRun] = []
    for number, seed in enumerate(session.seeds.rounds.spawn(settings.max_rounds), start=1):
        betas = build_schedule(settings, steps, lengths)
        name = "Annealing" if number == 1 else f"Round {number}"
        try:
            records = _records(settings, betas, pilot)
            blocks = make_run_blocks(
                session, candidate, transition, betas, particles, seed, records
            )
            rounds.append(session.anneal(name, blocks))
        except KeyboardInterrupt:
            if not rounds:
                raise
            rounds[-1] = replace(rounds[-1], interrupted=True)  # earlier rounds are complete
        seconds_left = seconds - (time.perf_counter() - begin)
        grow = partial(_growth, settings, [*trials, *rounds], seconds_left)
        growth = session.log.stage("Growth", grow)
        if growth is None:
            break
        steps = int(np.ceil(steps * growth))
        if pilot is not None:
            lengths = _refined_lengths(pilot, rounds[-1])
    return rounds


def make_run_blocks(
    session: Session,
    candidate: RunCandidate,
    transition: Transition,
    betas: np.ndarray,
    particles: int,
    seed: np.random.SeedSequence,
    records: Records | None = None,
) -> list[Block]:
    """Return blocks of at least ``particles`` particles, each with draws of its own to start.

    A run from target to reference takes the schedule backwards, with reversed transitions.
    """
    settings, records = session.settings, records or Records()
    if candidate.draw_target is not None:
        betas, transition = betas[::-1].copy(), transition.reversal()
    draw = candidate.draw_target or candidate.draw_reference
    start = StartDraws(draw, settings.chains, particles)
    return make_blocks(
        candidate.path,
        transition,
        betas,
        start,
        settings.block_draws,
        seed,
        rungs=records.steps,
        record_positions=records.positions,
        resample=records.resample,
    )


def _records(settings: Settings, betas: np.ndarray, pilot: Pilot | None) -> Records:
    """Return the steps after which the particles of a counted round are recorded."""
    if settings.stops:
        steps = np.union1d(np.flatnonzero(np.isin(betas, settings.stops)), [0])
        return Records(steps, positions=True, resample=settings.resample)
    if settings.resample:  # estimators by temperature need independent particles
        return Records(resample=settings.resample)
    barrier = pilot.barrier if pilot else settings.assumed_barrier
    return Records(recorded_steps(len(betas) - 1, barrier))


def build_schedule(settings: Settings, steps: int, lengths: PathLengths | None) -> np.ndarray:
    """Return the schedule of a run, through all temperatures at which it has to stop."""
    if isinstance(settings.schedule, np.ndarray):
        betas = settings.schedule
    elif isinstance(settings.schedule, FromPilot):
        assert lengths is not None  # such a schedule always has a pilot
        betas = settings.schedule.build(lengths.betas, lengths.length, steps, settings.max_step)
    else:
        betas = check_schedule(settings.schedule(steps))
    return check_schedule(np.union1d(betas, settings.stops)) if settings.stops else betas


def path_lengths(pilot: Pilot) -> PathLengths:
    """Return the lengths that a pilot has measured, mixing included."""
    return PathLengths(pilot.betas, effective_length(pilot))


def _refined_lengths(pilot: Pilot, finished: AnnealedRun) -> PathLengths:
    """Return the lengths that a finished round has measured."""
    betas, d = finished.betas, discrepancies(finished.stats, finished.particles)
    if betas[0] > betas[-1]:  # a run from target to reference
        betas, d = betas[::-1], d[::-1]
    return PathLengths(betas, refine_length(betas, d, pilot))


def misses_target(settings: Settings, finished: AnnealedRun) -> bool:
    """Whether the error of a round is above the target, or cannot be trusted."""
    found, k = ais_with_tail(finished.log_weight, population_size=finished.population_size)
    return k > MAX_PARETO_K or not found.mcse <= settings.target_mcse


def _growth(settings: Settings, runs: Sequence[AnnealedRun], seconds_left: float) -> float | None:
    """Return the factor by which to lengthen the next round; None if there is to be none."""
    finished = runs[-1]
    if settings.fixed_steps is not None or finished.interrupted:
        return None
    wanted = growth_against_lag(runs)
    if misses_target(settings, finished):
        wanted = max(wanted, needed_growth(settings, finished), MIN_GROWTH)
    growth = min(wanted, MAX_GROWTH)
    return growth if growth > 1 and growth * finished.seconds <= seconds_left else None


def growth_against_lag(runs: Sequence[AnnealedRun]) -> float:
    """Return how many times the steps of the last run would make the lag harmless; 1 if it is.

    With the number of steps the bias falls in proportion, the error in proportion to its root.
    """
    estimates = annealed_estimates("a run", runs)
    found, error = lag(estimates), estimates[-1].mcse
    if found is None or not found.matters(error):
        return 1.0
    return max((found.bias / (HARMLESS_BIAS * error)) ** 2, MIN_GROWTH)


def annealed_estimates(name: str, runs: Sequence[AnnealedRun]) -> list[Estimate]:
    """Return the estimates of annealed runs, each with its number of steps."""
    return [estimate_with_tail(name, r.log_weight, r.steps, r.population_size) for r in runs]


def needed_growth(settings: Settings, finished: AnnealedRun) -> float:
    """Return how many times the steps of a round would reach the target.

    Variances fall in proportion to the number of steps: the square of the error or, if that cannot
    be trusted, the variance of the log weights.
    """
    found, k = ais_with_tail(finished.log_weight, population_size=finished.population_size)
    if not k > MAX_PARETO_K:
        return float((found.mcse / settings.target_mcse) ** 2 / _NEXT_SHARE)
    aim = _NEXT_SHARE * planned_variance(finished.particles, settings.target_mcse)
    return log_weight_variance(finished.log_weight) / aim

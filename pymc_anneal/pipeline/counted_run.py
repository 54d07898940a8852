"""The counted run: frozen schedule, frozen kernels, random streams of its own, made once.

Trials (`trial.py`), which are not counted, absorb all growth. Nothing of the counted run decides
about its size, its schedule, its kernels or whether it is kept. If longer runs followed those with
too large an error and all were counted, low estimates would stand and high ones be diluted: the
mean of ``Z^ / Z`` is then 0.98 if the first run has log weights of a standard deviation of 4
(`tests/pipeline/test_bad_plans.py`).
"""

import math

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pymc_anneal.adaptation.pilot import Pilot
from pymc_anneal.adaptation.plan import Plan, effective_length
from pymc_anneal.annealing.block import Block
from pymc_anneal.base.contracts import Transition
from pymc_anneal.execution.blocks import AnnealedRun, StartDraws, make_blocks, recorded_steps
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.settings import Settings
from pymc_anneal.pipeline.target import RunCandidate
from pymc_anneal.schedules.named import FromPilot
from pymc_anneal.schedules.validate import check_schedule


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
    """How the counted run treats its particles on the way.

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
    run : AnnealedRun
        The counted run.
    trials : tuple of AnnealedRun
        The runs that the plan follows from; not counted.
    """

    candidate: RunCandidate
    pilot: Pilot | None
    plan: Plan | None
    transition: Transition
    run: AnnealedRun
    trials: tuple[AnnealedRun, ...] = ()


def count(
    session: Session,
    candidate: RunCandidate,
    pilot: Pilot | None,
    plan: Plan | None,
    transition: Transition,
) -> AnnealedRun:
    """Make the counted run: of the size of the plan, or of that in the settings."""
    settings = session.settings
    steps = plan.steps if plan else settings.fixed_steps or 0
    particles = plan.particles if plan else settings.draws * settings.chains
    betas = build_schedule(settings, steps, None if pilot is None else path_lengths(pilot))
    records, (seed,) = _records(settings, betas, pilot), session.seeds.counted.spawn(1)
    blocks = make_run_blocks(session, candidate, transition, betas, particles, seed, records)
    return session.anneal("Annealing", blocks)


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
    """Return the steps after which the particles of the counted run are recorded."""
    if settings.stops:
        steps = np.union1d(np.flatnonzero(np.isin(betas, settings.stops)), [0])
        return Records(steps, positions=True, resample=settings.resample)
    if settings.resample:  # estimators by temperature need independent particles
        return Records(resample=settings.resample)
    barrier = pilot.barrier if pilot else settings.assumed_barrier
    return Records(recorded_steps(len(betas) - 1, barrier))


def build_schedule(settings: Settings, steps: int, lengths: PathLengths | None) -> np.ndarray:
    """Return the schedule of a run, through all temperatures at which it has to stop."""
    most = settings.max_step or 1.0
    if settings.fixed_steps is None:
        steps = max(steps, math.ceil((1 - 1e-12) / most))
    if isinstance(settings.schedule, np.ndarray):
        betas = settings.schedule
    elif isinstance(settings.schedule, FromPilot):
        assert lengths is not None  # such a schedule always has a pilot
        betas = settings.schedule.build(lengths.betas, lengths.length, steps, settings.max_step)
    else:
        betas = check_schedule(settings.schedule(steps))
    if np.diff(betas).max() > most * (1 + 1e-9):
        raise ValueError(
            f"`max_step` is {most}, and a step of the schedule {np.diff(betas).max():.3g}: take "
            'more steps, or `schedule="variational"`.'
        )
    return check_schedule(np.union1d(betas, settings.stops)) if settings.stops else betas


def path_lengths(pilot: Pilot) -> PathLengths:
    """Return the lengths that a pilot has measured, mixing included."""
    return PathLengths(pilot.betas, effective_length(pilot))

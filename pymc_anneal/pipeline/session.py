"""The session of a run: shared context of its stages, opened and closed in one place."""

import os

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pymc_anneal.adaptation.pilot import COMPARE, MEASURE, SURVEY, Effort, Pilot, pooled, run_pilot
from pymc_anneal.adaptation.preconditioner import MAX_DENSE
from pymc_anneal.adaptation.support import MOST
from pymc_anneal.adaptation.target_density import operations_of_density
from pymc_anneal.adaptation.tune_at_target import ROUNDS, rescale_at_target, tune_at_target
from pymc_anneal.annealing.block import Block
from pymc_anneal.base.compilation_cache import compilation_cache
from pymc_anneal.base.contracts import NanDensityError, Transition
from pymc_anneal.base.meter import Meter
from pymc_anneal.base.programs import forget_if_full
from pymc_anneal.base.progress import PilotProgress
from pymc_anneal.base.replaced_file import locked
from pymc_anneal.base.seeds import RandomSeed, seed_sequence, spawned
from pymc_anneal.evidence.held_out import effective_witnesses
from pymc_anneal.execution.blocks import AnnealedRun, anneal
from pymc_anneal.execution.checkpoint import Checkpoint, StageLog, as_checkpoint, open_stage_log
from pymc_anneal.execution.fingerprint import describe, describe_versions
from pymc_anneal.execution.progress import ProgressDisplay
from pymc_anneal.execution.workers import check_executor
from pymc_anneal.paths.geometric import GeometricPath
from pymc_anneal.pipeline.call_budget import CallBudget
from pymc_anneal.pipeline.settings import Settings
from pymc_anneal.pipeline.target import PilotedRun, RunCandidate, Target

# Smallest number of particles of a pilot.
_MIN_PILOT = 256
# Particles of a survey: a floor, and so many for each coordinate, since a dense scale takes more
# particles than coordinates. In more dimensions scales come from the curvature, or are diagonal. A
# quarter of them is held out.
_LEAST_SURVEY, _SURVEY_PER_COORDINATE, _SURVEY_IN_MANY = 320, 5, 512

# Draws of the prior for the first step of a survey, and the operations that they may take: a tenth
# of a second or two. In 49 random models they left 1.4 times as many families (median) for as many
# evaluations.
_FIRST_DRAWS, _FIRST_OPERATIONS = 8192, 2e8
# Effective number of families up to which surveys are repeated: of 30, a tenth of the posterior
# has one with 96 %. The largest number of surveys, and the operations of their evaluations: two to
# four seconds. Of 100 random models, four were wrong and trusted with one survey each, and one so.
_FAMILIES, _MOST_SURVEYS, _OPERATIONS = 30, 32, 1.5e9


class Seeds(NamedTuple):
    """Seeds of the stages; none depends on whether another is used."""

    pilot: np.random.SeedSequence
    trial: np.random.SeedSequence
    counted: np.random.SeedSequence
    draws: np.random.SeedSequence
    prior: np.random.SeedSequence
    reverse: np.random.SeedSequence
    reference: np.random.SeedSequence
    path: np.random.SeedSequence
    audit: np.random.SeedSequence
    coordinates: np.random.SeedSequence
    witnesses: np.random.SeedSequence
    levels: np.random.SeedSequence
    configurations: np.random.SeedSequence
    transition: np.random.SeedSequence
    tops: np.random.SeedSequence
    sum: np.random.SeedSequence

    @classmethod
    def spawn(cls, seed: np.random.SeedSequence) -> "Seeds":
        """Spawn the seeds of all stages from the seed of the run."""
        return cls(*seed_sequence(seed).spawn(len(cls._fields)))

    @property
    def root(self) -> np.random.SeedSequence:
        """The seed of the run."""
        return np.random.SeedSequence(self.pilot.entropy, spawn_key=self.pilot.spawn_key[:-1])


@dataclass(frozen=True)
class Session:
    """Shared context of all stages of a run.

    Attributes
    ----------
    target : Target
    settings : Settings
    display : ProgressDisplay
    seeds : Seeds
    executor : Executor or None
        Where blocks run; None: threads of this process.
    log : StageLog
        Results of the stages, kept in the checkpoint.
    meter : Meter
        What each stage has taken.
    """

    target: Target
    settings: Settings
    display: ProgressDisplay
    seeds: Seeds
    executor: Executor | None = None
    log: StageLog = field(default_factory=StageLog)
    meter: Meter = field(default_factory=Meter)

    @property
    def call_budget(self) -> CallBudget:
        """Time left for the calls of black boxes."""
        minutes, scalars = self.settings.max_minutes, self.target.scalars
        return CallBudget(minutes, self.log.seconds, scalars.get("seconds_per_evaluation"))

    @property
    def _is_smooth(self) -> bool:
        """Whether all derivatives are there and take little time: no part is a black box."""
        return "calls" not in self.target.scalars

    def pilot(
        self,
        candidate: RunCandidate,
        transition: Transition,
        seed: np.random.SeedSequence,
        max_evaluations: float = np.inf,
    ) -> Pilot:
        """Run the pilot of a candidate from draws of its reference."""
        n = max(self.settings.chains * self.settings.block_draws, _MIN_PILOT)
        return self._pilot("Pilot", candidate, transition, seed, n, max_evaluations, MEASURE)

    def short_pilot(
        self,
        candidate: RunCandidate,
        transition: Transition,
        seed: np.random.SeedSequence,
        particles: int,
        max_evaluations: float,
    ) -> Pilot:
        """Run a shorter pilot of a candidate, to compare it with another one."""
        return self._pilot(
            "Pilot", candidate, transition, seed, particles, max_evaluations, COMPARE
        )

    def survey(
        self, prior: RunCandidate, transition: Transition, seed: np.random.SeedSequence
    ) -> PilotedRun:
        """Return the run from the prior with a survey as its pilot: few moves of its particles.

        These show what the posterior looks like, and a reference is fitted to them. Particles that
        move so little give a rough estimate of the evidence: its ``log_z`` is NaN. Where few
        families are left of them, further surveys follow, and the particles are theirs together.
        """
        ndim = prior.draw_reference(seed, 1).shape[1]
        particles = max(_LEAST_SURVEY, _SURVEY_PER_COORDINATE * ndim)
        if ndim > MAX_DENSE:
            particles = _SURVEY_IN_MANY

        each = np.inf  # of a black box
        if self._is_smooth:
            each = max(operations_of_density(prior.path, particles, ndim), 1.0)
        draws = int(min(_FIRST_DRAWS, _FIRST_OPERATIONS / each))

        def survey(own: np.random.SeedSequence) -> Pilot:
            given = transition, own, particles, np.inf, SURVEY, draws
            return self._pilot("Survey", prior, *given)

        # The first two children are those of the pilot.
        every, rng = [found := survey(seed)], np.random.default_rng(spawned(seed, 2))
        while effective_witnesses(found.ancestor) < _FAMILIES and len(every) < _MOST_SURVEYS:
            if sum(p.evaluations for p in [*every, every[-1]]) * each > _OPERATIONS:
                break
            every.append(survey(spawned(seed, 2 + len(every))))
            found = pooled(every, rng)
        return prior.with_pilot(replace(found, log_z=np.nan, rough_log_z=found.log_z))

    def tune_at_target(
        self,
        survey: Pilot,
        candidate: RunCandidate,
        transition: Transition,
        position: np.ndarray,
        seed: np.random.SeedSequence,
        rounds: int = ROUNDS,
    ) -> Pilot:
        """Tune the transition in other coordinates, from the particles of a survey there."""
        path, own = candidate.path, seed_sequence(seed)
        tune = partial(tune_at_target, survey, path, transition, position, own, rounds)
        return self._stage("Tuning", tune, survey.evaluations)

    def rescale_at_target(
        self,
        survey: Pilot,
        candidate: RunCandidate,
        transition: Transition,
        position: np.ndarray,
    ) -> Pilot:
        """Set the scale of the transition in other coordinates, for runs of a step or two."""
        assert isinstance(candidate.path, GeometricPath)
        found = survey, candidate.path, transition, position
        return self._stage("Tuning", partial(rescale_at_target, *found), survey.evaluations)

    def _pilot(
        self,
        name: str,
        candidate: RunCandidate,
        transition: Transition,
        seed: np.random.SeedSequence,
        particles: int,
        max_evaluations: float,
        effort: Effort,
        first_draws: int = 0,
    ) -> Pilot:
        def compute() -> Pilot:
            seed_start, seed_run = seed_sequence(seed).spawn(2)
            position = candidate.draw_reference(seed_start, particles)
            bar, spent = self.display.add_bar(name), list[tuple[int, float]]()

            def report(progress: PilotProgress) -> None:
                bar.show(progress)
                spent.append((progress.evaluations, self.log.seconds))
                # From the second temperature on: the programs are compiled in the first.
                budget = self.call_budget.paced(*np.subtract(spent[-1], spent[:2][-1]))
                budget.check_pilot(name.lower(), progress)

            whole = any(part.moves_integers for part in transition.parts)
            return run_pilot(
                candidate.path,
                transition,
                position,
                seed_run,
                report,
                max_evaluations,
                effort,
                draw=candidate.draw_reference,
                max_draws=min(MOST, self.call_budget.draws),
                refuse_flat=self.settings.free_transition and self._is_smooth,
                refuse_infinite=self._is_smooth and not whole,
                guide=candidate.guide,
                first_draws=first_draws,
            )

        return self._stage(name, compute)

    def _stage(self, name: str, compute: Callable[[], Pilot], before: int = 0) -> Pilot:
        """Return the result of a stage, from the log if it is there, and count what it took."""
        return self.meter.run(name, partial(self.log.stage, name, compute), before)

    def anneal(self, name: str, blocks: list[Block]) -> AnnealedRun:
        """Anneal blocks on the workers; after an interrupt the log takes no further stages."""
        store = self.log.blocks(name)
        cores, executor = self.settings.cores, self.executor
        compute = partial(anneal, blocks, self.display, name, cores, executor, store)
        try:
            run = self.meter.run(name, compute)
        except KeyboardInterrupt:
            self.log.close()
            raise
        if run.interrupted:
            self.log.close()
        return run

    def anneal_fully(self, name: str, blocks: list[Block]) -> AnnealedRun:
        """Anneal blocks that later stages need: an interrupt ends the call."""
        run = self.anneal(name, blocks)
        if run.interrupted:
            raise KeyboardInterrupt
        return run


@contextmanager
def open_session(
    target: Target,
    settings: Settings,
    *,
    random_seed: RandomSeed = None,
    executor: Executor | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    progressbar: bool = True,
    choices: Mapping[str, object] | None = None,
) -> Iterator[Session]:
    """Open the session of a run: seed, checkpoint, progress display, explained NaNs.

    `choices` are further arguments that determine the result, by name.

    Raises
    ------
    TypeError
        The executor is none.
    ValueError
        The checkpoint is of another run; or, during the run, the log density is NaN.
    RuntimeError
        Another run has the checkpoint.
    KeyboardInterrupt
        The run was stopped before there was an estimate.
    """
    check_executor(executor)
    forget_if_full()
    with ExitStack() as stack:
        log, seed = StageLog(), seed_sequence(random_seed)
        if checkpoint is not None:
            stack.enter_context(locked(Path(as_checkpoint(checkpoint).path)))
            words = _fingerprint(target, settings, choices or {})
            log, seed = open_stage_log(checkpoint, words, seed, random_seed is not None)
        stack.callback(log.save)
        stack.enter_context(_explaining_interrupt(checkpoint is not None))
        display = stack.enter_context(ProgressDisplay(progressbar))
        stack.enter_context(compilation_cache())
        stack.enter_context(explaining_nan(target))
        yield Session(target, settings, display, Seeds.spawn(seed), executor, log)


@contextmanager
def _explaining_interrupt(has_checkpoint: bool) -> Iterator[None]:
    """Say that a run that was stopped in its pilot or trial has nothing to keep."""
    try:
        yield
    except KeyboardInterrupt as stop:
        resume = " The same call goes on from the checkpoint." if has_checkpoint else ""
        raise KeyboardInterrupt(
            "Stopped before there was an estimate: nothing is lost, because nothing was counted."
            + resume
        ) from stop


@contextmanager
def explaining_nan(target: Target) -> Iterator[None]:
    """Turn a log density that is NaN into an error that names the term of the model."""
    try:
        yield
    except NanDensityError as error:
        try:
            reason = target.explain_nan(error.position)
        except Exception as cause:  # Of any class: that of a black box.
            raise ValueError(
                f"The model raised {type(cause).__name__} at x = {error.position}, in the "
                f"unconstrained space: {cause}. Guard the function there, restrict the prior, or "
                "count it as zero likelihood: `sample_ais(nan='reject')`."
            ) from cause
        raise ValueError(reason) from error


def _fingerprint(
    target: Target, settings: Settings, choices: Mapping[str, object]
) -> dict[str, str]:
    """Describe all inputs that determine the result of a run."""
    values = settings.fingerprint() | dict(choices)
    described = {f"setting `{name}`": describe(value) for name, value in values.items()}
    return {**target.fingerprint(), **described, **describe_versions()}

"""The counted run: schedules, blocks, records, and that it is made once whatever it finds."""

from dataclasses import replace

import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation.plan import Plan
from pymc_anneal.evidence.ais import ais
from pymc_anneal.pipeline.counted_run import PathLengths, build_schedule, make_run_blocks
from pymc_anneal.pipeline.run import pilot_required, run_forward
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.settings import Settings
from pymc_anneal.schedules.named import FromPilot
from tests.cases import log_gamma_evidence
from tests.pipeline.log_gamma_target import FIXED, KERNEL, LogGammaTarget, log_gamma_session

CANDIDATE = LogGammaTarget().candidate()
# A run with pilot, trial and plan.
PLANNED = {"draws": 50, "chains": 2, "target_mcse": 0.05, "block_size": 50}


def run(candidate=CANDIDATE, transition=KERNEL, seed: int = 1, **settings):
    with log_gamma_session(seed, **settings) as session:
        return run_forward(session, candidate, transition)


def score(forward) -> float:
    """Return the error of the estimate, in standard errors."""
    estimate = ais(forward.run.log_weight, population_size=forward.run.population_size)
    return (estimate.log_evidence - log_gamma_evidence()) / estimate.mcse


class TestFixedSteps:
    def test_no_pilot_and_no_plan(self) -> None:
        forward = run(**FIXED)
        assert forward.pilot is None
        assert forward.plan is None
        assert forward.transition is KERNEL
        np.testing.assert_allclose(forward.run.betas, np.linspace(0, 1, 5))
        assert forward.run.log_weight.shape == (2, 50)
        assert forward.run.evaluations == 100 * 4 * 7
        assert abs(score(forward)) < 4

    def test_particles_fill_whole_blocks(self) -> None:
        assert run(**FIXED | {"draws": 51}).run.log_weight.shape == (2, 51)
        assert run(**FIXED | {"draws": 52, "block_size": 48}).run.log_weight.shape == (2, 54)

    def test_every_block_has_draws_of_its_own(self) -> None:
        weights = run(**FIXED).run.log_weight
        assert len(np.unique(weights)) == weights.size

    @pytest.mark.parametrize(
        ("changes", "transition", "required"),
        [
            ({}, KERNEL, False),
            ({"schedule": np.array([0.0, 0.3, 1.0]), "steps": "auto"}, KERNEL, False),
            ({"steps": "auto"}, KERNEL, True),
            ({"schedule": Settings(1, 1).schedule}, KERNEL, True),
            ({}, pma.HMC(n_steps=2), True),
        ],
        ids=["fixed", "array", "planned", "from_pilot", "free_parameters"],
    )
    def test_a_pilot_is_required(self, changes, transition, required: bool) -> None:
        assert pilot_required(Settings(**FIXED | changes), transition) == required

    def test_the_pilot_of_the_candidate_is_used(self) -> None:
        with log_gamma_session(**FIXED) as session:
            pilot = session.pilot(CANDIDATE, KERNEL, session.seeds.path)
            forward = run_forward(session, replace(CANDIDATE, pilot=pilot), KERNEL)
        assert forward.pilot is pilot


class TestFromTheTarget:
    def test_blocks_go_back_with_reversed_kernels(self) -> None:
        kernel, betas = pma.GeneralizedHMC(0.5, 2, 0.6), np.linspace(0, 1, 5)
        seed = np.random.SeedSequence(1)
        with log_gamma_session(**FIXED) as session:
            forth, back = (
                make_run_blocks(session, target, kernel, betas, 100, seed)[0]
                for target in (CANDIDATE, LogGammaTarget().candidate(reverse=True))
            )
        assert forth.transition is kernel
        assert back.transition == kernel.reversal() != kernel
        np.testing.assert_array_equal(forth.betas, betas)
        np.testing.assert_array_equal(back.betas, betas[::-1])

    def test_the_schedule_is_taken_backwards(self) -> None:
        forward = run(LogGammaTarget().candidate(reverse=True), **FIXED)
        np.testing.assert_allclose(forward.run.betas, np.linspace(1, 0, 5))
        found = ais(forward.run.log_weight)
        assert abs(found.log_evidence + log_gamma_evidence()) < 4 * found.mcse

    def test_with_a_plan(self) -> None:
        forward = run(LogGammaTarget().candidate(reverse=True), **PLANNED)
        assert forward.run.betas[0] == 1
        found = ais(forward.run.log_weight)
        assert abs(found.log_evidence + log_gamma_evidence()) < 4 * found.mcse


class TestRecords:
    def test_particles_are_recorded_on_the_way(self) -> None:
        last = run(**FIXED).run
        np.testing.assert_array_equal(last.rungs, [0, 1, 2, 3, 4])
        np.testing.assert_array_equal(last.ladder.log_weight[-1], last.log_weight)
        assert last.ladder.position.size == 0

    def test_stops_are_visited_and_recorded_with_positions(self) -> None:
        last = run(**FIXED, stops=(0.3, 1.0)).run
        np.testing.assert_allclose(last.betas, [0, 0.25, 0.3, 0.5, 0.75, 1])
        np.testing.assert_array_equal(last.rungs, [0, 2, 5])
        assert last.ladder.position.shape == (3, 2, 50, 2)
        np.testing.assert_array_equal(last.ladder.position[-1], last.position)

    def test_resampled_populations(self) -> None:
        last = run(**FIXED | {"block_size": 20, "resample": 1.0}).run
        assert last.population_size == 10
        assert len(last.rungs) == 0


class TestBuildSchedule:
    lengths = PathLengths(np.array([0.0, 0.1, 1.0]), np.array([1.0, 1.0]))

    def test_an_array_is_taken_as_it_is(self) -> None:
        schedule = np.array([0.0, 0.3, 1.0])
        settings = Settings(5, 2, schedule=schedule)
        assert build_schedule(settings, 2, None) is schedule

    def test_a_function_is_checked(self) -> None:
        settings = Settings(5, 2, schedule=lambda steps: np.linspace(0, 0.5, steps + 1))
        with pytest.raises(ValueError, match="ends at 0.5"):
            build_schedule(settings, 3, None)

    def test_a_schedule_of_the_pilot_follows_the_lengths(self) -> None:
        betas = build_schedule(Settings(5, 2), 10, self.lengths)
        assert len(betas) == 11
        assert betas[5] == pytest.approx(0.1)

    def test_the_largest_step_is_bounded(self) -> None:
        betas = build_schedule(Settings(5, 2, max_step=0.12), 10, self.lengths)
        assert np.diff(betas).max() <= 0.12 * (1 + 1e-9)

    @pytest.mark.parametrize("schedule", [FromPilot("variational"), pma.linear_schedule])
    def test_so_many_steps_as_the_largest_needs(self, schedule) -> None:
        settings = Settings(5, 2, max_step=0.01, schedule=schedule)
        assert len(build_schedule(settings, 3, self.lengths)) == 101

    def test_a_given_schedule_with_a_larger_step(self) -> None:
        settings = Settings(5, 2, max_step=0.5, schedule=np.array([0.0, 0.3, 1.0]))
        with pytest.raises(ValueError, match=r"`max_step` is 0.5, and a step of the schedule 0.7"):
            build_schedule(settings, 2, None)

    def test_stops_are_added(self) -> None:
        betas = build_schedule(Settings(5, 2, stops=(0.5, 1.0)), 3, self.lengths)
        assert 0.5 in betas
        assert len(betas) == 5


class TestMadeOnce:
    """A run whose error misses the target is kept as it is, and is the only one."""

    @pytest.fixture(scope="class")
    @classmethod
    def annealed(cls) -> list[str]:
        """Return the names of the annealed runs of a plan of one step."""
        names: list[str] = []
        anneal = Session.anneal

        def recorded(session: Session, name: str, blocks):
            names.append(name)
            return anneal(session, name, blocks)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Session, "anneal", recorded)
            patch.setattr("pymc_anneal.pipeline.run.plan_run", bad_plan)
            forward = run(transition=pma.HMC(), **PLANNED)
        assert ais(forward.run.log_weight).mcse > PLANNED["target_mcse"]
        return names

    @pytest.mark.slow
    def test_nothing_follows(self, annealed: list[str]) -> None:
        assert annealed == ["Annealing"]

    def test_an_interruption_before_the_first_block(self, monkeypatch) -> None:
        def interrupted(session: Session, name: str, blocks):
            raise KeyboardInterrupt

        monkeypatch.setattr(Session, "anneal", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(**FIXED)


def bad_plan(session, candidate, pilot) -> tuple[Plan, tuple]:
    return Plan(steps=1, particles=100, predicted_mcse=0.01, predicted_seconds=0.0), ()

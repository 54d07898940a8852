"""Counted rounds: schedules, blocks, records, and the decision on another round."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.evidence.ais import ais
from pymc_anneal.evidence.heavy_tail import ais_with_tail
from pymc_anneal.pipeline import rounds
from pymc_anneal.pipeline.rounds import (
    PathLengths,
    build_schedule,
    growth_against_lag,
    misses_target,
    needed_growth,
)
from pymc_anneal.pipeline.run import pilot_required, run_forward
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.settings import Settings
from tests.cases import log_gamma_evidence
from tests.pipeline.log_gamma_target import FIXED, KERNEL, LogGammaTarget, log_gamma_session

CANDIDATE = LogGammaTarget().candidate()
# A run with pilot, trial and plan.
PLANNED = {"draws": 50, "chains": 2, "target_mcse": 0.05, "max_rounds": 2, "block_size": 50}


def run(candidate=CANDIDATE, transition=KERNEL, seed: int = 1, **settings):
    with log_gamma_session(seed, **settings) as session:
        return run_forward(session, candidate, transition)


def score(forward) -> float:
    """Return the error of the estimate, in standard errors."""
    estimate = ais(forward.last.log_weight, population_size=forward.last.population_size)
    return (estimate.log_evidence - log_gamma_evidence()) / estimate.mcse


class TestFixedSteps:
    def test_one_round_without_pilot_and_plan(self) -> None:
        forward = run(**FIXED)
        assert forward.pilot is None
        assert forward.plan is None
        assert forward.transition is KERNEL
        assert len(forward.rounds) == 1
        np.testing.assert_allclose(forward.last.betas, np.linspace(0, 1, 5))
        assert forward.log_weight.shape == (2, 50)
        assert (forward.round_of_particle == 1).all()
        assert forward.evaluations == 100 * 4 * 7
        assert abs(score(forward)) < 4

    def test_particles_fill_whole_blocks(self) -> None:
        assert run(**FIXED | {"draws": 51}).log_weight.shape == (2, 51)
        assert run(**FIXED | {"draws": 52, "block_size": 48}).log_weight.shape == (2, 54)

    def test_every_block_has_draws_of_its_own(self) -> None:
        weights = run(**FIXED).log_weight
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
    def test_the_schedule_is_taken_backwards(self) -> None:
        forward = run(LogGammaTarget().candidate(reverse=True), **FIXED)
        np.testing.assert_allclose(forward.last.betas, np.linspace(1, 0, 5))
        found = ais(forward.last.log_weight)
        assert abs(found.log_evidence + log_gamma_evidence()) < 4 * found.mcse

    def test_rounds_may_follow(self) -> None:
        forward = run(LogGammaTarget().candidate(reverse=True), **PLANNED)
        assert forward.rounds[-1].betas[0] == 1
        found = ais(forward.last.log_weight)
        assert abs(found.log_evidence + log_gamma_evidence()) < 4 * found.mcse


class TestRecords:
    def test_particles_are_recorded_on_the_way(self) -> None:
        last = run(**FIXED).last
        np.testing.assert_array_equal(last.rungs, [0, 1, 2, 3, 4])
        np.testing.assert_array_equal(last.ladder.log_weight[-1], last.log_weight)
        assert last.ladder.position.size == 0

    def test_stops_are_visited_and_recorded_with_positions(self) -> None:
        last = run(**FIXED, stops=(0.3, 1.0)).last
        np.testing.assert_allclose(last.betas, [0, 0.25, 0.3, 0.5, 0.75, 1])
        np.testing.assert_array_equal(last.rungs, [0, 2, 5])
        assert last.ladder.position.shape == (3, 2, 50, 2)
        np.testing.assert_array_equal(last.ladder.position[-1], last.position)

    def test_resampled_populations(self) -> None:
        last = run(**FIXED | {"block_size": 20, "resample": 1.0}).last
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

    def test_stops_are_added(self) -> None:
        betas = build_schedule(Settings(5, 2, stops=(0.5, 1.0)), 3, self.lengths)
        assert 0.5 in betas
        assert len(betas) == 5


@pytest.fixture(scope="class")
def two_rounds():
    """No weights are reliable, so that every round is followed by another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "MAX_PARETO_K", -np.inf)
        yield


@pytest.mark.usefixtures("two_rounds")
class TestSeveralRounds:
    @pytest.fixture(scope="class")
    @classmethod
    def forward(cls, two_rounds):
        return run(transition=pma.HMC(), **PLANNED)

    def test_steps_grow(self, forward) -> None:
        first, second = forward.rounds
        assert 2 * first.steps <= second.steps <= 8 * first.steps
        assert forward.plan.steps == first.steps
        assert first.particles == second.particles

    def test_both_rounds_count(self, forward) -> None:
        counts = np.bincount(forward.round_of_particle)[1:]
        np.testing.assert_array_equal(counts, [r.log_weight.shape[1] for r in forward.rounds])
        pooled = ais(forward.log_weight)
        assert abs(pooled.log_evidence - log_gamma_evidence()) < 4 * pooled.mcse

    def test_evaluations_are_those_of_trials_and_rounds(self, forward) -> None:
        (trial,) = forward.trials
        assert trial.evaluations > 0
        rounds = sum(r.evaluations for r in forward.rounds)
        assert forward.evaluations == trial.evaluations + rounds

    def test_an_interrupted_round_keeps_the_rounds_before(self, monkeypatch) -> None:
        anneal = Session.anneal

        def interrupted(session: Session, name: str, blocks):
            if name == "Round 2":
                raise KeyboardInterrupt
            return anneal(session, name, blocks)

        monkeypatch.setattr(Session, "anneal", interrupted)
        forward = run(transition=pma.HMC(), **PLANNED)
        assert len(forward.rounds) == 1
        assert forward.last.interrupted


class TestDecision:
    """Whether another round follows."""

    def test_no_round_follows_if_the_error_is_as_wanted(self) -> None:
        assert len(run(transition=pma.HMC(), **PLANNED | {"target_mcse": 0.5}).rounds) == 1

    def test_no_round_begins_that_would_exceed_the_time(self) -> None:
        assert len(run(transition=pma.HMC(), **PLANNED, max_minutes=1e-9).rounds) == 1

    def test_an_interrupted_first_round_is_an_interruption(self, monkeypatch) -> None:
        def interrupted(session: Session, name: str, blocks):
            raise KeyboardInterrupt

        monkeypatch.setattr(Session, "anneal", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(**FIXED)


class TestGrowth:
    """How much longer the next round is: twice the excess of a variance over what is wanted."""

    @staticmethod
    def needed(log_weight: np.ndarray, target_mcse: float) -> float:
        finished = SimpleNamespace(
            log_weight=log_weight, population_size=1, particles=log_weight.size
        )
        return needed_growth(SimpleNamespace(target_mcse=target_mcse), finished)

    def test_the_error_hardly_misses_the_target(self) -> None:
        # A few dead particles make the variance of the log weights large, and the error hardly.
        log_weight = np.random.default_rng(1).normal(0, 0.5, (4, 500))
        log_weight[:, :100] -= 30.0
        mcse = ais(log_weight).mcse
        assert self.needed(log_weight, mcse / 1.1) == pytest.approx(2 * 1.1**2)

    def test_an_error_that_cannot_be_trusted(self) -> None:
        log_weight = np.random.default_rng(3).normal(0, 6.0, (4, 500))
        found, k = ais_with_tail(log_weight)
        assert k > 0.7
        assert self.needed(log_weight, 0.9 * found.mcse) > 8


class TestGrowthAgainstLag:
    """Runs whose estimates rise with the number of steps are followed by a longer one."""

    @staticmethod
    def runs(lag: float, steps=(20, 80)) -> list[SimpleNamespace]:
        rng = np.random.default_rng(5)
        return [
            SimpleNamespace(
                log_weight=rng.normal(-lag / k, 0.3, (4, 500)), population_size=1, steps=k
            )
            for k in steps
        ]

    def test_none(self) -> None:
        assert growth_against_lag(self.runs(0.0)) == 1.0
        assert growth_against_lag(self.runs(0.0)[:1]) == 1.0

    def test_the_bias_falls_to_half_of_the_error(self) -> None:
        runs = self.runs(2.0)
        error = ais(runs[-1].log_weight).mcse
        growth = growth_against_lag(runs)
        bias = 2.0 / 80 / growth
        assert bias == pytest.approx(0.5 * error / np.sqrt(growth), rel=0.2)

    def test_a_heavy_tail_is_no_lag(self) -> None:
        # The error of the longer run cannot be trusted.
        short, long = self.runs(2.0)
        long.log_weight = np.random.default_rng(6).normal(0, 6.0, (4, 500))
        assert growth_against_lag([short, long]) == 1.0


def test_the_reported_error_decides() -> None:
    """Between the error of the sample and that with the heavy tail, a further round follows."""
    log_weight = np.random.default_rng(4).exponential(0.6, size=(4, 500))  # Pareto, k = 0.6
    finished = SimpleNamespace(log_weight=log_weight, population_size=1)
    plain, (wider, k) = ais(log_weight).mcse, ais_with_tail(log_weight)
    assert 0.5 < k < 0.7
    assert plain < wider.mcse
    for target, missed in (((plain + wider.mcse) / 2, True), (1.01 * wider.mcse, False)):
        assert misses_target(SimpleNamespace(target_mcse=target), finished) == missed

"""The trial: it grows until its weights are even, and the plan follows from it."""

from types import SimpleNamespace

import numpy as np
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.adaptation.plan import planned_variance
from pymc_anneal.evidence.diagnostics import log_weight_variance
from pymc_anneal.pipeline.trial import (
    _affordable_growth,
    _needed_growth,
    _plan_from_trial,
    _plan_from_trials,
    plan_run,
)
from tests.pipeline.log_gamma_target import KERNEL, LogGammaTarget, log_gamma_session

CANDIDATE = LogGammaTarget().candidate()


def planned(transition=KERNEL, **settings):
    with log_gamma_session(draws=100, chains=2, **settings) as session:
        pilot = session.pilot(CANDIDATE, transition, session.seeds.pilot)
        return plan_run(session, CANDIDATE, pilot)


def plan(**settings):
    return planned(**settings)[0]


def test_a_smaller_error_takes_more_particles() -> None:
    rough, precise = (plan(target_mcse=target) for target in (0.5, 0.005))
    assert rough.steps <= precise.steps
    assert rough.particles == 200
    assert precise.particles > 1000
    assert precise.predicted_mcse <= 0.005 * (1 + 1e-9)


def test_the_time_limits_the_plan() -> None:
    short = plan(target_mcse=0.005, max_minutes=1e-6)
    assert short.particles == 200
    assert short.predicted_mcse > 0.005


def test_trials_grow_until_the_weights_are_even(monkeypatch) -> None:
    # Of short steps the variance is above that of perfect transitions, and falls.
    monkeypatch.setattr("pymc_anneal.pipeline.trial._MAX_TRIAL_VARIANCE", 1.0)
    trials = planned(pma.HMC(0.05, 1, 1.0))[1]
    *early, last = [log_weight_variance(trial.log_weight) for trial in trials]
    assert 1 <= len(early) <= 3
    assert last <= 1 < min(early)
    assert (np.diff([trial.steps for trial in trials]) > 0).all()


def test_one_trial_is_enough_for_even_weights() -> None:
    found, trials = planned()
    assert len(trials) == 1
    assert found.steps >= 1
    assert 0 < found.predicted_seconds < 60


def trial(variance: float, steps: int, log_z: float = 0.0, n: int = 1000) -> SimpleNamespace:
    """Return what a plan asks of a trial: quantiles of normal log weights of mean weight ``Z``."""
    z = stats.norm.ppf((np.arange(n) + 0.5) / n)
    log_weight = log_z - variance / 2 + np.sqrt(variance) * z
    return SimpleNamespace(
        log_weight=log_weight[None], steps=steps, seconds=0.5 * steps, particles=n
    )


def test_a_run_is_longer_than_a_trial_that_was_too_short(monkeypatch) -> None:
    """Though by the variance of the last one fewer steps would do."""
    short, last = trial(1.0, 10), trial(0.05, 20)
    steps = []
    for trials in ([last], [short, last]):
        monkeypatch.setattr("pymc_anneal.pipeline.trial._run_trials", lambda *_, made=trials: made)
        steps.append(plan(target_mcse=0.5).steps)
    assert steps[0] < 10
    assert steps[1] == 20


class TestGrowth:
    """How many times longer the next trial is; 1 if the last one will do."""

    def test_even_weights(self) -> None:
        assert _needed_growth(0.1, [trial(1.0, 10)]) == 1
        assert _needed_growth(0.1, [trial(2.9, 10)]) == 1

    @pytest.mark.parametrize("variance", [3.2, 6.0])
    def test_a_variance_too_large_to_plan_by(self, variance: float) -> None:
        # As many times as the variance would then be one.
        assert _needed_growth(0.1, [trial(variance, 10)]) == pytest.approx(variance, rel=0.02)

    def test_a_heavy_tail(self) -> None:
        made = trial(1.0, 10)
        made.log_weight = np.log(stats.pareto(1.35).ppf((np.arange(1000) + 0.5) / 1000))[None]
        assert _needed_growth(0.1, [made]) == 2

    def test_transitions_that_lag(self) -> None:
        # The line through both is -20 / K: one nat is missing at 20 steps. The bias is harmless at
        # half of the error, which falls with the root of the number of steps.
        trials = [trial(0.01, 10, -2.0), trial(0.01, 20, -1.0)]
        assert _needed_growth(0.5, trials) == pytest.approx((1.0 / 0.25) ** 2, rel=0.02)
        assert _needed_growth(2.5, trials) == 1  # no more than a part of the error


def test_the_plan_follows_from_steps_particles_and_time() -> None:
    pilot = SimpleNamespace(cost=np.full(3, 7), log_reference_mass=0.0)
    with log_gamma_session(draws=500, chains=2, target_mcse=0.05) as session:
        found = _plan_from_trial(session, pilot, trial(1.6, 40), 1)
        least = _plan_from_trial(session, pilot, trial(1.6, 40), 300)
    assert found.steps == pytest.approx(40 * 1.6 / planned_variance(1000, 0.05), rel=0.03)
    # 20 seconds for 40 steps of 1000 particles.
    seconds = 20 / 40_000 * found.steps * found.particles
    assert found.predicted_seconds == pytest.approx(seconds)
    assert least.steps == 300


def test_a_run_without_hope_is_as_short_as_its_trial() -> None:
    # Of most particles the weights differ by 1e4 nats: they are stuck where the kernel fails.
    pilot = SimpleNamespace(cost=np.full(3, 7), log_reference_mass=0.0)
    with log_gamma_session(draws=500, chains=2, target_mcse=0.05) as session:
        hopeless = _plan_from_trial(session, pilot, trial(1e8, 40), 1)
        long = _plan_from_trial(session, pilot, trial(100.0, 40), 1)
        growths = [_affordable_growth(session, [trial(v, 40)]) for v in (1e8, 100.0)]
        blind = trial(1.0, 40)
        blind.log_weight = np.where(np.arange(1000) == 3, 0.0, -np.inf)[None]
        growths.append(_affordable_growth(session, [blind]))
    assert (hopeless.steps, hopeless.particles) == (40, 1000)
    assert "as short as the trial" in hopeless.note
    assert growths == [1, 8, 8]  # where nearly all weights are zero, a longer trial may meet more
    assert long.steps > 1000
    assert not long.note


class TestStuck:
    """Sixteen times the steps have to leave less than half of the variance."""

    PILOT = SimpleNamespace(cost=np.full(3, 7), log_reference_mass=0.0)

    def growth_and_plan(self, *trials):
        with log_gamma_session(draws=500, chains=2, target_mcse=0.05) as session:
            growth = _affordable_growth(session, trials)
            return growth, _plan_from_trials(session, self.PILOT, trials, 1)

    def test_no_further_trial_and_a_run_as_short_as_the_first(self) -> None:
        growth, found = self.growth_and_plan(trial(6.0, 10), trial(6.2, 60), trial(6.1, 370))
        assert growth == 1
        assert (found.steps, found.particles) == (10, 1000)
        assert "A trial of 37 times the steps had weights as uneven as one of 10" in found.note

    @pytest.mark.parametrize(
        "trials",
        [
            pytest.param([trial(6.0, 10)], id="a single one"),
            pytest.param([trial(6.0, 10), trial(6.1, 150)], id="not much longer"),
            pytest.param([trial(9.0, 10), trial(4.0, 170)], id="less than half of the variance"),
        ],
    )
    def test_a_longer_trial_may_help(self, trials) -> None:
        growth, found = self.growth_and_plan(*trials)
        assert growth > 1
        assert found.steps > trials[-1].steps
        assert not found.note

    def test_weights_even_enough_to_plan_by(self) -> None:
        # Slow as the variance falls, it is known: the plan follows from it.
        growth, found = self.growth_and_plan(trial(2.9, 10), trial(2.8, 170))
        assert growth == 1
        assert found.steps > 170


def test_a_trial_takes_half_of_the_time_that_is_left() -> None:
    uneven = [trial(6.0, 40)]  # of 20 seconds, and the next one is six times as long
    for minutes, growth in ((3.9, 1), (4.1, pytest.approx(6, rel=0.02))):
        with log_gamma_session(draws=500, chains=2, max_minutes=minutes) as session:
            assert _affordable_growth(session, uneven) == growth


def test_a_run_without_hope_keeps_to_its_time() -> None:
    pilot = SimpleNamespace(cost=np.full(3, 7), log_reference_mass=0.0)
    with log_gamma_session(draws=500, chains=2, max_minutes=0.1) as session:
        found = _plan_from_trial(session, pilot, trial(1e8, 40), 1)
    assert found.predicted_seconds <= 6

"""The trial: it grows until its weights are even, and the plan follows from it."""

import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.pipeline.trial import plan_run
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


@pytest.mark.slow
def test_trials_grow_until_the_weights_are_even(monkeypatch) -> None:
    # A kernel that hardly moves: the variance is far above that of perfect transitions.
    monkeypatch.setattr("pymc_anneal.pipeline.trial._MAX_TRIAL_VARIANCE", 0.05)
    steps = [trial.steps for trial in planned(pma.HMC(0.01, 1, 0.1))[1]]
    assert 1 < len(steps) <= 4
    assert (np.diff(steps) >= 0).all()


def test_one_trial_is_enough_for_even_weights() -> None:
    found, trials = planned()
    assert len(trials) == 1
    assert found.steps >= 1
    assert 0 < found.predicted_seconds < 60

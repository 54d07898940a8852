"""How many steps and particles a wanted error takes."""

from dataclasses import replace

import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation.pilot import Pilot, run_pilot
from pymc_anneal.adaptation.plan import (
    MAX_VARIANCE,
    MIN_VARIANCE,
    Plan,
    effective_length,
    make_plan,
    planned_variance,
    trial_steps,
)
from pymc_anneal.evidence.ais import ais
from tests.cases import log_gamma_draws, log_gamma_terms

ARGUMENTS = {
    "variance": 1.5,
    "steps": 100,
    "particles": 400,
    "target_mcse": 0.1,
    "log_reference_mass": 0.0,
    "seconds": 2e-6,
}


def plan(**changes: float) -> Plan:
    return make_plan(**{**ARGUMENTS, **changes})


@pytest.fixture(scope="module")
def pilot() -> Pilot:
    position = log_gamma_draws(0.0, 1000, np.random.default_rng(1))
    path = pma.GeometricPath(log_gamma_terms)
    return run_pilot(path, pma.HMC(), position, np.random.SeedSequence(1))


class TestMakePlan:
    def test_formulas(self) -> None:
        # S falls as 1/K: K brings it to the target; then RSE^2 = (exp(S) - 1)/N.
        result = plan()
        assert result.steps == np.ceil(100 * 1.5 / planned_variance(400, 0.1))
        relative = np.expm1(1.5 * 100 / result.steps)
        assert result.particles == max(400, np.ceil(relative / np.expm1(0.08**2)))
        expected = np.sqrt(np.log1p(relative / result.particles))
        assert result.predicted_mcse == pytest.approx(expected, rel=1e-12)
        seconds = 2e-6 * result.steps * result.particles
        assert result.predicted_seconds == pytest.approx(seconds, rel=1e-12)

    def test_the_target_is_met_with_a_margin(self) -> None:
        for target in (0.5, 0.1, 0.01, 0.001):
            result = plan(target_mcse=target)
            assert result.predicted_mcse <= 0.8 * target * (1 + 1e-9)

    def test_more_variance_takes_more_steps(self) -> None:
        steps = [plan(variance=v).steps for v in (0.001, 0.5, 2.0, 8.0)]
        assert steps[0] == 1
        assert steps == sorted(set(steps))

    def test_a_smaller_error_takes_more_particles(self) -> None:
        counts = [plan(target_mcse=t).particles for t in (0.02, 0.01, 0.005)]
        assert counts == sorted(set(counts))
        assert counts[2] == pytest.approx(4 * counts[1], rel=0.01)

    def test_a_smaller_error_takes_less_variance(self) -> None:
        variances = [planned_variance(2000, t) for t in (0.1, 0.02, 0.015, 0.01)]
        assert variances[0] == MAX_VARIANCE
        assert variances[1:] == sorted(variances[1:], reverse=True)
        assert variances[-1] == MIN_VARIANCE
        assert planned_variance(300, 0.5) == MIN_VARIANCE  # too few particles for 400 draws
        assert planned_variance(600, 0.5) == pytest.approx(np.log(1.5))
        # Between the bounds the wanted particles reach the wanted error.
        assert np.expm1(variances[2]) / 2000 == pytest.approx(np.expm1(0.015**2))

    def test_never_less_than_asked_for(self) -> None:
        assert plan(particles=7000).particles == 7000
        assert plan(particles=1, variance=0.0).particles >= 1

    def test_a_smallest_number_of_steps(self) -> None:
        assert plan(least_steps=900).steps == 900
        assert plan(least_steps=900, budget_seconds=2e-6 * 400 * 50.5).steps == 50
        assert plan(least_steps=2) == plan()

    def test_errors_that_are_found_stay_below_the_target(self) -> None:
        """A plan by the weights of 512 particles is missed by at most 3 % of the runs."""
        rng, missed = np.random.default_rng(3), 0
        for _ in range(300):
            trial = ais(rng.normal(size=512))
            variance = np.log1p(512 * np.expm1(trial.mcse**2))
            planned = plan(variance=variance, steps=1, particles=2000, target_mcse=0.02)
            scale = planned.steps**-0.5
            missed += ais(scale * rng.normal(size=planned.particles)).mcse > 0.02
        assert missed <= 9

    def test_particles_of_zero_likelihood_count(self) -> None:
        all_live, few_live = plan(), plan(log_reference_mass=np.log(0.01))
        assert few_live.particles > 50 * all_live.particles / 2
        assert few_live.predicted_mcse <= 0.1 * (1 + 1e-9)


class TestPilotSummaries:
    def test_longer_paths_take_longer_trials(self, pilot: Pilot) -> None:
        longer = replace(pilot, discrepancy=100 * pilot.discrepancy)
        assert 1 <= trial_steps(pilot) < trial_steps(longer)

    def test_effective_length_scales_as_the_length(self, pilot: Pilot) -> None:
        length = effective_length(pilot)
        assert length.shape == (len(pilot.betas) - 1,)
        assert (length > 0).all()
        longer = replace(pilot, discrepancy=9 * pilot.discrepancy)
        np.testing.assert_allclose(effective_length(longer), 3 * length)

    def test_costly_steps_are_fewer(self, pilot: Pilot) -> None:
        costly = replace(pilot, cost=pilot.cost * 3)
        assert (effective_length(costly) < effective_length(pilot)).all()

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
    refine_length,
    trial_steps,
)
from tests.cases import log_gamma_draws, log_gamma_terms

ARGUMENTS = {
    "variance": 1.5,
    "steps": 100,
    "fixed_steps": None,
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
        assert result.particles == max(400, np.ceil(relative / np.expm1(0.01)))
        expected = np.sqrt(np.log1p(relative / result.particles))
        assert result.predicted_mcse == pytest.approx(expected, rel=1e-12)
        seconds = 2e-6 * result.steps * result.particles
        assert result.predicted_seconds == pytest.approx(seconds, rel=1e-12)

    def test_the_target_is_met(self) -> None:
        for target in (0.5, 0.1, 0.01, 0.001):
            result = plan(target_mcse=target)
            assert result.predicted_mcse <= target * (1 + 1e-9)

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

    def test_fixed_steps_are_kept(self) -> None:
        result = plan(fixed_steps=30)
        assert result.steps == 30
        assert result.particles == 400
        expected = np.sqrt(np.log1p(np.expm1(1.5 * 100 / 30) / 400))
        assert result.predicted_mcse == pytest.approx(expected)

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

    def test_refined_by_a_run(self, pilot: Pilot) -> None:
        betas = pma.power_schedule(50, 2.0)
        discrepancy = np.full(50, 0.01)
        length = refine_length(betas, discrepancy, pilot)
        assert length.shape == (50,)
        assert (length > 0).all()
        np.testing.assert_allclose(refine_length(betas, 4 * discrepancy, pilot), 2 * length)
        schedule = pma.variational_schedule(betas, length, 80)
        assert len(schedule) == 81

    def test_refined_where_the_pilot_took_one_step(self, pilot: Pilot) -> None:
        position = log_gamma_draws(0.0, 500, np.random.default_rng(2))
        flat = pma.GeometricPath(lambda x: log_gamma_terms(x)._replace(log_likelihood=0.0 * x[0]))
        single = run_pilot(flat, pma.HMC(), position, np.random.SeedSequence(2))
        assert len(single.betas) == 2
        length = refine_length(pma.linear_schedule(4), np.ones(4), single)
        np.testing.assert_allclose(length, length[0])

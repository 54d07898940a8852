"""A transition written by a user, through everything that takes transitions.

The kernel is `barker.Barker`; its invariance is tested with that of the other kernels.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation.pilot import Pilot, run_pilot
from pymc_anneal.base.arviz_compat import group
from tests.cases import log_gamma_draws, log_gamma_evidence, log_gamma_terms
from tests.problems import Problem, by_name, mixture_indicators
from tests.transitions.barker import Barker

SETTINGS = {"draws": 250, "chains": 2, "random_seed": 1, "progressbar": False}


def is_near(found: pma.LogEvidence, exact: float) -> bool:
    return abs(found.log_evidence - exact) < 4 * found.mcse < 1


class TestPilot:
    @pytest.fixture(scope="class")
    @classmethod
    def pilot(cls) -> Pilot:
        path, seed = pma.GeometricPath(log_gamma_terms), np.random.SeedSequence(1)
        position = log_gamma_draws(0.0, 2000, np.random.default_rng(1))
        return run_pilot(path, Barker(), position, seed)

    @pytest.mark.slow
    def test_the_parameters_are_set(self, pilot: Pilot) -> None:
        with jax.enable_x64(True):
            kernel = pilot.transition.at(jnp.asarray(0.7))
        assert isinstance(kernel, Barker)
        assert not kernel.tuning.free
        assert float(kernel.step_size) > 0
        assert kernel.scale.shape == (2, 2)

    def test_acceptance_is_near_its_target(self, pilot: Pilot) -> None:
        assert pilot.accept_rate[-1] == pytest.approx(Barker().tuning.target_accept, abs=0.15)

    def test_log_evidence(self, pilot: Pilot) -> None:
        assert abs(pilot.log_z - log_gamma_evidence()) < 6 * pilot.log_z_mcse

    def test_a_given_parameter_stays(self) -> None:
        path, seed = pma.GeometricPath(log_gamma_terms), np.random.SeedSequence(1)
        position = log_gamma_draws(0.0, 500, np.random.default_rng(1))
        found = run_pilot(path, Barker(step_size=0.4), position, seed)
        with jax.enable_x64(True):
            assert float(found.transition.at(jnp.asarray(0.7)).step_size) == pytest.approx(0.4)


@pytest.fixture(scope="module")
def schools() -> Problem:
    return by_name("eight_schools")


class TestSampleAis:
    @pytest.fixture(scope="class")
    @classmethod
    def result(cls, schools: Problem):
        kernel = {"transition": Barker(), "reverse_from": "draws", "target_mcse": 0.15}
        return pma.sample_ais(model=schools.build(), **kernel, **SETTINGS)

    @pytest.mark.slow
    def test_evidence_of_both_directions(self, result, schools: Problem) -> None:
        found, numbers = pma.log_evidence(result), group(result, "evidence")
        assert is_near(found, schools.log_evidence)
        for name in ("lower_bound", "upper_bound"):
            error = float(numbers[name]) - schools.log_evidence
            assert abs(error) < 5 * float(numbers[f"{name}_mcse"])

    @pytest.mark.slow
    def test_name_and_step_sizes_are_recorded(self, result) -> None:
        assert group(result, "evidence").attrs["transition"] == "Barker"
        assert (group(result, "annealing")["step_size"] > 0).all()

    def test_evaluations_are_counted(self, schools: Problem) -> None:
        kernel = Barker(step_size=0.5, scale=1.0)
        fixed = {"transition": kernel, "steps": 4, "schedule": "linear"}
        result = pma.sample_ais(model=schools.build(), **fixed, **SETTINGS)
        assert float(group(result, "evidence")["evaluations"]) == 500 * 4 * 3


@pytest.mark.slow
def test_beside_gibbs_sweeps() -> None:
    problem = mixture_indicators(6)
    model = pma.compile_model(problem.build())
    kernel = pma.default_transition(Barker(), model=model)
    assert kernel.name == "Barker, Gibbs"
    result = pma.sample_ais(model=model, transition=kernel, **SETTINGS)
    assert is_near(pma.log_evidence(result), problem.log_evidence)


@pytest.mark.slow
def test_without_gibbs_sweeps_discrete_variables_are_refused() -> None:
    with pytest.raises(TypeError, match="is discrete, and transition Barker moves real numbers"):
        pma.sample_ais(model=mixture_indicators(6).build(), transition=Barker(), **SETTINGS)

"""`rbm.sample_ais`: estimates along every path, the same bits, forward runs of every kind."""

from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal import rbm
from pymc_anneal.base.arviz_compat import group
from pymc_anneal.rbm.model import reference_log_partition_function
from pymc_anneal.rbm.paths import GeometricRBMPath
from pymc_anneal.rbm.spline_path import SplineRBMPath
from tests.rbm.small_paths import KNOTS
from tests.rbm.whole_runs import (
    BASE,
    LOG_Z,
    MODEL,
    QUICK,
    assert_same,
    betas_of,
    estimate,
    is_near,
    quick_run,
)
from tests.rbm_cases import enumerate_states, independent_units, random_rbm


@pytest.fixture(scope="module")
def result() -> Any:
    return quick_run()


class TestEstimates:
    @pytest.mark.parametrize(
        "schedule",
        [
            *("variational", "optimal_binned"),
            *("linear", "salakhutdinov_murray", "power", "geometric", "sigmoid"),
        ],
    )
    def test_every_schedule(self, schedule: str) -> None:
        assert is_near(estimate(schedule=schedule))

    def test_schedules_of_the_user(self) -> None:
        assert is_near(estimate(schedule=partial(pma.power_schedule, power=2.0)))
        arguments = {name: value for name, value in QUICK.items() if name != "steps"}
        result = rbm.sample_ais(MODEL, **arguments | {"schedule": np.linspace(0, 1, 151)})
        assert is_near(pma.log_evidence(result))
        assert group(result, "annealing").sizes["step"] == 150

    def test_largest_step(self) -> None:
        arguments = QUICK | {"schedule": "variational"}
        free, bound = (
            rbm.sample_ais(MODEL, **arguments, max_step=m, reference=BASE) for m in (None, 0.006)
        )
        assert np.diff(betas_of(free)).max() > 0.006
        assert np.diff(betas_of(bound)).max() <= 0.006 * (1 + 1e-9)
        assert is_near(pma.log_evidence(bound))

    @pytest.mark.parametrize("reference", ["uniform", BASE], ids=["uniform", "base_rates"])
    @pytest.mark.parametrize("transition", ["gibbs", "perfect"])
    def test_references_and_transitions(self, reference, transition) -> None:
        assert is_near(estimate(reference=reference, transition=transition))

    @pytest.mark.quick_cases("float64-perfect")
    @pytest.mark.parametrize(
        ("dtype", "transition"), [(np.float32, "gibbs"), (np.float64, "perfect")]
    )
    def test_hidden_biases_in_the_reference(self, dtype: type, transition: str) -> None:
        reference = independent_units(8, 6, seed=3, hidden=True)
        arguments = QUICK | {"reference": reference, "transition": transition}
        with jax.enable_x64(False):
            result = rbm.sample_ais(MODEL.astype(dtype), **arguments)
        assert is_near(pma.log_evidence(result))
        assert group(result, "evidence").attrs["path"] == "SplineRBMPath"

    @pytest.mark.slow
    def test_a_spline(self) -> None:
        reference = BASE.astype(np.float32)
        middle = random_rbm(8, 6, seed=4, scale=0.4, dtype=np.float32)
        path = SplineRBMPath.through(KNOTS, [reference, middle, MODEL])
        assert is_near(estimate(path=path, reference=reference))

    @pytest.mark.parametrize(
        "path",
        [
            GeometricRBMPath(np.zeros(8, np.float32), MODEL),
            GeometricRBMPath(
                BASE.visible_bias.astype(np.float32), random_rbm(8, 6, seed=9, dtype=np.float32)
            ),
        ],
        ids=["other_reference", "other_model"],
    )
    def test_a_path_between_other_rbms_is_refused(self, path) -> None:
        # Its weights would be those of another ratio of partition functions.
        with pytest.raises(ValueError, match="path"):
            rbm.sample_ais(MODEL, **QUICK, path=path, reference=BASE)

    def test_equal_rbms_have_no_error(self) -> None:
        reference = independent_units(8, 6)
        result = rbm.sample_ais(reference, **QUICK, reference=reference)
        found = pma.log_evidence(result)
        assert found.mcse == pytest.approx(0, abs=1e-9)
        assert found.log_evidence == pytest.approx(enumerate_states(reference).log_z, rel=1e-12)

    def test_sizes(self) -> None:
        # Even blocks, so that there are no more particles than asked for.
        arguments = {"chains": 3, "draws": 50, "block_size": 120, "steps": 20}
        data = rbm.sample_ais(MODEL, **QUICK | arguments)
        assert group(data, "annealing")["log_weight"].shape == (3, 50)
        assert group(data, "posterior")["visible"].shape == (3, 50, 8)
        assert group(data, "evidence")["particles"] == 150
        assert len(np.unique(group(data, "annealing")["log_weight"])) > 100


def spline() -> tuple[rbm.RBM, SplineRBMPath]:
    """Return a reference and a spline from it to the model."""
    reference = BASE.astype(np.float32)
    middle = random_rbm(8, 6, seed=4, scale=0.4, dtype=np.float32)
    return reference, SplineRBMPath.through(KNOTS, [reference, middle, MODEL])


class TestPlanned:
    """Steps and particles from a pilot and a trial."""

    @pytest.fixture(scope="class")
    @classmethod
    def planned(cls) -> Any:
        return rbm.sample_ais(MODEL, **QUICK | {"steps": "auto", "target_mcse": 0.05})

    def test_log_partition_function(self, planned) -> None:
        found = pma.log_evidence(planned)
        assert is_near(found)
        assert found.mcse < 0.1

    def test_pilot_and_plan_are_recorded(self, planned) -> None:
        evidence = group(planned, "evidence")
        assert float(evidence["planned_mcse"]) <= 0.05 * (1 + 1e-9)
        assert float(evidence["steps"]) >= 16
        counted = float(evidence["steps"] * evidence["particles"])
        assert float(evidence["evaluations"]) > counted + 100 * 1000  # the pilot's

    def test_a_smaller_error_takes_more_particles(self) -> None:
        settings = QUICK | {"steps": "auto"}
        few, many = (
            group(rbm.sample_ais(MODEL, **settings, target_mcse=target), "evidence")
            for target in (0.2, 0.02)
        )
        assert float(many["particles"]) > 2 * float(few["particles"])

    def test_from_the_model_to_the_reference(self) -> None:
        settings = {"steps": "auto", "direction": "reverse", "reference": BASE}
        assert is_near(estimate(**settings))

    @pytest.mark.slow
    def test_along_a_spline(self) -> None:
        reference, path = spline()
        assert is_near(estimate(steps="auto", path=path, reference=reference))


class TestResampled:
    """Populations of 25 particles, resampled on the way."""

    SIZE = {"draws": 200, "block_size": 50, "steps": 60}

    @pytest.mark.quick_cases("spline-ess")
    @pytest.mark.parametrize("resample", ["ess", 1.0])
    @pytest.mark.parametrize("path", ["geometric", "spline"])
    def test_log_partition_function(self, path: str, resample) -> None:
        reference, chosen = spline() if path == "spline" else (BASE, "geometric")
        settings = {"path": chosen, "reference": reference, "resample": resample}
        found = estimate(**self.SIZE, **settings)
        assert 0 < found.mcse < 0.2
        assert abs(found.log_evidence - LOG_Z) < 4 * found.mcse

    def test_draws_are_those_of_the_model(self) -> None:
        result = rbm.sample_ais(MODEL, **QUICK | self.SIZE, resample="ess")
        mean = group(result, "posterior")["visible"].values.mean(axis=(0, 1))
        p = enumerate_states(MODEL).moments.visible
        # Resampled particles share ancestors: an effective size of a quarter is assumed.
        assert (np.abs(mean - p) < 5 * np.sqrt(p * (1 - p) / 100)).all()

    @pytest.mark.parametrize("path", ["geometric", "spline"])
    @pytest.mark.slow
    def test_weights_of_populations_are_unbiased(self, path: str) -> None:
        # Few steps, always resampled: the mean of Z over many populations is not biased.
        reference, chosen = spline() if path == "spline" else (BASE, "geometric")
        result = rbm.sample_ais(
            MODEL,
            **QUICK | {"draws": 4000, "block_size": 40, "steps": 5},
            resample=1.0,
            path=chosen,
            reference=reference,
        )
        log_weight = group(result, "annealing")["log_weight"].values
        population = np.exp(log_weight.reshape(-1, 20) - self.log_ratio(reference)).mean(axis=1)
        error = population.std() / np.sqrt(population.size)
        assert error < 0.1
        assert abs(population.mean() - 1) < 5 * error

    @staticmethod
    def log_ratio(reference: rbm.RBM) -> float:
        return LOG_Z - reference_log_partition_function(reference)

    def test_planned(self) -> None:
        found = estimate(**self.SIZE | {"steps": "auto"}, resample="ess")
        assert abs(found.log_evidence - LOG_Z) < 4 * found.mcse

    def test_not_from_the_model_to_the_reference(self) -> None:
        with pytest.raises(ValueError, match="reverses single trajectories, which resampling has"):
            estimate(**self.SIZE, resample="ess", direction="reverse")

    def test_too_few_populations(self) -> None:
        with pytest.raises(ValueError, match="`resample` leaves 4 independent populations"):
            estimate(resample="ess")


class TestReproducibility:
    def test_the_number_of_cores_does_not_matter(self) -> None:
        first, second = (rbm.sample_ais(MODEL, **QUICK, cores=cores) for cores in (1, 2))
        assert_same(first, second)

    def test_seeds(self, result) -> None:
        assert_same(result, rbm.sample_ais(MODEL, **QUICK))
        other = rbm.sample_ais(MODEL, **QUICK | {"random_seed": 2})
        assert pma.log_evidence(other).log_evidence != pma.log_evidence(result).log_evidence

    def test_a_seed_sequence(self, result) -> None:
        again = rbm.sample_ais(MODEL, **QUICK | {"random_seed": np.random.SeedSequence(1)})
        assert_same(result, again)

    def test_the_precision_of_the_caller_does_not_matter(self, result) -> None:
        with jax.enable_x64(False):
            assert_same(result, rbm.sample_ais(MODEL, **QUICK))

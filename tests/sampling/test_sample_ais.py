"""`sample_ais`: seeds, and every way to pass its arguments."""

import jax
import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group, has_group
from pymc_anneal.transitions.by_temperature import TunedTransition
from tests.sampling.small_model import (
    QUICK,
    assert_same,
    build_small_model,
    evidence_attrs,
    small_model,
)


class TestSeed:
    @pytest.mark.parametrize("seed", [7, [1, 2], np.random.SeedSequence(5)])
    def test_the_same_seed_gives_the_same_result(self, seed) -> None:
        arguments = {**QUICK, "random_seed": seed}
        first, second = (pma.sample_ais(30, model=small_model(), **arguments) for _ in range(2))
        assert_same(first, second)

    def test_generator(self) -> None:
        first, second = (
            pma.sample_ais(30, model=small_model(), **{**QUICK, "random_seed": seed})
            for seed in (np.random.default_rng(3), np.random.default_rng(3))
        )
        assert_same(first, second)

    def test_other_seeds_give_other_results(self) -> None:
        values = [
            pma.log_evidence(
                pma.sample_ais(30, model=small_model(), **{**QUICK, "random_seed": seed})
            ).log_evidence
            for seed in (1, 2, None, None)
        ]
        assert len(set(values)) == 4

    @pytest.mark.parametrize("cores", [1, 2, 4])
    def test_the_number_of_cores_does_not_matter(self, cores: int) -> None:
        arguments = {**QUICK, "block_size": 20}
        expected = pma.sample_ais(50, model=small_model(), **arguments)
        assert_same(expected, pma.sample_ais(50, model=small_model(), cores=cores, **arguments))

    @pytest.mark.slow
    def test_automatic_runs_are_reproducible(self) -> None:
        arguments = {"chains": 2, "random_seed": 3, "progressbar": False, "model": small_model()}
        assert_same(pma.sample_ais(100, **arguments), pma.sample_ais(100, **arguments))

    def test_numpys_global_state_is_not_used(self) -> None:
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        pma.sample_ais(20, model=small_model(), **QUICK)
        np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002

    def test_jaxs_settings_do_not_change(self) -> None:
        before = dict(jax.config.values)
        pma.sample_ais(20, model=small_model(), **QUICK)
        assert dict(jax.config.values) == before


class TestArguments:
    def test_model_on_the_stack(self) -> None:
        with build_small_model():
            result = pma.sample_ais(20, **QUICK)
        assert has_group(result, "evidence")

    def test_a_model_gives_the_same_bits_as_a_compiled_one(self) -> None:
        assert_same(
            pma.sample_ais(20, model=build_small_model(), **QUICK),
            pma.sample_ais(20, model=small_model(), **QUICK),
        )

    @pytest.mark.parametrize(
        "schedule",
        [
            *("linear", "power", "geometric", "sigmoid", "salakhutdinov_murray"),
            *("variational", "optimal_binned"),
        ],
    )
    def test_schedules_by_name(self, schedule: str) -> None:
        result = pma.sample_ais(20, model=small_model(), **{**QUICK, "schedule": schedule})
        betas = group(result, "annealing")["beta"].values[0]
        assert betas.shape == (5,)
        assert schedule in evidence_attrs(result)["schedule"]

    def test_schedule_as_an_array(self) -> None:
        arguments = {**QUICK, "schedule": [0.0, 0.01, 0.2, 1.0], "steps": "auto"}
        result = pma.sample_ais(20, model=small_model(), **arguments)
        betas = group(result, "annealing")["beta"].values[0]
        np.testing.assert_array_equal(betas, [0.01, 0.2, 1.0])
        assert evidence_attrs(result)["schedule"] == "array"

    def test_schedule_as_a_function(self) -> None:
        def cubic(steps: int) -> np.ndarray:
            return pma.linear_schedule(steps) ** 3

        result = pma.sample_ais(20, model=small_model(), **{**QUICK, "schedule": cubic})
        np.testing.assert_allclose(
            group(result, "annealing")["beta"].values[0], (np.arange(1, 6) / 5) ** 3
        )
        assert evidence_attrs(result)["schedule"] == "cubic"

    @pytest.mark.parametrize(
        ("name", "kernel"),
        [
            pytest.param("hmc", "HMC", marks=pytest.mark.slow),
            ("random_walk", "RandomWalkMetropolis"),
        ],
    )
    def test_transitions_by_name(self, name: str, kernel: str) -> None:
        result = pma.sample_ais(20, model=small_model(), **{**QUICK, "transition": name})
        assert evidence_attrs(result)["transition"] == kernel
        assert (group(result, "annealing")["step_size"] > 0).all()

    @pytest.mark.slow
    def test_transition_objects(self) -> None:
        blackjax = pytest.importorskip("blackjax")
        parameters = {
            "step_size": 0.2,
            "num_integration_steps": 2,
            "inverse_mass_matrix": np.ones(3),
        }
        kernels = [
            pma.MALA(0.3, 1, 1.0),
            pma.HMC(n_steps=3),
            TunedTransition(
                np.array([1.0]), pma.HMC(np.array([0.3]), np.array([2]), np.ones((1, 3)))
            ),
            pma.BlackJAXKernel(blackjax.hmc, parameters),
        ]
        values = [
            pma.log_evidence(
                pma.sample_ais(400, model=small_model(), **{**QUICK, "transition": kernel})
            )
            for kernel in kernels
        ]
        centre = np.mean([v.log_evidence for v in values])
        for value in values:
            assert abs(value.log_evidence - centre) < 5 * value.mcse

    def test_path_object(self) -> None:
        path = pma.GeometricPath(small_model().log_terms)
        assert_same(
            pma.sample_ais(20, model=small_model(), **{**QUICK, "path": path}),
            pma.sample_ais(20, model=small_model(), **QUICK),
        )

    @pytest.mark.slow
    def test_fixed_steps_with_a_pilot(self) -> None:
        arguments = {**QUICK, "transition": "hmc", "schedule": "variational", "steps": 17}
        result = pma.sample_ais(50, model=small_model(), **arguments)
        assert group(result, "annealing").sizes["step"] == 17

    @pytest.mark.slow
    def test_evaluations_of_all_stages_count(self) -> None:
        def run(**more) -> tuple[float, float]:
            result = pma.sample_ais(
                50, chains=2, model=small_model(), random_seed=3, progressbar=False, **more
            )
            data = group(result, "evidence")
            return float(data["evaluations"]), float(data["steps"] * data["particles"])

        plain, counted = run()
        assert plain > counted  # a step takes three evaluations at least
        both, _ = run(reverse_from="draws")
        assert both > plain + counted

    @pytest.mark.slow
    def test_the_barrier_of_a_long_run_is_the_length_of_the_path(self) -> None:
        # mu ~ N(0, 1), y ~ N(mu, sigma): int sqrt(Var_beta[V]) dbeta by quadrature.
        y, sigma = 3.0, 0.5
        with pm.Model() as model:
            pm.Normal("y", pm.Normal("mu"), sigma, observed=[y])
        beta = np.linspace(0, 1, 20_001) ** 2
        variance = 1 / (1 + beta / sigma**2)
        mean = variance * beta * y / sigma**2
        speed = np.sqrt(variance**2 / 2 + variance * (y - mean) ** 2) / sigma**2
        exact = np.trapezoid(speed, beta)
        result = pma.sample_ais(
            1000,
            chains=2,
            steps=100,
            reference="prior",
            random_seed=4,
            progressbar=False,
            model=model,
        )
        assert pma.log_evidence(result).barrier == pytest.approx(exact, rel=0.05)

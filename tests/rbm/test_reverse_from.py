"""`rbm.sample_ais(reverse_from=...)`: both directions of a path, and the verdict on them."""

import importlib

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal import rbm
from pymc_anneal.base.arviz_compat import group, has_group
from tests.rbm.whole_runs import LOG_Z, MODEL, QUICK, is_near, quick_run
from tests.rbm_cases import random_rbm

DATA = rbm.sample_exact(MODEL, 300, random_seed=2)


def two_parts(units: int = 30) -> rbm.RBM:
    """Return an RBM of two parts, the second with 15 times the mass of the first.

    At higher temperatures the first one, with the hidden unit off, has nearly all of the mass, and
    Gibbs sampling does not leave it: forward runs miss the second part.
    """
    weights = np.full((units, 1), 8.0, np.float32)
    return rbm.RBM(np.full(units, -1.0), np.array([-6.6 * units]), weights)


TWO_PARTS = two_parts()


def run(model: rbm.RBM = MODEL, **arguments: Any) -> Any:
    return rbm.sample_ais(model, **QUICK | arguments)


@pytest.fixture(scope="module")
def result() -> Any:
    return run(reverse_from=DATA)


class TestExactDraws:
    def test_both_directions_enclose_the_exact_value(self, result) -> None:
        found, numbers = pma.log_evidence(result), group(result, "evidence")
        assert found.verdict.trusted
        assert is_near(found)
        assert found.mcse < float(numbers["lower_bound_mcse"])
        for name, side in (("lower_bound", 1), ("upper_bound", -1)):
            error = float(numbers[f"{name}_mcse"])
            assert side * (float(numbers[name]) - LOG_Z) < 4 * error

    def test_container(self, result) -> None:
        assert has_group(result, "reverse_annealing")
        assert group(result, "evidence").attrs["reverse_start"].startswith("data, after")
        betas = group(result, "reverse_annealing")["beta"].values[0]
        np.testing.assert_allclose(betas, 1 - np.arange(1, 201) / 200, atol=1e-15)

    def test_the_forward_run_does_not_depend_on_it(self, result) -> None:
        left, right = (group(r, "annealing")["log_weight"] for r in (result, quick_run()))
        np.testing.assert_array_equal(left, right)

    def test_draws_of_the_run(self) -> None:
        found = run(reverse_from="draws")
        assert is_near(pma.log_evidence(found))
        assert group(found, "evidence").attrs["reverse_start"].startswith("draws of this run")

    def test_grey_values_are_probabilities(self) -> None:
        # Rounding instead would put all chains at one start.
        grey = np.full((3, 8), 0.45)
        assert is_near(pma.log_evidence(run(reverse_from=grey)))


class TestMissedPart:
    """What forward runs miss, their weights do not show."""

    settings = QUICK | {"draws": 200, "steps": 100, "block_size": 400}
    exact = rbm.log_partition_function(TWO_PARTS)

    def run(self, **arguments: Any) -> pma.LogEvidence:
        result = rbm.sample_ais(TWO_PARTS, **self.settings | arguments)
        return pma.log_evidence(result)

    @pytest.fixture
    def alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Silence the mean-field bound, which sees the other part."""
        module = importlib.import_module("pymc_anneal.rbm.sample_ais")
        monkeypatch.setattr(module, "mean_field_bound", lambda model: -np.inf)

    def test_the_mean_field_bound_sees_it(self) -> None:
        assert "by a mean-field bound" in str(self.run().verdict)

    def test_forward_runs_alone_are_trusted_and_wrong(self, alone) -> None:
        found = self.run()
        assert found.verdict.trusted
        assert self.exact - found.log_evidence > 2.0 > 20 * found.mcse

    @pytest.mark.parametrize("share", [0.9, 0.3])
    def test_data_of_the_other_part(self, share: float) -> None:
        rng = np.random.default_rng(3)
        on = rng.random(400) < share
        data = np.where(on[:, None], 1.0, rng.random((400, TWO_PARTS.n_visible)) < 0.27)
        verdict = self.run(reverse_from=data).verdict
        assert verdict.status == "do not trust"
        assert "one direction leaves out" in str(verdict) or "contradict" in str(verdict)

    def test_data_of_the_same_part_show_nothing(self, alone) -> None:
        # The limit of the check: no start lies in what the forward runs missed.
        data = np.random.default_rng(4).random((400, TWO_PARTS.n_visible)) < 0.27
        found = self.run(reverse_from=data)
        assert found.verdict.trusted
        assert self.exact - found.log_evidence > 2.0


@pytest.mark.slow
def test_exact_draws_of_random_machines_give_no_false_alarm() -> None:
    settings = QUICK | {"draws": 200, "steps": 1000, "block_size": 400}
    wrong = []
    for seed in range(20):
        model = random_rbm(24, 16, seed=seed, scale=1.5, dtype=np.float32)
        draws = rbm.sample_exact(model, 400, random_seed=seed)
        found = pma.log_evidence(rbm.sample_ais(model, reverse_from=draws, **settings))
        error = abs(found.log_evidence - rbm.log_partition_function(model))
        wrong.append(found.verdict.status == "do not trust" or error > 4 * found.mcse)
    assert sum(wrong) <= 1


WEIGHTS = Path(__file__).parents[2] / "benchmarks" / "papers" / "weights"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cd1_20", "pcd_12", "pcd_20"])
@pytest.mark.parametrize("start", ["exact", "gibbs"])
def test_trained_machines_are_never_trusted_and_wrong(name: str, start: str) -> None:
    """See benchmarks/rbm_reverse.py for more runs, from training images."""
    model = rbm.RBM.load(WEIGHTS / f"{name}.npz").astype(np.float32)
    log_z = rbm.log_partition_function(model)
    draws = {
        "exact": lambda seed: rbm.sample_exact(model, 400, random_seed=seed),
        "gibbs": lambda seed: model.sample(400, steps=100, random_seed=seed),
    }
    for seed in range(3):
        result = rbm.sample_ais(
            model,
            reverse_from=draws[start](seed),
            **QUICK | {"draws": 200, "steps": 2000, "block_size": 400, "random_seed": seed},
        )
        found = pma.log_evidence(result)
        right = abs(found.log_evidence - log_z) < 4 * found.mcse
        assert right or not found.verdict.trusted, f"{found}, exact {log_z}"


class TestArguments:
    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ("data", "`reverse_from` is 'data', expected \"draws\", an array of data of shape"),
            (np.zeros((5, 7)), r"`reverse_from` has shape \(5, 7\), expected \(..., 8\)"),
            (np.zeros(8), r"`reverse_from` has shape \(8,\), expected \(n, n_visible\)"),
            (np.full((5, 8), 255.0), "`reverse_from` ranges from 255.0 to 255.0"),
        ],
    )
    def test_values(self, value: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            run(reverse_from=value)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"direction": "reverse"}, "leave out direction"),
            ({"resample": 0.5, "block_size": 20}, "leave out `resample`"),
        ],
    )
    def test_combinations(self, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            run(reverse_from=DATA, **arguments)

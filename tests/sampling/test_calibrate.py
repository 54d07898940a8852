"""Calibration on simulated data: sound settings pass, faults are found."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.sampling.calibrate import _assess, weighted_rank
from pymc_anneal.transitions import random_walk
from tests.model.simulated_models import counts, folded
from tests.problems import by_name

SOUND = {"draws": 100, "chains": 2, "progressbar": False}
KERNEL = pma.RandomWalkMetropolis(0.7, 3, 1.0)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class OneSided(pma.Transition):
    """A wrong kernel that never crosses zero."""

    kernel: Any

    def step(self, key, state, path, beta):
        new, info = self.kernel.step(key, state, path, beta)
        crossed = (new.position * state.position < 0)[:, 0]

        def undo(a, b):
            return jnp.where(crossed.reshape(-1, *[1] * (a.ndim - 1)), b, a)

        return jax.tree.map(undo, new, state), info


def start_on_one_side(monkeypatch) -> None:
    original = CompiledModel.sample_prior
    monkeypatch.setattr(CompiledModel, "sample_prior", lambda self, *a: np.abs(original(self, *a)))


class TestRanks:
    def test_by_hand(self) -> None:
        a = np.log([0.1, 0.4, 0.5])
        b = np.log([0.05, 0.2, 0.45, 0.6])
        np.testing.assert_allclose(weighted_rank(b, a), [0, 0.1, 0.5, 1])
        # A tie counts half.
        np.testing.assert_allclose(weighted_rank(a, a), [0.05, 0.3, 0.75])

    def test_uniform_for_normal_log_weights(self) -> None:
        rng = np.random.default_rng(1)
        a, b = rng.normal(-1, np.sqrt(2), 100_000), rng.normal(1, np.sqrt(2), 2000)
        assert stats.kstest(weighted_rank(b, a), "uniform").pvalue > 1e-3

    def test_zero_weights(self) -> None:
        a = np.array([-np.inf, 0.0])
        np.testing.assert_allclose(weighted_rank(np.array([-1.0, 1.0]), a), [0, 1])


class TestVerdict:
    def test_sound_settings(self) -> None:
        found = pma.calibrate(20, model=counts(), random_seed=1, **SOUND)
        assert found.verdict.status == "calibrated"
        assert len(found.table) == 20
        assert found.coverage >= 0.9
        assert "verdict: calibrated" in repr(found)
        assert (found.table["reference"] == "mixture").all()

    @pytest.mark.slow
    @pytest.mark.parametrize(("reference", "used"), [("prior", "prior"), ("pilot", "mixture")])
    def test_the_reference(self, reference, used) -> None:
        settings = {"reference": reference, "random_seed": 1, **SOUND}
        found = pma.calibrate(3, model=counts(), **settings)
        assert (found.table["reference"] == used).all()
        assert found.table["rank"].between(0, 1).all()

    @pytest.mark.parametrize(("n", "status"), [(1, "more evidence needed"), (10, "calibrated")])
    def test_few_data_sets_prove_nothing(self, n: int, status: str) -> None:
        ranks = np.linspace(0.1, 0.9, n) if n > 1 else [0.9]
        sound = {"rank": ranks, "spread": np.abs(np.array(ranks) - 0.5), "covers": True}
        table = pd.DataFrame({**sound, "gap": 0.0, "variance": 0.1, "steps": 5})
        assert _assess(table).status == status
        assert _assess(table.assign(gap=2.0)).status == "not calibrated"

    def test_a_wrong_acceptance_ratio(self, monkeypatch) -> None:
        def always(uniform, log_accept, proposal, current):
            return proposal, jnp.ones(len(log_accept))

        monkeypatch.setattr(random_walk, "accept_reject", always)
        kernel = pma.RandomWalkMetropolis(0.71, 3, 1.0, target_accept=0.3)  # compiled afresh
        found = pma.calibrate(
            20,
            model=counts(),
            transition=kernel,
            steps=20,
            schedule="linear",
            random_seed=1,
            **SOUND,
        )
        assert found.verdict.status == "not calibrated"

    @pytest.mark.slow
    def test_far_too_few_steps(self) -> None:
        found = pma.calibrate(
            20,
            model=folded(),
            transition=KERNEL,
            steps=1,
            schedule="linear",
            random_seed=1,
            draws=20,
            chains=2,
            progressbar=False,
        )
        assert found.verdict.status == "not calibrated"
        assert "take more steps" in found.verdict.reasons[-1]

    @pytest.mark.slow
    def test_a_mode_that_is_never_reached(self, monkeypatch) -> None:
        start_on_one_side(monkeypatch)
        found = pma.calibrate(
            20, model=folded(), transition=OneSided(KERNEL), steps=100, random_seed=1, **SOUND
        )
        assert found.verdict.status == "not calibrated"

    @pytest.mark.slow
    def test_the_same_seed_gives_the_same_table(self) -> None:
        settings = {"steps": 20, "schedule": "linear", "transition": KERNEL}
        compiled = pma.compile_model(counts())
        first, second = (
            pma.calibrate(3, model=compiled, random_seed=5, **settings, **SOUND) for _ in range(2)
        )
        assert first.table.equals(second.table)


class TestErrors:
    def test_potential(self) -> None:
        with pytest.raises(NotImplementedError, match="Potential 'positive'"):
            pma.calibrate(model=by_name("half_space_data").build(), progressbar=False)

    def test_nothing_observed(self) -> None:
        with pm.Model() as model:
            pm.Normal("x")
        with pytest.raises(ValueError, match="no observed variable"):
            pma.calibrate(model=model, progressbar=False)

    def test_nothing_to_calibrate(self) -> None:
        with pm.Model() as model:
            pm.Normal("y", observed=1.0)
        with pytest.raises(ValueError, match="no free variable, and there are no runs"):
            pma.calibrate(model=model, progressbar=False)

    def test_a_transform_that_cuts_the_prior(self) -> None:
        with pytest.raises(NotImplementedError, match="restricts the prior"):
            pma.calibrate(model=by_name("ordered_transform").build(), progressbar=False)

    def test_a_prior_that_depends_on_data(self) -> None:
        with pytest.raises(NotImplementedError, match="another one for data that are simulated"):
            pma.calibrate(model=by_name("observed_parents").build(), progressbar=False)

    def test_the_number_of_data_sets(self) -> None:
        with pytest.raises(ValueError, match="`n_datasets` is 0"):
            pma.calibrate(0, model=counts(), progressbar=False)


@pytest.mark.slow
class TestRates:
    """False alarms of sound settings, and faults that are found, over twenty calibrations."""

    def alarms(self, model, n_datasets: int = 20, **settings) -> int:
        compiled = pma.compile_model(model)
        settings |= {"progressbar": False}
        found = [
            pma.calibrate(n_datasets, model=compiled, random_seed=[7, i], **settings)
            for i in range(20)
        ]
        return sum(not f.verdict.trusted for f in found)

    @pytest.mark.parametrize(
        "build", [counts, by_name("eight_schools").build, by_name("imputed_missing").build]
    )
    def test_false_alarms(self, build) -> None:
        assert self.alarms(build()) <= 1

    def test_a_wrong_acceptance_ratio(self, monkeypatch) -> None:
        def always(uniform, log_accept, proposal, current):
            return proposal, jnp.ones(len(log_accept))

        monkeypatch.setattr(random_walk, "accept_reject", always)
        kernel = pma.RandomWalkMetropolis(0.72, 3, 1.0, target_accept=0.3)
        settings = {"transition": kernel, "steps": 20, "schedule": "linear"}
        assert self.alarms(counts(), **settings) >= 19

    def test_far_too_few_steps(self) -> None:
        settings = {"transition": KERNEL, "steps": 1, "schedule": "linear", "draws": 20}
        assert self.alarms(folded(), **settings) >= 19

    def test_a_mode_that_is_never_reached(self, monkeypatch) -> None:
        # Only some data sets show the missing half of the space: their default number is needed.
        start_on_one_side(monkeypatch)
        settings = {"transition": OneSided(KERNEL), "steps": 100, **SOUND}
        assert self.alarms(folded(), 40, **settings) >= 19

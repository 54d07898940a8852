"""Calibration on simulated data: sound settings pass, planted faults are found."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.model.compile import CompiledModel, compile_model
from pymc_anneal.model.simulate import compile_for_new_data, simulate
from pymc_anneal.sampling.calibrate import weighted_rank
from pymc_anneal.transitions import random_walk
from tests.problems import by_name


def counts():
    """Poisson counts with a gamma rate: a posterior that a random walk samples well."""
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1)
        pm.Poisson("y", rate, observed=[3, 1, 4])
    return model


def folded():
    """Two modes, of which the prior favours the one below zero."""
    with pm.Model() as model:
        x = pm.Normal("x", -1, 1)
        pm.Normal("y", 3 * x**2 + x, 0.2, observed=[2.0])
    return model


SOUND = {"draws": 100, "chains": 2, "progressbar": False}
KERNEL = pma.RandomWalkMetropolis(0.7, 3, 1.0)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class OneSided:
    """A kernel that refuses to cross zero: planted fault, half of the space is never entered."""

    kernel: Any

    def init(self, key, position):
        return self.kernel.init(key, position)

    def at(self, beta):
        return self

    def step(self, key, state, path, beta):
        new, info = self.kernel.step(key, state, path, beta)
        crossed = (new.position * state.position < 0)[:, 0]

        def kept(a, b):
            return jnp.where(crossed.reshape(-1, *[1] * (a.ndim - 1)), b, a)

        return jax.tree.map(kept, new, state), info


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

    def test_uniform_for_normal_work(self) -> None:
        rng = np.random.default_rng(1)
        a, b = rng.normal(-1, np.sqrt(2), 100_000), rng.normal(1, np.sqrt(2), 2000)
        assert stats.kstest(weighted_rank(b, a), "uniform").pvalue > 1e-3

    def test_zero_weights(self) -> None:
        a = np.array([-np.inf, 0.0])
        np.testing.assert_allclose(weighted_rank(np.array([-1.0, 1.0]), a), [0, 1])


class TestSimulation:
    def test_joint_draws(self) -> None:
        """Data follow the parameters they come with."""
        compiled = compile_model(folded())
        x, (y,) = simulate(compiled, np.random.SeedSequence(1), 4000)
        assert stats.kstest(x[:, 0] + 1, "norm").pvalue > 1e-3
        residual = (y[:, 0] - 3 * x[:, 0] ** 2 - x[:, 0]) / 0.2
        assert stats.kstest(residual, "norm").pvalue > 1e-3

    def test_data_as_an_argument(self) -> None:
        compiled = compile_model(counts())
        log_terms = compile_for_new_data(compiled)
        with jax.enable_x64(True):
            x = jnp.array([0.3])
            own = log_terms((np.array([3, 1, 4]),), x)
            other = log_terms((np.array([0, 1, 9]),), x)
            expected = compiled.log_terms(x)
        np.testing.assert_allclose(own, expected, rtol=1e-12)
        rate = np.exp(0.3)
        exact = stats.poisson.logpmf([0, 1, 9], rate).sum()
        assert float(other.log_likelihood) == pytest.approx(exact, rel=1e-12)

    def test_pm_data_and_one_draw(self) -> None:
        with pm.Model() as model:
            y = pm.Data("y", np.array([1.0, 2.0]))
            pm.Normal("z", pm.Normal("mu"), 1, observed=y)
        x, (z,) = simulate(compile_model(model), np.random.SeedSequence(1), 1)
        assert x.shape == (1, 1)
        assert z.shape == (1, 2)


class TestVerdict:
    def test_sound_settings(self) -> None:
        found = pma.calibrate(counts(), 20, random_seed=1, **SOUND)
        assert found.verdict == "calibrated"
        assert len(found.table) == 20
        assert found.coverage >= 0.9
        assert "verdict: calibrated" in repr(found)

    def test_a_wrong_acceptance_ratio(self, monkeypatch) -> None:
        def always(key, log_accept, proposal, current):
            return proposal, jnp.ones(len(log_accept))

        monkeypatch.setattr(random_walk, "accept_reject", always)
        kernel = pma.RandomWalkMetropolis(0.71, 3, 1.0, target_accept=0.3)  # compiled afresh
        found = pma.calibrate(
            counts(), 20, transition=kernel, steps=20, schedule="linear", random_seed=1, **SOUND
        )
        assert found.verdict.startswith("not calibrated")

    @pytest.mark.slow
    def test_far_too_few_steps(self) -> None:
        found = pma.calibrate(
            folded(),
            20,
            transition=KERNEL,
            steps=1,
            schedule="linear",
            random_seed=1,
            draws=20,
            chains=2,
            progressbar=False,
        )
        assert found.verdict.startswith("not calibrated")
        assert "take more steps" in found.verdict

    @pytest.mark.slow
    def test_a_mode_that_is_never_reached(self, monkeypatch) -> None:
        start_on_one_side(monkeypatch)
        found = pma.calibrate(
            folded(), 20, transition=OneSided(KERNEL), steps=100, random_seed=1, **SOUND
        )
        assert found.verdict.startswith("not calibrated")

    @pytest.mark.slow
    def test_same_seed_same_answer(self) -> None:
        settings = {"steps": 20, "schedule": "linear", "transition": KERNEL}
        compiled = compile_model(counts())
        first, second = (
            pma.calibrate(compiled, 3, random_seed=5, **settings, **SOUND) for _ in range(2)
        )
        assert first.table.equals(second.table)


class TestRefusals:
    def test_potential(self) -> None:
        with pytest.raises(NotImplementedError, match="Potential 'positive'"):
            pma.calibrate(by_name("half_space_data").build(), progressbar=False)

    def test_nothing_observed(self) -> None:
        with pm.Model() as model:
            pm.Normal("x")
        with pytest.raises(ValueError, match="no observed variable"):
            pma.calibrate(model, progressbar=False)

    def test_a_transform_that_cuts_the_prior(self) -> None:
        with pytest.raises(NotImplementedError, match="restricts the prior"):
            pma.calibrate(by_name("ordered_transform").build(), progressbar=False)

    def test_data_sets(self) -> None:
        with pytest.raises(ValueError, match="`n_datasets` is 0"):
            pma.calibrate(counts(), 0, progressbar=False)


@pytest.mark.slow
class TestRates:
    """How often sound settings alarm, and how often faults are found, over twenty calibrations."""

    def alarms(self, model, n_datasets: int = 20, **settings) -> int:
        compiled = compile_model(model)
        settings |= {"progressbar": False}
        found = [
            pma.calibrate(compiled, n_datasets, random_seed=[7, i], **settings) for i in range(20)
        ]
        return sum(f.verdict != "calibrated" for f in found)

    @pytest.mark.parametrize(
        "build", [counts, by_name("eight_schools").build, by_name("imputed_missing").build]
    )
    def test_false_alarms(self, build) -> None:
        assert self.alarms(build()) <= 1

    def test_a_wrong_acceptance_ratio(self, monkeypatch) -> None:
        def always(key, log_accept, proposal, current):
            return proposal, jnp.ones(len(log_accept))

        monkeypatch.setattr(random_walk, "accept_reject", always)
        kernel = pma.RandomWalkMetropolis(0.72, 3, 1.0, target_accept=0.3)
        settings = {"transition": kernel, "steps": 20, "schedule": "linear"}
        assert self.alarms(counts(), **settings) >= 19

    def test_far_too_few_steps(self) -> None:
        settings = {"transition": KERNEL, "steps": 1, "schedule": "linear", "draws": 20}
        assert self.alarms(folded(), **settings) >= 19

    def test_a_mode_that_is_never_reached(self, monkeypatch) -> None:
        """With half of the space missing only part of the data sets tell: the default number."""
        start_on_one_side(monkeypatch)
        settings = {"transition": OneSided(KERNEL), "steps": 100, **SOUND}
        assert self.alarms(folded(), 40, **settings) >= 19

"""From arrays to the container: resampling, datasets, rounds put together."""

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.annealing.resampling import resample
from pymc_anneal.evidence.ais import ais, bootstrap_interval, combined_log_weights
from pymc_anneal.results.container import dataset


class TestResample:
    def test_shares(self) -> None:
        # Systematic resampling: every particle comes up its share of the draws, rounded.
        rng = np.random.default_rng(1)
        log_weight = np.log(
            [0.5, 0.2, 0.0, 0.3], where=[True, True, False, True], out=np.full(4, -np.inf)
        )
        counts = np.bincount(resample(log_weight, 1000, rng), minlength=4)
        assert counts[2] == 0
        assert np.abs(counts - [500, 200, 0, 300]).max() <= 1

    def test_order_is_random(self) -> None:
        rng = np.random.default_rng(2)
        index = resample(np.zeros(500), 500, rng)
        assert sorted(index) == list(range(500))
        assert abs(np.corrcoef(index, np.arange(500))[0, 1]) < 5 / np.sqrt(500)

    def test_more_draws_than_particles(self) -> None:
        index = resample(np.array([0.0, -800.0]), 7, np.random.default_rng(3))
        assert index.tolist() == [0] * 7


class TestDataset:
    def test_names_of_dims(self) -> None:
        values = {"a": np.zeros((2, 3, 4, 5)), "b": np.zeros((2, 3))}
        data = dataset(values, ("chain", "draw"), {"g": list("wxyz")}, {"a": ["g"]})
        assert data["a"].dims == ("chain", "draw", "g", "a_dim_1")
        assert data["b"].dims == ("chain", "draw")
        assert data["g"].values.tolist() == list("wxyz")
        assert data["a_dim_1"].values.tolist() == list(range(5))

    def test_attributes(self) -> None:
        assert dataset({"a": np.zeros(2)}, (), attrs={"unit": "nats"}).attrs == {"unit": "nats"}


class TestCombinedRounds:
    def rounds(self, seed: int = 4) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        return [rng.normal(-0.5, 1.0, (2, 50)), rng.normal(-0.125, 0.5, (2, 200))]

    def test_one_round_is_left_alone(self) -> None:
        first = self.rounds()[0]
        np.testing.assert_allclose(combined_log_weights([first], [7.0]), first)

    def test_the_mean_is_shared_by_cost(self) -> None:
        weights = self.rounds()
        pooled = combined_log_weights(weights, [1.0, 3.0])
        means = [np.exp(w).mean() for w in weights]
        assert pooled.shape == (2, 250)
        assert np.exp(pooled).mean() == pytest.approx(0.25 * means[0] + 0.75 * means[1])

    def test_exact_rounds_have_no_error(self) -> None:
        equal = [np.zeros((2, 50)), np.zeros((2, 200))]
        pooled, strata = combined_log_weights(equal, [1.0, 12.0]), np.repeat([1, 2], [50, 200])
        assert ais(pooled, strata).mcse == pytest.approx(0, abs=1e-9)
        lower, upper = bootstrap_interval(pooled, strata=strata, rng=np.random.default_rng(1))
        assert lower == pytest.approx(0, abs=1e-12)
        assert upper == pytest.approx(0, abs=1e-12)

    def test_error_and_interval_of_two_rounds_cover(self) -> None:
        strata, scores, covered = np.repeat([1, 2], [50, 200]), [], 0
        for seed in range(500):
            pooled = combined_log_weights(self.rounds(seed), [1.0, 3.0])
            estimate = ais(pooled, strata)
            rng = np.random.default_rng(seed)
            lower, upper = bootstrap_interval(pooled, strata=strata, resamples=500, rng=rng)
            scores.append(estimate.log_evidence / estimate.mcse)
            covered += lower <= 0 <= upper
        assert np.std(scores) == pytest.approx(1, abs=5 / np.sqrt(2 * 500))
        assert 0.92 <= covered / 500 <= 0.98


class TestSummary:
    def test_evidence_beside_the_posterior(self) -> None:
        with pm.Model() as model:
            mu = pm.Normal("mu", 0, 3)
            pm.Normal("y", mu, 1, observed=[1.0, 2.0])
        idata = pma.sample_ais(100, steps=20, model=model, progressbar=False, random_seed=1)
        table, found = pma.summary(idata), pma.log_evidence(idata)
        assert table.index.tolist() == ["log_evidence", "mu"]
        assert table.loc["log_evidence", "mean"] == pytest.approx(found.log_evidence, abs=1e-3)
        assert table.loc["log_evidence", "mcse_mean"] == pytest.approx(found.mcse, abs=1e-3)
        assert float(table.loc["mu", "mean"]) == pytest.approx(1.4, abs=0.3)
        assert table.attrs["verdict"] == found.verdict
        assert pma.summary(idata, kind="stats").index.tolist() == ["log_evidence", "mu"]

    def test_not_a_result(self) -> None:
        with pytest.raises(ValueError, match="group 'evidence'"):
            pma.summary({})

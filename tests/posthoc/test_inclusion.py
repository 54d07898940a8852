"""Inclusion probabilities and averages over models, on four-number inputs."""

import numpy as np
import pytest
import xarray as xr

from scipy.special import softmax

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container, draws_ess, group
from pymc_anneal.posthoc.average import _row
from pymc_anneal.results.container import dataset

TRUST = pma.Verdict("trust")
MODELS = {"none": [], "a": ["a"], "b": ["b"], "ab": ["a", "b"]}
LOG_Z = np.array([-5.0, -3.0, -4.0, -3.5])


def evidence(value: float, mcse: float = 0.02, verdict: pma.Verdict = TRUST) -> pma.LogEvidence:
    return pma.LogEvidence(value, mcse, (value, value), 500.0, 0.1, 2.0, verdict)


def evidences(mcse: float = 0.02) -> dict[str, pma.LogEvidence]:
    return {name: evidence(z, mcse) for name, z in zip(MODELS, LOG_Z, strict=True)}


class TestMatched:
    """Two factors and their interaction, a model against marginality, and one without its pair."""

    MODELS = MODELS | {
        "interaction": ["a", "b", "b:a"],
        "marginal": ["b", "a:b"],
        "lonely": ["a", "c"],
    }
    LOG_Z = np.array([*LOG_Z, -1.0, -2.0, -1.5])

    def table(self, **settings):
        log_z = dict(zip(self.MODELS, self.LOG_Z, strict=True))
        results = {name: evidence(value) for name, value in log_z.items()}
        return pma.inclusion(results, self.MODELS, **settings)

    def test_pairs(self) -> None:
        table, p = self.table(matched=True), softmax(self.LOG_Z)
        expected = {
            "a": (p[1] + p[3]) / (p[0] + p[2]),
            "b": (p[2] + p[3]) / (p[0] + p[1]),
            "b:a": (p[4] + p[5]) / (p[3] + p[2]),
            "c": p[6] / p[1],
        }
        assert table.index.tolist() == list(expected)
        for name, odds in expected.items():
            assert table.loc[name, "log_bayes_factor"] == pytest.approx(np.log(odds))
        np.testing.assert_allclose(table["prior_probability"], 0.5)

    def test_prior_odds(self) -> None:
        found = self.table(matched=True, prior_odds=[3, 1, 1, 1, 1, 1, 1])
        assert found.loc["a", "prior_probability"] == pytest.approx(1 / 3)
        assert found.loc["b:a", "prior_probability"] == pytest.approx(0.5)

    def test_an_effect_without_a_pair(self) -> None:
        models = {"none": [], "both": ["a", "a:b"]}
        results = {name: evidence(-1.0) for name in models}
        with pytest.raises(ValueError, match="'a' has no matched models"):
            pma.inclusion(results, models, matched=True)


class TestInclusion:
    def test_values(self) -> None:
        table = pma.inclusion(evidences(), MODELS)
        p = softmax(LOG_Z)
        assert table.index.tolist() == ["a", "b"]
        np.testing.assert_allclose(table["probability"], [p[1] + p[3], p[2] + p[3]])
        np.testing.assert_allclose(table["prior_probability"], 0.5)
        np.testing.assert_allclose(
            table["log_bayes_factor"],
            np.log([(p[1] + p[3]) / (p[0] + p[2]), (p[2] + p[3]) / (p[0] + p[1])]),
        )
        assert (table["probability_lower"] < table["probability"]).all()
        assert (table["probability"] < table["probability_upper"]).all()

    def test_prior_odds(self) -> None:
        table = pma.inclusion(evidences(), MODELS, prior_odds=[3, 1, 1, 1])
        equal = pma.inclusion(evidences(), MODELS)
        assert table["prior_probability"].tolist() == pytest.approx([1 / 3, 1 / 3])
        assert (table["probability"] < equal["probability"]).all()

    def test_a_variable_of_all_models(self) -> None:
        table = pma.inclusion(evidences(), {name: [*own, "c"] for name, own in MODELS.items()})
        assert table.loc["c", "probability"] == 1
        assert table.loc["c", "log_bayes_factor"] == np.inf

    def coverage(self, factor: float = 1.0) -> float:
        rng, covered, exact = (
            np.random.default_rng(1),
            0,
            np.log(1 / softmax(LOG_Z)[[0, 2]].sum() - 1),
        )
        for _ in range(300):
            noisy = {
                n: evidence(z + 0.2 * rng.normal(), factor * 0.2)
                for n, z in zip(MODELS, LOG_Z, strict=True)
            }
            row = pma.inclusion(noisy, MODELS).loc["a"]
            covered += (
                row["probability_lower"] <= 1 / (1 + np.exp(-exact)) <= row["probability_upper"]
            )
        return covered / 300

    @pytest.mark.slow
    def test_intervals_cover(self) -> None:
        assert 0.92 <= self.coverage() <= 0.98
        assert self.coverage(factor=0.7) < 0.92

    def test_models_that_are_not_trusted_are_listed(self) -> None:
        doubtful = {**evidences(), "b": evidence(-4.0, 0.1, pma.Verdict("do not trust", ("x",)))}
        assert pma.inclusion(doubtful, MODELS).attrs["not_trusted"] == ["b"]

    def test_other_names(self) -> None:
        with pytest.raises(ValueError, match="expected those of the results"):
            pma.inclusion(evidences(), {"none": []})

    def test_a_name_is_no_sequence(self) -> None:
        with pytest.raises(ValueError, match="has the string 'ab' for the model 'ab'"):
            pma.inclusion(evidences(), {**MODELS, "ab": "ab"})


def result(log_z: float, seed: int, mean: float, sd: float, mcse: float = 0.02) -> object:
    """Return a container with draws of ``x`` and an evidence."""
    x = np.random.default_rng(seed).normal(mean, sd, size=(4, 500))
    scalars = {
        "log_evidence": log_z,
        "mcse": mcse,
        "interval_lower": log_z,
        "interval_upper": log_z,
        "ess": 500.0,
        "pareto_k": 0.1,
        "barrier": 1.0,
    }
    attrs = TRUST.to_attrs()
    group = dataset({k: np.array(v) for k, v in scalars.items()}, (), attrs=attrs)
    return container({"posterior": dataset({"x": x}, ("chain", "draw")), "evidence": group})


class TestAverage:
    def test_mean_and_variance_of_a_mixture(self) -> None:
        results = {"a": result(0.0, 1, 1.0, 0.5), "b": result(np.log(3), 2, 2.0, 1.0)}
        row = pma.average(results, "x").loc["x"]
        assert abs(row["mean"] - 1.75) < 4 * row["mcse"]
        variance = 0.25 * 0.25 + 0.75 * 1.0 + 0.25 * 0.75
        assert row["sd"] == pytest.approx(np.sqrt(variance), rel=0.05)
        assert row["between"] == pytest.approx(0.1875 / variance, rel=0.1)
        assert 0.01 < row["mcse"] < 0.03

    def test_errors_of_the_evidences_count(self) -> None:
        rough = {"a": result(0.0, 1, 1.0, 0.5, 0.5), "b": result(0.0, 2, 2.0, 1.0, 0.5)}
        # d mean / d log Z_a = p (1 - p) (m_a - m_b) = 1/4.
        assert pma.average(rough, ["x"]).loc["x", "mcse"] == pytest.approx(0.25 * 0.7, rel=0.15)

    def test_prior_odds(self) -> None:
        results = {"a": result(0.0, 1, 1.0, 0.5), "b": result(0.0, 2, 2.0, 1.0)}
        assert pma.average(results, "x", prior_odds=[1, 1e9]).loc["x", "mean"] > 1.9

    @pytest.mark.slow
    def test_coverage(self) -> None:
        covered = too_narrow = 0
        for seed in range(300):
            noise = 0.1 * np.random.default_rng([3, seed]).normal(size=2)
            pair = zip("ab", noise, (1.0, 2.0), (0.5, 1.0), strict=True)
            results = {
                n: result(e, 1000 * i + seed, m, s, 0.1) for i, (n, e, m, s) in enumerate(pair)
            }
            row = pma.average(results, "x").loc["x"]
            covered += abs(row["mean"] - 1.5) < 1.96 * row["mcse"]
            too_narrow += abs(row["mean"] - 1.5) < 0.7 * 1.96 * row["mcse"]
        assert 0.92 <= covered / 300 <= 0.98
        assert too_narrow / 300 < 0.92

    def test_entries_are_matched_by_their_labels(self) -> None:
        first = result(0.0, 1, 0.0, 1.0)
        x = np.random.default_rng(1).normal([1.0, 5.0], 0.1, size=(4, 500, 2))

        def labelled(labels: list[str]) -> object:
            order = ["first", "second"].index(labels[0])
            data = xr.DataArray(x[..., [order, 1 - order]], dims=("chain", "draw", "at"))
            posterior = data.assign_coords(at=labels).to_dataset(name="x")
            return container({"posterior": posterior, "evidence": group(first, "evidence")})

        pair = {"a": labelled(["first", "second"]), "b": labelled(["second", "first"])}
        found = pma.average(pair, "x")
        np.testing.assert_allclose(found["mean"], [1.0, 5.0], atol=0.05)
        np.testing.assert_allclose(found["between"], 0.0, atol=1e-9)
        pair["b"] = labelled(["second", "third"])
        with pytest.raises(ValueError, match=r"other entries in 'b' than in 'a': x\[first\]"):
            pma.average(pair, "x")

    def test_missing_variables(self) -> None:
        with pytest.raises(ValueError, match="Model 'a' has no variable 'z'"):
            pma.average({"a": result(0.0, 1, 0, 1), "b": result(0.0, 2, 0, 1)}, "z")


def test_a_row_of_averages_by_hand() -> None:
    rng, weight = np.random.default_rng(3), np.array([0.25, 0.75])
    draws = [rng.normal(1, 2, (2, 100)), rng.normal(3, 1, (2, 100))]
    simulated = np.array([[0.2, 0.8], [0.3, 0.7], [0.1, 0.9]])
    means = np.array([d.mean() for d in draws])
    errors = np.array([d.var() / draws_ess(d) for d in draws])
    found = _row(draws, weight, simulated)
    assert found["mean"] == pytest.approx(weight @ means)
    assert found["mcse"] ** 2 == pytest.approx(weight**2 @ errors + (simulated @ means).var())
    between = weight @ (means - weight @ means) ** 2
    assert found["sd"] ** 2 == pytest.approx(weight @ [d.var() for d in draws] + between)
    assert found["between"] == pytest.approx(between / found["sd"] ** 2)

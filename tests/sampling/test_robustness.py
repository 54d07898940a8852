"""Bayes factors over prior scales: quadrature of the JZS t-test, closed forms, coverage."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container
from pymc_anneal.evidence.mean_ratio import MeanRatio
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.posthoc.density_at_point import posterior_density_at
from pymc_anneal.posthoc.prior_change import PriorChange, change_data
from pymc_anneal.posthoc.savage_dickey import Densities
from pymc_anneal.results.container import dataset
from pymc_anneal.results.robustness import Robustness
from pymc_anneal.sampling.robustness import _check_change, _doubt, _joint_variance, _row
from tests.repetitions import (
    REPETITIONS,
    SCALE,
    Y,
    autoregression,
    coverage,
    log_evidence,
    posterior,
)
from tests.results import jzs

SCALES = np.geomspace(0.1, 2.0, 10)
NULL = float(stats.norm.logpdf(Y).sum())


@pytest.fixture(scope="module")
def found() -> Robustness:
    return pma.robustness(jzs.exact_draws(2), {"delta": "r"}, SCALES, model=jzs.model(), max_runs=0)


@pytest.mark.slow
class TestTTest:
    def test_ten_scales(self, found) -> None:
        rows = found.table.loc["delta"]
        exact = [jzs.log_bayes_factor(r) for r in SCALES]
        error = rows["log_bayes_factor"].to_numpy() - exact
        assert (np.abs(error) < 4 * rows["log_bayes_factor_mcse"]).all()
        other = [jzs.log_bayes_factor(1.3 * r) for r in SCALES]  # the curve of other scales
        wrong = rows["log_bayes_factor"].to_numpy() - other
        assert (np.abs(wrong) > 4 * rows["log_bayes_factor_mcse"]).sum() >= 5
        assert (rows["log_bayes_factor_mcse"] < 0.05).all()
        assert (rows["verdict"] == "trust").sum() >= 9  # the smallest scale is at the limit
        assert (rows["draws_at"] == np.sqrt(0.5)).all()

    def test_summary(self, found) -> None:
        row = found.summary.loc["delta"]
        assert row["largest_at"] == pytest.approx(SCALES[7])
        assert row["smallest_at"] in SCALES[:2]
        assert "delta" in repr(found)
        assert "averaged BF" in found._repr_html_()

    def test_plot_and_report(self, found, tmp_path) -> None:
        (axis,) = pma.plot_robustness(found)
        assert axis.get_yscale() == "log"
        assert axis.get_xlabel() == "prior scale of delta"
        evidence = pma.LogEvidence(-3.0, 0.1, (-3.2, -2.8), 900, 0.1, 1.0, Verdict("trust"))
        results = {"a": evidence, "b": replace(evidence, log_evidence=-9.0)}
        page = pma.report(results, tmp_path / "page.html", sensitivity=found).read_text()
        assert "averaged BF" in page


@pytest.mark.slow
def test_scales_out_of_reach_get_runs() -> None:
    scales = np.geomspace(0.005, 3.0, 8)
    found = pma.robustness(
        jzs.exact_draws(2), {"delta": "r"}, scales, model=jzs.model(), random_seed=1
    )
    rows = found.table.loc["delta"]
    exact = [jzs.log_bayes_factor(r) for r in scales]
    error = rows["log_bayes_factor"].to_numpy() - exact
    assert (rows["verdict"] == "trust").all()
    assert (np.abs(error) < 4 * rows["log_bayes_factor_mcse"]).all()
    assert rows["draws_at"].nunique() >= 2
    alone = pma.robustness(
        jzs.exact_draws(2), {"delta": "r"}, scales, model=jzs.model(), max_runs=0
    )
    assert not (alone.table["verdict"] == "trust").all()


def repetition(seed: int, scale: float) -> tuple[float, float]:
    """Return scores of a regression with one slope: right, and as if the parts were independent."""
    mean, covariance = posterior(1)
    draws = autoregression(mean, covariance, seed)

    def log_density(x: np.ndarray) -> np.ndarray:
        return stats.norm.logpdf(x[:, 0], mean[0], covariance[0, 0] ** 0.5)

    prior = MeanRatio(float(stats.norm.logpdf(0, 0, SCALE)), 0.0, np.inf, -np.inf, 1.0)
    at_null = posterior_density_at(draws, log_density, np.array([0]), np.zeros(1))
    x = draws[:, :, 0]
    log_ratio = stats.norm.logpdf(x, 0, scale) - stats.norm.logpdf(x, 0, SCALE)
    row = _row(Densities(prior, at_null, Verdict("trust"), draws), log_ratio)
    error = row["log_bayes_factor"] - (log_evidence(1, scale) - NULL)
    return error / row["log_bayes_factor_mcse"], error / at_null.density.mcse


def test_a_few_repetitions() -> None:
    scores = np.array([repetition(seed, 0.15)[0] for seed in range(20)])
    assert abs(scores.mean()) < 4 / np.sqrt(20)
    assert 0.5 < scores.std() < 1.7


@pytest.mark.slow
def test_coverage() -> None:
    """At a scale far below the model's the ratios matter, and forgetting them is seen."""
    for scale in (0.15, 4.0):
        scores = np.array([repetition(seed, scale) for seed in range(REPETITIONS)])
        assert 0.92 <= coverage(scores[:, 0]) <= 0.98
        if scale < 1:
            assert coverage(scores[:, 1]) < 0.92


def two_effects() -> pm.Model:
    with pm.Model() as model:
        r, s = pm.Data("r", 1.0), pm.Data("s", 1.0)
        pm.Data("vector", [1.0, 2.0])
        pm.Data("unused", 1.0)
        a = pm.Normal("a", 0, r)
        b = pm.Normal("b", 0, r * s)
        pm.Normal("y", a + b, 1, observed=[0.3])
    return model


@pytest.mark.parametrize(
    ("effects", "scales", "message"),
    [
        ({}, [1.0], "expected a dict from variables"),
        ({"c": "r"}, [1.0], "expected a free variable"),
        ({"a": "q"}, [1.0], "expected a free variable"),
        ({"a": "vector"}, [1.0], "is an array"),
        ({"a": "r"}, [1.0, -2.0], "expected positive numbers"),
        ({"a": "r"}, {"b": [1.0]}, "expected positive numbers"),
    ],
)
def test_errors(effects, scales, message: str) -> None:
    rng = np.random.default_rng(0)
    values = dict(zip("ab", rng.normal(size=(2, 2, 100)), strict=True))
    draws = container({"posterior": dataset(values, ("chain", "draw"))})
    with pytest.raises(ValueError, match=message):
        pma.robustness(draws, effects, scales, model=MODEL)


MODEL = pma.compile_model(two_effects())


def test_summary_by_hand() -> None:
    """Untrusted scales are left out; the errors of the average add up."""
    table = pd.DataFrame(
        {
            "log_bayes_factor": [0.0, np.log(3.0), 50.0],
            "log_bayes_factor_mcse": [0.1, 0.2, 9.0],
            "verdict": ["trust", "trust", "do not trust: k"],
        },
        index=pd.MultiIndex.from_product([["x"], [0.5, 1.0, 2.0]], names=["variable", "prior"]),
    )
    row = Robustness(table, {"x": 1.0}).summary.loc["x"]
    assert row["log_averaged"] == pytest.approx(np.log(2.0))
    assert row["log_averaged_mcse"] == pytest.approx(0.25 * 0.1 + 0.75 * 0.2)
    assert (row["largest_at"], row["smallest_at"], row["trusted"]) == (1.0, 0.5, 2)
    untrusted = Robustness(table.assign(verdict="do not trust"), {"x": 1.0})
    assert np.isnan(untrusted.summary.loc["x", "largest"])
    assert "0 of 3" in repr(untrusted)


def test_the_better_of_two_rows() -> None:
    rows = [
        {"verdict": "do not trust", "log_bayes_factor_mcse": 0.01},
        {"verdict": "trust", "log_bayes_factor_mcse": 0.3},
        {"verdict": "trust", "log_bayes_factor_mcse": 0.2},
    ]
    assert min(rows, key=_doubt) is rows[2]


def test_the_variance_of_both_parts_together() -> None:
    """If the second part is the first one, the second half counts with the opposite sign."""
    log_ratio = np.random.default_rng(0).normal(0, 0.3, (4, 1000))
    ratio = np.exp(log_ratio)
    expected = (ratio / ratio.mean()).var() / 4 * (1 / 2000 + 1 / 2000)
    found = _joint_variance(log_ratio, log_ratio[:, 500:])
    assert found == pytest.approx(expected, rel=0.15)


def test_a_scale_of_several_priors_or_of_none() -> None:
    def change(*names: str) -> PriorChange:
        return PriorChange(len, len, dict, names)

    _check_change(change("a"), "a", "r")
    with pytest.raises(ValueError, match=r"changes that of \['b'\]"):
        _check_change(change("a", "b"), "a", "r")
    with pytest.raises(ValueError, match="changes no prior"):
        _check_change(change(), "a", "r")


def test_a_scale_of_the_likelihood_too() -> None:
    """The null would change with it, and its evidence is taken for the same."""
    with pm.Model() as model:
        r = pm.Data("r", 1.0)
        pm.Normal("y", pm.Normal("d", 0, r), r, observed=[0.3, -0.2, 1.0])
    with pytest.raises(ValueError, match=r"of no other variable: it changes that of \['y'\]"):
        _check_change(change_data(pma.compile_model(model), "r", 0.8), "d", "r")
    with pm.Model() as apart:
        effect = pm.Normal("d", 0, pm.Data("r", 1.0))
        pm.Potential("soft", -(effect**2))
        pm.Normal("y", effect, 1, observed=0.3)
    assert change_data(pma.compile_model(apart), "r", 0.8).changed == ("d",)
    with model:
        pm.Potential("p", -r)
    with pytest.raises(ValueError, match=r"it changes that of \['p', 'y'\]"):
        _check_change(change_data(pma.compile_model(model), "r", 0.8), "d", "r")

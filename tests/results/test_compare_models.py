"""Comparison of models: Bayes factors, probabilities, their errors, and what is refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import stats
from scipy.special import softmax

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group
from pymc_anneal.evidence.ais import ais, bootstrap_interval
from pymc_anneal.evidence.estimate import LogEvidence
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.results.compare_models import compare, log_bayes_factor
from tests.problems import log_evidence_normal_mean

TRUST = Verdict("trust")
DOUBTFUL = Verdict("do not trust", ("Pareto k",))


def evidence(value: float, mcse: float = 0.02, verdict: Verdict = TRUST, **interval) -> LogEvidence:
    ends = interval.get("interval", (value - 1.96 * mcse, value + 1.96 * mcse))
    return LogEvidence(value, mcse, ends, 500.0, 0.1, 2.0, verdict)


class TestLogBayesFactor:
    def test_four_numbers(self) -> None:
        factor = log_bayes_factor(evidence(-3.0, 0.03), evidence(-5.0, 0.04))
        assert factor.log_bayes_factor == 2.0
        assert factor.mcse == pytest.approx(0.05, rel=1e-12)
        assert factor.interval == pytest.approx((2 - 1.96 * 0.05, 2 + 1.96 * 0.05), rel=1e-12)
        assert factor.verdict == Verdict("trust")

    def test_asymmetric_intervals(self) -> None:
        a, b = evidence(0.0, interval=(-0.1, 0.4)), evidence(0.0, interval=(-0.2, 0.3))
        low, high = log_bayes_factor(a, b).interval
        assert low == pytest.approx(-np.hypot(0.1, 0.3))
        assert high == pytest.approx(np.hypot(0.4, 0.2))

    def test_doubts_are_passed_on(self) -> None:
        doubtful = evidence(-5.0, verdict=Verdict("do not trust", ("Pareto k",)))
        found = log_bayes_factor(evidence(-3.0), doubtful).verdict
        assert found == Verdict("do not trust", ("b: Pareto k",))

    def test_repr(self) -> None:
        text = repr(log_bayes_factor(evidence(-3.0), evidence(-5.0)))
        assert text.startswith("log Bayes factor 2.000 +- 0.028 nats (95 % interval 1.94")
        assert "the data favour a over b by 7.39 : 1" in text

    def test_names(self) -> None:
        doubtful = evidence(-5.0, verdict=DOUBTFUL)
        found = log_bayes_factor(evidence(-3.0), doubtful, names=("pooled", "varying"))
        assert found.models == ("pooled", "varying")
        assert found.verdict == Verdict("do not trust", ("varying: Pareto k",))
        for names in ("ab", ("a",), ("a", "a")):
            with pytest.raises(ValueError, match="two different names"):
                log_bayes_factor(evidence(-3.0), evidence(-5.0), names=names)


class TestCompare:
    def test_table(self) -> None:
        models = {"c": evidence(-9.0), "a": evidence(-3.0), "b": evidence(-4.0)}
        table = compare(models).details
        assert table.index.tolist() == ["a", "b", "c"]
        assert table["rank"].tolist() == [0, 1, 2]
        np.testing.assert_allclose(table["log_bayes_factor"], [0, -1, -6])
        np.testing.assert_allclose(table["probability"], softmax([-3, -4, -9]))
        assert (table["probability_lower"] < table["probability"]).all()
        assert (table["probability"] < table["probability_upper"]).all()

    def test_prior_odds(self) -> None:
        models = {"a": evidence(-3.0), "b": evidence(-3.0)}
        by_name = compare(models, prior_odds={"b": 3, "a": 1})
        by_order = compare(models, prior_odds=[1, 3])
        assert by_name.table["probability"].to_dict() == pytest.approx({"a": 0.25, "b": 0.75})
        assert by_order.table.equals(by_name.table)
        labelled = compare(models, prior_odds=pd.Series({"b": 3, "a": 1}))
        assert labelled.table.equals(by_name.table)

    @pytest.mark.parametrize(
        ("odds", "message"),
        [
            ([1.0], "1 entries"),
            ({"a": 1.0, "x": 2.0}, "'x'"),
            ([1.0, 0.0], "positive"),
            ([1.0, np.nan], "positive"),
        ],
    )
    def test_bad_odds(self, odds, message) -> None:
        with pytest.raises(ValueError, match=message):
            compare({"a": evidence(-3.0), "b": evidence(-3.0)}, prior_odds=odds)

    def test_verdict_on_a_clear_winner(self) -> None:
        found = compare({"a": evidence(-3.0), "b": evidence(-4.0)})
        assert str(found.verdict) == (
            "trust: 'a' has the highest evidence, 1.00 +- 0.028 nats ahead of 'b' (2.72 : 1)"
        )

    def test_verdict_on_equals_asks_for_nothing(self) -> None:
        # 1.96 sqrt(2) 0.1 = 0.28: neither end is a factor that matters.
        found = compare({"a": evidence(-3.0, 0.1), "b": evidence(-3.05, 0.1)}).verdict
        assert str(found) == (
            "trust: the data favour neither 'a' nor 'b': "
            "Bayes factor 1.05, 95 % interval 0.797 to 1.39"
        )

    def test_verdict_on_a_wide_tie_says_how_many_particles(self) -> None:
        # Half an interval is 1.96 sqrt(2) 0.5 = 1.386; (1.386 / (1 - 0.05))^2 = 2.13 times.
        found = compare({"a": evidence(-3.0, 0.5), "b": evidence(-3.05, 0.5)}).verdict
        assert found.status == "more draws needed"
        assert "'a' and 'b' cannot be told apart at this precision" in str(found)
        assert "95 % interval 0.263 to 4.20" in str(found)
        assert "about 3 times as many particles would tell" in str(found)

    def test_a_lead_that_matters_and_is_not_certain(self) -> None:
        # The difference is 1.2 and half of the interval 1.386: (1.386 / 1.2)^2 = 1.33.
        found = compare({"a": evidence(-3.0, 0.5), "b": evidence(-4.2, 0.5)}).verdict
        assert found.status == "more draws needed"
        assert "about 2 times as many" in str(found)

    def test_as_many_particles_as_it_says_are_enough(self) -> None:
        for d in (0.0, 0.3, 0.9, 1.1):
            text = str(compare({"a": evidence(d, 2.0), "b": evidence(0.0, 2.0)}).verdict)
            times = int(text.partition("about ")[2].split()[0])
            error = 2.0 / np.sqrt(times)
            more = compare({"a": evidence(d, error), "b": evidence(0.0, error)}).verdict
            assert more.status == "trust"

    def test_shortfalls_are_passed_on(self) -> None:
        short = evidence(-9.0, verdict=Verdict("more steps needed", ("x",)))
        found = compare({"a": evidence(-3.0), "b": short})
        assert str(found.verdict) == "more steps needed: b: x"
        assert found.table["rank"].tolist() == [0, 1]

    def test_models_that_are_not_trusted_have_no_rank(self) -> None:
        doubtful = evidence(-1.0, verdict=DOUBTFUL)
        found = compare({"x": doubtful, "a": evidence(-3.0), "b": evidence(-4.0)})
        assert found.table.index.tolist() == ["a", "b", "x"]
        assert found.table["rank"].isna().tolist() == [False, False, True]
        assert found.details.loc["x", "log_bayes_factor"] == 2.0  # against the best of the trusted
        assert found.details["verdict"].tolist() == ["trust", "trust", "do not trust"]
        assert str(found.verdict) == "do not trust: x: Pareto k"

    def test_no_model_is_trusted(self) -> None:
        doubtful = {name: evidence(-3.0, verdict=DOUBTFUL) for name in "ab"}
        assert compare(doubtful).table["rank"].isna().all()

    @pytest.mark.parametrize("models", [{}, {"a": evidence(-1.0)}, [evidence(-1.0)]])
    def test_too_few(self, models) -> None:
        with pytest.raises(ValueError, match="at least two"):
            compare(models)

    def test_evidence_that_is_none(self) -> None:
        with pytest.raises(ValueError, match="'b' has log evidence -inf"):
            compare({"a": evidence(-1.0), "b": evidence(-np.inf, np.inf)})

    def test_no_evidence_at_all(self) -> None:
        with pytest.raises(ValueError, match="Expected a result of"):
            compare({"a": evidence(-1.0), "b": 3.0})

    def test_probability_intervals_cover(self) -> None:
        """Over simulated pairs of estimates the intervals hold the exact probability."""
        rng, covered, n = np.random.default_rng(3), 0, 400
        for _ in range(n):
            log_z, mcse = rng.normal(0, 1, 2), rng.uniform(0.02, 0.3, 2)
            found = log_z + mcse * rng.normal(size=2)
            table = compare({"a": evidence(found[0], mcse[0]), "b": evidence(found[1], mcse[1])})
            row = table.details.loc["a"]
            exact = softmax(log_z)[0]
            covered += row["probability_lower"] <= exact <= row["probability_upper"]
        assert 0.92 <= covered / n <= 0.98


def annealed(
    y: np.ndarray, prior: tuple[float, float], rng: np.random.Generator, particles: int = 100
) -> LogEvidence:
    """Evidence of ``mu ~ N(m, s)``, ``y_i ~ N(mu, 1)``, by annealing with perfect transitions."""
    betas = pma.power_schedule(4, 2.0)
    precision = 1 / prior[1] ** 2 + betas[:-1] * y.size
    mean = (prior[0] / prior[1] ** 2 + betas[:-1] * y.sum()) / precision
    mu = mean + rng.normal(size=(particles, 4)) / np.sqrt(precision)
    log_likelihood = stats.norm.logpdf(y, mu[..., None], 1.0).sum(axis=2)
    log_weight = log_likelihood @ np.diff(betas)
    estimate, interval = ais(log_weight), bootstrap_interval(log_weight, rng=rng)
    return LogEvidence(*estimate[:2], interval, estimate.ess, 0.1, 2.0, Verdict("trust"))


class TestProbabilitiesOfConjugateModels:
    """Pairs of models whose evidences are known, on data that one of them has made."""

    priors = {"near": (0.0, 1.0), "far": (0.6, 2.0)}

    def pair(self, seed: int) -> tuple[np.ndarray, dict[str, float]]:
        rng = np.random.default_rng([8, seed])
        mean, sd = self.priors["near" if seed % 2 else "far"]
        y = rng.normal(rng.normal(mean, sd), 1.0, size=6)
        exact = {n: log_evidence_normal_mean(y, 1.0, *prior) for n, prior in self.priors.items()}
        return y, exact

    def coverage(self, factor: float = 1.0, pairs: int = 400) -> float:
        covered = 0
        for seed in range(pairs):
            (y, exact), rng = self.pair(seed), np.random.default_rng([9, seed])
            found = {n: annealed(y, prior, rng) for n, prior in self.priors.items()}
            found = {n: replace(e, mcse=factor * e.mcse) for n, e in found.items()}
            row = compare(found).details.loc["near"]
            probability = softmax([exact["near"], exact["far"]])[0]
            covered += row["probability_lower"] <= probability <= row["probability_upper"]
        return covered / pairs

    def test_intervals_cover(self) -> None:
        assert 0.92 <= self.coverage() <= 0.98

    @pytest.mark.slow
    def test_intervals_that_are_too_narrow_do_not(self) -> None:
        assert self.coverage(factor=0.75) < 0.92


@pytest.fixture(scope="module")
def results() -> dict:
    def run(y, name: str = "y"):
        with pm.Model() as model:
            mu = pm.Normal("mu")
            pm.Normal(name, mu, 1, observed=y)
        return pma.sample_ais(
            8,
            steps=2,
            transition=pma.RandomWalkMetropolis(0.5, 1, 1.0),
            schedule="linear",
            model=model,
            progressbar=False,
            random_seed=1,
        )

    return {
        "first": run([1.0, 2.0]),
        "renamed": run([1.0, 2.0], "height"),
        "other": run([1.0, 2.5]),
        "longer": run([1.0, 2.0, 3.0]),
    }


class TestData:
    """Results of different data are refused, whatever their variables are called."""

    @pytest.mark.slow
    def test_same_data(self, results) -> None:
        factor = log_bayes_factor(results["first"], results["renamed"])
        assert factor.log_bayes_factor == 0

    def test_hashes(self, results) -> None:
        hashes = {name: pma.log_evidence(result).data_hash for name, result in results.items()}
        assert (
            hashes["first"]
            == hashes["renamed"]
            == group(results["first"], "evidence").attrs["observed_data_hash"]
        )
        assert len(set(hashes.values())) == 3

    def test_evidences_read_from_results(self, results) -> None:
        first, other = (pma.log_evidence(results[name]) for name in ("first", "other"))
        with pytest.raises(ValueError, match="different observed data: data .hash"):
            compare({"a": first, "b": other})
        assert compare({"a": first, "b": replace(other, data_hash="")}).table.shape == (2, 6)

    def test_results_without_data_do_not_hide_others(self, results) -> None:
        nothing = evidence(-3.0)
        with pytest.raises(ValueError, match="Models 'a' and 'b' are of different"):
            compare({"x": nothing, "a": results["first"], "y": nothing, "b": results["other"]})

    @pytest.mark.parametrize("name", ["other", "longer"])
    def test_other_data(self, results, name) -> None:
        with pytest.raises(ValueError, match="different observed data: 'y' of shape"):
            compare({"a": results["first"], name: results[name]})


class TestForms:
    """What a reader sees of a comparison."""

    def found(self) -> pma.ModelComparison:
        doubtful = evidence(-503.0, 0.1, Verdict("do not trust", ("<k>",)))
        return compare({"a<b": evidence(-3.0), "b": evidence(-4.0), "c": doubtful})

    def test_text(self) -> None:
        lines = repr(self.found()).splitlines()
        assert lines[0].split() == "rank log evidence error log BF probability verdict".split()
        assert lines[2].split() == ["a<b", "0", "-3.000", "0.02", "0.000", "-", "trust"]
        assert lines[4].split() == ["c", "-", "-503.00", "-", "-", "-", "do", "not", "trust"]
        assert lines[-1] == "verdict: do not trust: c: <k>"

    def test_probabilities_stand_where_all_are_trusted(self) -> None:
        lines = repr(compare({"a": evidence(-3.0), "b": evidence(-4.0)})).splitlines()
        assert lines[2].split()[-2] == "0.731"

    def test_html_is_escaped(self) -> None:
        html = self.found()._repr_html_()
        assert "a&lt;b" in html
        assert "a<b" not in html
        assert "c: &lt;k&gt;" in html
        assert html.count("<tr>") == 4

    def test_html_of_what_nothing_has_examined_is_amber(self) -> None:
        unseen = evidence(-3.0, verdict=Verdict("trust", ("modes were not looked for",)))
        html = compare({"a": unseen, "b": evidence(-4.0)})._repr_html_()
        assert html.count("#9a6700") == 1
        assert html.count("#1a7f37") == 2

    def test_html_of_a_bayes_factor(self) -> None:
        html = log_bayes_factor(evidence(-3.0), evidence(-5.0))._repr_html_()
        assert "2.000 ± 0.028 nats" in html

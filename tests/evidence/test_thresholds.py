"""Every test of an estimate by hand: just below its threshold it passes, just above it does not.

The thresholds are written out here, from the levels that the documentation states.
"""

import dataclasses

import numpy as np
import pytest

from scipy import stats

from pymc_anneal.evidence import bridge_sampling, diagnostics, heavy_tail
from pymc_anneal.evidence.agreement import Estimate, Lag, chain_doubts, excess_doubts, lag
from pymc_anneal.evidence.ais import ais
from pymc_anneal.evidence.diagnostics import (
    assess,
    leaves_error_unknown,
    missing_share,
    weight_pareto_k,
)
from pymc_anneal.evidence.heavy_tail import ais_with_tail, error_with_tail
from pymc_anneal.evidence.mean_ratio import MeanRatio
from pymc_anneal.evidence.mode_audit import ModeAudit
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.nested.nested_sampling import NestedRun, combine_runs, doubt_ranks

# Relative distance from a threshold.
NEAR = 1e-6
BESIDE = pytest.mark.parametrize(("factor", "beyond"), [(1 - NEAR, False), (1 + NEAR, True)])
# The three tests of a run share a level of one in a thousand.
EACH = 1e-3 / 3


def farthest(count: int, p_value: float) -> float:
    """Return how far one of several values with unit errors lies from the others, chi-squared.

    If all others agree, the sum of squares about the mean is ``(1 - 1 / count)`` of its square.
    """
    return float(np.sqrt(stats.chi2.isf(p_value, count - 1) / (1 - 1 / count)))


class TestChains:
    row = np.random.default_rng(1).normal(0, 0.3, size=300)

    @BESIDE
    @pytest.mark.parametrize("chains", [2, 3, 5])
    def test_one_chain_off(self, chains: int, factor: float, beyond: bool) -> None:
        shift = factor * farthest(chains, EACH) * ais(self.row).mcse
        log_weight = self.row + shift * (np.arange(chains) == 1)[:, None]
        assert bool(chain_doubts(log_weight)) == beyond

    @BESIDE
    def test_chains_of_different_errors(self, factor: float, beyond: bool) -> None:
        # Centred with the precisions as weights, the square sum of two is d^2 / (s^2 + t^2).
        rows = np.stack([self.row, 3 * self.row])
        rows -= [[ais(row).log_evidence] for row in rows]
        errors = [ais(row).mcse for row in rows]
        rows[1] += factor * stats.norm.isf(EACH / 2) * np.hypot(*errors)
        assert bool(chain_doubts(rows)) == beyond

    @BESIDE
    def test_halves_of_a_single_chain(self, factor: float, beyond: bool) -> None:
        log_weight = np.repeat(self.row, 2)
        log_weight[::2] += factor * farthest(2, EACH) * ais(self.row).mcse
        assert bool(chain_doubts(log_weight[None])) == beyond


class TestExcess:
    @BESIDE
    @pytest.mark.parametrize("count", [1, 3])
    def test_limit(self, count: int, factor: float, beyond: bool) -> None:
        excess = factor * stats.norm.isf(EACH / count) * 0.5  # 0.3 and 0.4 together
        earlier = [Estimate("high", excess, 0.3)] + (count - 1) * [Estimate("low", -1.0, 0.3)]
        assert len(excess_doubts(Estimate("the run", 0.0, 0.4), earlier)) == beyond


class TestLag:
    @BESIDE
    def test_significance(self, factor: float, beyond: bool) -> None:
        assert Lag(factor * stats.norm.isf(EACH), 1.0, 10).significant == beyond

    @BESIDE
    def test_bias_of_half_an_error(self, factor: float, beyond: bool) -> None:
        assert Lag(factor * 5.0, 0.01, 10).matters(1.0) == beyond

    @pytest.mark.parametrize(("steps", "counts"), [(10, True), (9, False)])
    def test_runs_of_a_tenth_of_the_steps_count(self, steps: int, counts: bool) -> None:
        runs = [Estimate("a run", -1.0, 0.1, steps), Estimate("a run", 0.0, 0.1, 100)]
        assert (lag(runs) is not None) == counts

    def test_two_runs_by_hand(self) -> None:
        # Z_i = -F / K_i: a line through two points, whose slope has the error of a difference.
        found = lag([Estimate("a run", -0.5, 0.3, 20), Estimate("a run", 0.1, 0.4, 50)])
        assert found.coefficient == pytest.approx(0.6 / (1 / 20 - 1 / 50), rel=1e-12)
        assert found.mcse == pytest.approx(0.5 / (1 / 20 - 1 / 50), rel=1e-12)


class TestAssess:
    """The verdict on a run whose weights are even, apart from what is tested."""

    log_weight = np.random.default_rng(2).normal(0, 0.3, size=(1, 400))

    def status(self, **changes) -> str:
        arguments = {"target_mcse": 1.0, "steps": 10} | changes
        return assess(self.log_weight, **arguments).status

    @BESIDE
    def test_target(self, factor: float, beyond: bool) -> None:
        target = ais(self.log_weight).mcse / factor
        assert (self.status(target_mcse=target) == "more steps needed") == beyond

    @pytest.mark.parametrize(("times", "steps"), [(1.2, 20), (2.0, 40)])
    def test_steps_that_would_do(self, times: float, steps: int) -> None:
        # The square of the error falls in proportion to the steps; at least twice as many.
        target = ais(self.log_weight).mcse / (times * (1 - NEAR))
        found = assess(self.log_weight, target_mcse=target, steps=10)
        assert f"try steps={steps}" in str(found)

    @BESIDE
    def test_pareto_k(self, factor: float, beyond: bool, monkeypatch) -> None:
        monkeypatch.setattr(diagnostics, "weight_pareto_k", lambda log_weight: 0.7 * factor)
        assert (self.status() == "do not trust") == beyond

    @pytest.mark.parametrize(("count", "beyond"), [(100, False), (99, True)])
    def test_effective_sample_size(self, count: int, beyond: bool) -> None:
        found = assess(np.zeros((1, count)), target_mcse=1.0, steps=10)
        assert (found.status == "more steps needed") == beyond

    @BESIDE
    def test_the_largest_of_even_weights_is_twice_their_mean(self, factor, beyond) -> None:
        # The largest weight is one, and the mean of all a half.
        rest = (0.5 / factor * 400 - 1) / 399
        log_weight = np.log(np.r_[1.0, rest * np.linspace(0.9, 1.1, 399)])
        assert np.isfinite(weight_pareto_k(log_weight)) == beyond


class TestHeavyTail:
    @pytest.mark.parametrize("k", [-np.inf, np.nan, -0.1, 0.0, 0.3, 0.6, np.inf])
    def test_every_tail_counts(self, k: float, monkeypatch) -> None:
        log_weight = TestAssess.log_weight
        monkeypatch.setattr(heavy_tail, "weight_pareto_k", lambda log_weight: k)
        found, plain = ais_with_tail(log_weight)[0], ais(log_weight)
        wider = np.hypot(plain.mcse, np.log1p(missing_share(log_weight, k)))
        assert found.mcse == pytest.approx(wider if k > -np.inf else plain.mcse, rel=1e-12)

    def test_the_largest_k_counts_where_it_is_not_known(self) -> None:
        harmless, large = np.log(np.r_[1.3, np.ones(999)]), np.log([1.0, 2.0, 5.0])
        for log_weight, k, counts in [
            (harmless, 0.71, 0.95),
            (harmless, 0.69, 0.69),
            (large, 0.71, 0.71),
        ]:
            wider = np.hypot(0.1, np.log1p(missing_share(log_weight, counts)))
            assert error_with_tail(0.1, log_weight, k) == pytest.approx(wider, rel=1e-12)

    @BESIDE
    def test_a_heavy_tail_that_may_hide_three_per_cent(self, factor: float, beyond: bool) -> None:
        # (20 w_max / mean - 1) / n at the largest k, 0.95.
        largest = (0.03 * factor * 1000 + 1) / 20
        rest = (1000 - largest) / 999
        log_weight = np.log(np.r_[largest, np.full(999, rest)])
        assert missing_share(log_weight, 0.95) == pytest.approx(0.03 * factor)
        assert leaves_error_unknown(log_weight, 0.71) == beyond
        assert not leaves_error_unknown(log_weight, 0.69)
        assert not leaves_error_unknown(log_weight, np.nan)

    def test_missing_share_by_hand(self) -> None:
        # (w_max / (1 - k) - mean) / n over the mean, which is taken to exist at k = 0.95 at most.
        log_weight, mean = np.log([1.0, 2.0, 5.0]), 8 / 3
        for k, beyond in {-0.5: 5, 0.6: 5 / 0.4, 2.0: 5 / 0.05}.items():
            assert missing_share(log_weight, k) == pytest.approx((beyond - mean) / 3 / mean)
        assert missing_share(np.zeros(7), 0.0) == 0


RATIO = MeanRatio(0.0, 0.1, 1e3, 0.1, 1.0)


@pytest.mark.parametrize(
    ("field", "threshold", "sign", "status"),
    [
        ("pareto_k", 0.7, 1, "do not trust"),
        ("rhat", 1.05, 1, "do not trust"),
        ("ess", 100.0, -1, "more draws needed"),
    ],
)
@BESIDE
def test_mean_ratio(field, threshold, sign, status, factor: float, beyond: bool) -> None:
    value = threshold * factor**sign
    assert (RATIO._replace(**{field: value}).verdict("").status == status) == beyond


class TestBridge:
    def verdict(self, mcse=0.1, ess=1e3, k=0.1) -> Verdict:
        return bridge_sampling._assess(mcse, 0.2, ess, k, [])

    @BESIDE
    def test_verdict(self, factor: float, beyond: bool) -> None:
        assert (self.verdict(mcse=0.2 * factor).status == "more draws needed") == beyond
        assert (self.verdict(ess=100 / factor).status == "more draws needed") == beyond
        assert (self.verdict(k=0.7 * factor).status == "do not trust") == beyond

    @BESIDE
    def test_terms_that_may_have_a_tail(self, factor: float, beyond: bool) -> None:
        # The largest is one; those of a mean above a fifth of it have no tail.
        rest = (0.2 / factor * 400 - 1) / 399
        terms = np.r_[1.0, rest * np.linspace(0.9, 1.1, 399)]
        for scale in (1.0, 30.0, 0.01):
            assert np.isfinite(bridge_sampling._tail(scale * terms)) == beyond

    def test_draws_that_would_do(self) -> None:
        # The square of the error falls in proportion to the draws.
        assert "take 9.0 times the draws" in str(self.verdict(mcse=0.6))


class TestNested:
    def runs(self, values: list[float], mcse: float = 0.1, draws: int = 400) -> list[NestedRun]:
        weights = np.zeros((draws, 1)), np.zeros(draws)
        return [NestedRun(value, mcse, *weights, 3.0, 1000) for value in values]

    @BESIDE
    @pytest.mark.parametrize("count", [2, 3, 5])
    def test_runs_that_disagree(self, count: int, factor: float, beyond: bool) -> None:
        values = [factor * 0.1 * farthest(count, 1e-4)] + (count - 1) * [0.0]
        found = combine_runs(self.runs(values), 10.0)
        assert (found.verdict.status == "do not trust") == beyond

    @pytest.mark.parametrize("count", [2, 3, 5])
    def test_error_of_runs_that_differ(self, count: int) -> None:
        # Birge's ratio makes it the standard error of the mean of the values.
        values = [0.0, 0.9, -0.4, 0.6, 0.5][:count]
        expected = np.std(values, ddof=1) / np.sqrt(count)
        assert combine_runs(self.runs(values), 10.0).mcse == pytest.approx(expected, rel=1e-12)
        # Runs that differ less than their errors keep them.
        near = combine_runs(self.runs([1e-3 * v for v in values]), 10.0)
        assert near.mcse == pytest.approx(0.1 / np.sqrt(count), rel=1e-12)

    @BESIDE
    def test_target(self, factor: float, beyond: bool) -> None:
        found = combine_runs(self.runs([1.0], mcse=0.2 * factor), 0.2)
        assert (found.verdict.status == "more draws needed") == beyond

    @pytest.mark.parametrize(("draws", "beyond"), [(100, False), (99, True)])
    def test_effective_sample_size(self, draws: int, beyond: bool) -> None:
        found = combine_runs(self.runs([1.0], draws=draws), 1.0)
        assert (found.verdict.status == "more draws needed") == beyond

    # The quantile of the statistic is known to four digits.
    @pytest.mark.parametrize(("factor", "beyond"), [(0.999, False), (1.001, True)])
    def test_ranks(self, factor: float, beyond: bool) -> None:
        # Ranks that are even, and moved down: the shift is their distance.
        n = 500
        distance = factor * stats.kstwo.isf(1e-4, n)
        ranks = np.maximum((np.arange(n) + 1) / n - distance, 0)
        assert bool(doubt_ranks(ranks)) == beyond


# Half of the posterior in each of two modes.
AUDIT = ModeAudit(
    centre=np.zeros((2, 1)),
    log_mass=np.log([0.5, 0.5]),
    share=np.array([0.5, 0.5]),
    share_mcse=np.array([0.03, 0.03]),
    ess=np.array([1e3, 1e3]),
    rest_ess=np.array([1e12, 1e12]),
    among_draws=np.array([0.5, 0.5]),
    among_draws_mcse=np.array([0.04, 0.04]),
    at_least=np.zeros(2),
)


def audit(**changes: float) -> bool:
    """Return whether the first mode is missed if some of its numbers are others."""
    fields = {name: np.array([value, getattr(AUDIT, name)[1]]) for name, value in changes.items()}
    return bool(dataclasses.replace(AUDIT, **fields).missed[0])


class TestModeAudit:
    """The least share differs from the share by ``4 / sqrt(rest_ess)``, here a millionth."""

    near = pytest.mark.parametrize(("factor", "beyond"), [(0.9999, False), (1.0001, True)])

    @near
    def test_four_errors(self, factor: float, beyond: bool) -> None:
        assert audit(among_draws=0.5 - factor * 4 * 0.05) == beyond

    @pytest.mark.parametrize(("factor", "beyond"), [(0.99, False), (1.01, True)])
    def test_least_share(self, factor: float, beyond: bool) -> None:
        exact = {"share_mcse": 0.0, "among_draws_mcse": 0.0}
        assert audit(among_draws=0.5 - factor * 1e-3, **exact) == beyond

    @near
    def test_least_effective_draws(self, factor: float, beyond: bool) -> None:
        assert audit(among_draws=0.0, ess=16 * factor) == beyond

    def test_few_draws_of_the_rest(self) -> None:
        # With 16 draws of the rest it may hold e times as much: 0.5 is then 1 / (1 + e).
        least = 1 / (1 + np.e)
        exact = {"share_mcse": 0.0, "among_draws_mcse": 0.0, "rest_ess": 16.0}
        assert audit(among_draws=least - 1.01e-3, **exact)
        assert not audit(among_draws=least - 0.99e-3, **exact)

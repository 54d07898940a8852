"""Diagnostics of log weights, and the verdict on an estimate."""

import numpy as np
import pytest

from scipy import stats

from pymc_anneal.evidence.agreement import Estimate
from pymc_anneal.evidence.diagnostics import (
    assess,
    largest_weight,
    log_weight_variance,
    median_and_robust_sd,
    weight_pareto_k,
)
from pymc_anneal.evidence.verdict import Verdict


def even_weights(chains: int = 4, particles: int = 500, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(-0.02, 0.2, size=(chains, particles))


class TestAssess:
    def test_trust(self) -> None:
        verdict = assess(
            even_weights(), target_mcse=0.1, steps=50, earlier=[Estimate("the pilot", 0.0, 0.05)]
        )
        assert verdict == Verdict("trust", ())
        assert str(verdict) == "trust"

    def test_a_missed_target_says_how_many_steps(self) -> None:
        verdict = assess(even_weights(), target_mcse=0.001, steps=50)
        assert verdict.status == "more steps needed"
        assert "misses the target 0.001; try steps=" in str(verdict)

    def test_a_heavy_tail(self) -> None:
        weight = np.random.default_rng(2).pareto(0.8, size=(4, 500))
        verdict = assess(np.log(weight), target_mcse=10.0, steps=50)
        assert verdict.status == "do not trust"
        assert "Pareto k" in str(verdict)

    def test_chains_that_disagree(self) -> None:
        log_weight = even_weights() + np.array([[0.0], [0.0], [1.0], [0.0]])
        verdict = assess(log_weight, target_mcse=0.1, steps=50)
        assert verdict.status == "do not trust"
        assert "chains disagree" in str(verdict)

    def test_a_pilot_that_disagrees(self) -> None:
        verdict = assess(
            even_weights(), target_mcse=0.1, steps=50, earlier=[Estimate("the pilot", 3.0, 0.05)]
        )
        assert verdict.status == "do not trust"
        assert "the pilot found 3.00 +- 0.05, more than the run" in str(verdict)

    def test_interruption(self) -> None:
        kept = "300 of 600 particles are kept"
        verdict = assess(even_weights(), target_mcse=0.1, steps=50, interruption=kept)
        assert str(verdict) == f"more steps needed: the run was interrupted: {kept}"

    def test_an_interruption_is_named_beside_doubts(self) -> None:
        verdict = assess(
            even_weights(), target_mcse=0.1, steps=50, interruption="a half", doubts=["a doubt"]
        )
        assert str(verdict) == "do not trust: a doubt; the run was interrupted: a half"

    def test_equal_weights(self) -> None:
        assert assess(np.zeros((2, 300)), target_mcse=0.1, steps=1).status == "trust"

    def test_false_alarms_are_rare(self) -> None:
        verdicts = [assess(even_weights(seed=s), target_mcse=0.1, steps=9) for s in range(200)]
        assert all(v.status == "trust" for v in verdicts)


class TestLogWeightVariance:
    @pytest.mark.parametrize("deviation", [0.1, 0.7, 1.5])
    def test_normal_log_weights(self, deviation: float) -> None:
        log_weight = np.random.default_rng(3).normal(0, deviation, size=20_000)
        assert log_weight_variance(log_weight) == pytest.approx(deviation**2, rel=0.15)

    def test_a_large_variance_is_seen(self) -> None:
        # A sample of 1000 shows an effective size of at least one: log 1000 at most.
        log_weight = np.random.default_rng(4).normal(0, 10.0, size=1000)
        assert log_weight_variance(log_weight) == pytest.approx(100, rel=0.3)

    @pytest.mark.parametrize("value", [-1.651, 0.0, 20.10615])
    @pytest.mark.parametrize("n", [7, 800, 2049])
    def test_equal_weights_have_none(self, value: float, n: int) -> None:
        """Also where the effective sample size is rounded to more than there are."""
        assert 0.0 <= log_weight_variance(np.full(n, value)) < 1e-12

    def test_a_cluster_far_below_counts_as_lost_particles(self) -> None:
        """No longer run shortens the way between them, which quartiles would take for noise."""
        rng = np.random.default_rng(5)
        log_weight = np.r_[rng.normal(0, 0.3, 200), rng.normal(-8, 1, 300)]
        assert log_weight_variance(log_weight) == pytest.approx(np.log(500 / 200), abs=0.15)
        assert log_weight_variance(log_weight + 2.0) == pytest.approx(
            log_weight_variance(log_weight), rel=1e-9
        )

    def test_clusters_with_a_heavy_tail_do_not(self) -> None:
        rng = np.random.default_rng(5)
        log_weight = np.r_[rng.normal(0, 4.0, 200), rng.normal(-30, 1, 300)]
        assert log_weight_variance(log_weight) > 100

    def test_zero_weights_are_left_out(self) -> None:
        log_weight = np.r_[np.zeros(50), np.full(50, -np.inf)]
        assert log_weight_variance(log_weight) == pytest.approx(0, abs=1e-12)

    def test_weights_that_are_as_good_as_zero(self) -> None:
        """The square of their distance, which overflows, is infinite; their number is half."""
        log_weight = np.repeat([-1e300, 0.0], 500) + np.random.default_rng(2).normal(0, 0.1, 1000)
        assert log_weight_variance(log_weight) == pytest.approx(np.log(2), abs=0.05)

    def test_nothing_to_tell(self) -> None:
        assert log_weight_variance(np.full(9, -np.inf)) == np.inf


class TestParetoK:
    @pytest.mark.parametrize("shape", [0.3, 0.6, 1.2])
    def test_pareto_weights(self, shape: float) -> None:
        weight = np.random.default_rng(5).pareto(1 / shape, size=20_000)
        assert weight_pareto_k(np.log(weight)) == pytest.approx(shape, abs=0.2)

    def test_equal_weights(self) -> None:
        assert weight_pareto_k(np.full(200, -3.0)) == -np.inf

    @pytest.mark.parametrize("low", [-1.0, -5.0])
    def test_weights_of_two_values(self, low: float) -> None:
        weight = np.r_[np.zeros(200), np.full(400, low)]
        assert weight_pareto_k(weight) == -np.inf

    @pytest.mark.parametrize("n", [50, 99, 223, 224, 225, 226, 230, 400, 1001])
    def test_largest_weights_that_are_equal(self, n: int) -> None:
        """Ten of them are an end; ArviZ refuses a tail without a spread, of as many draws."""
        rest = np.random.default_rng(n).uniform(-5.0, -1.0, n)
        tail = int(min(n / 5, 3 * np.sqrt(n)))
        for equal in (*range(1, 13), *range(tail - 2, tail + 3)):
            k = weight_pareto_k(np.r_[np.zeros(equal), rest[equal:]])
            assert k == -np.inf if equal >= 10 else np.isfinite(k)

    @pytest.mark.parametrize("slope", [0.3, np.log(3.0)])
    def test_weights_on_a_lattice(self, slope: float) -> None:
        """A power of a count has the tail of a density that is as wide; NaN was no doubt."""
        rng = np.random.default_rng(7)
        count = rng.poisson(4.0, 5000)
        of_counts = weight_pareto_k(slope * count)
        of_density = weight_pareto_k(slope * (count - rng.random(5000)))
        assert of_counts == pytest.approx(of_density, abs=0.15)
        assert (of_counts > 0.7) == (slope > 1)

    def test_a_few_weights_above_equal_ones(self) -> None:
        assert weight_pareto_k(np.r_[np.zeros(997), np.full(3, 9.0)]) > 0.7


def test_largest_weight_by_hand() -> None:
    log_weight = np.array([0.0, np.log(2), np.log(3), -np.inf, np.log(4)]) - 900
    assert largest_weight(log_weight) == pytest.approx(2)


def test_median_and_robust_sd_of_normal_quantiles() -> None:
    values = 3 + 2 * stats.norm.ppf((np.arange(4001) + 0.5) / 4001)
    assert median_and_robust_sd(values) == pytest.approx((3, 2), rel=1e-3)

"""Agreement of the estimates of one evidence: all alarms are raised, and false ones are rare."""

import numpy as np
import pytest

from scipy import stats

from pymc_anneal.evidence.agreement import LEVEL, Estimate, chain_doubts, excess_doubts, lag
from pymc_anneal.evidence.diagnostics import assess

RESULT = Estimate("the run", 0.0, 0.1)


def even_weights(chains: int = 4, particles: int = 500, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(-0.02, 0.2, size=(chains, particles))


def runs(values, error: float = 0.05, steps=(100, 200, 400)) -> list[Estimate]:
    return [Estimate("a run", v, error, k) for v, k in zip(values, steps, strict=True)]


class TestChains:
    def test_one_chain_off(self) -> None:
        (doubt,) = chain_doubts(even_weights() + np.array([[0.0], [0.0], [1.0], [0.0]]))
        assert "the chains disagree by more than their errors" in doubt

    def test_halves_of_a_single_chain(self) -> None:
        weights = even_weights(chains=1)
        assert chain_doubts(weights) == []
        weights[:, ::2] += 1
        assert "the halves of the run disagree" in chain_doubts(weights)[0]

    def test_no_errors_to_compare(self) -> None:
        assert chain_doubts(np.zeros((2, 9))) == []
        assert chain_doubts(np.zeros((1, 1))) == []
        assert chain_doubts(np.full((2, 9), -np.inf)) == []

    def test_rounding_is_no_disagreement(self) -> None:
        rounded = -20.0 + 1e-12 * even_weights(chains=4) + 1e-11 * np.arange(4)[:, None]
        assert chain_doubts(rounded) == []

    def test_false_alarms(self) -> None:
        alarms = sum(bool(chain_doubts(even_weights(seed=s))) for s in range(300))
        assert alarms <= stats.binom.isf(1e-4, 300, LEVEL / 3)


class TestExcess:
    def test_an_estimate_above_the_result_is_named(self) -> None:
        (doubt,) = excess_doubts(RESULT, [Estimate("the pilot", 3.0, 0.05)])
        assert "the pilot found 3.00 +- 0.05, more than the run" in doubt

    def test_one_below_is_not(self) -> None:
        # The result is unbiased: what it found is there.
        assert excess_doubts(RESULT, [Estimate("the pilot", -3.0, 0.05)]) == []

    def test_more_comparisons_have_a_wider_limit(self) -> None:
        near = Estimate("near", 0.36, 0.0)
        assert excess_doubts(RESULT, [near])
        assert not excess_doubts(RESULT, [near] * 10)

    def test_false_alarms(self) -> None:
        rng = np.random.default_rng(1)
        alarms = 0
        for _ in range(5000):
            result, *earlier = rng.normal(0, [0.1, 0.2, 0.1, 0.05])
            estimates = [
                Estimate(f"{s}", v, s) for v, s in zip(earlier, (0.2, 0.1, 0.05), strict=True)
            ]
            alarms += bool(excess_doubts(RESULT._replace(log_evidence=result), estimates))
        assert alarms <= stats.binom.isf(1e-4, 5000, LEVEL / 3)


class TestLag:
    def test_the_coefficient_is_found(self) -> None:
        found = lag(runs([-40 / k for k in (100, 200, 400)], error=0.01))
        assert found.coefficient == pytest.approx(40)
        assert found.significant
        assert found.steps == 400
        # A bias of half of the target: 40 / 0.05.
        assert "0.1 nats are missing at 400 steps; try steps=800" in found.describe(0.1)

    def test_its_error_is_that_of_least_squares(self) -> None:
        rng = np.random.default_rng(2)
        found = [lag(runs(rng.normal(0, 0.05, 3))) for _ in range(2000)]
        scores = np.array([f.coefficient / f.mcse for f in found])
        assert stats.kstest(scores, "norm").pvalue > 1e-3
        assert sum(f.significant for f in found) <= stats.binom.isf(1e-4, 2000, LEVEL / 3)

    def test_estimates_that_fall_are_no_lag(self) -> None:
        assert not lag(runs([0.4, 0.2, 0.1], error=0.001)).significant

    @pytest.mark.parametrize(
        "estimates",
        [
            [],
            [Estimate("the pilot", 0.0, 0.1), Estimate("a trial", 0.0, 0.1, 5)],
            runs([0, 0], steps=(7, 7)),
            [Estimate("a trial", 0.0, np.inf, 5), Estimate("a round", 0.0, 0.1, 9)],
        ],
    )
    def test_nothing_to_compare(self, estimates) -> None:
        assert lag(estimates) is None

    @pytest.mark.parametrize(("error", "matters"), [(0.05, True), (0.19, True), (0.21, False)])
    def test_a_bias_below_half_of_the_error_does_not_matter(self, error, matters) -> None:
        found = lag(runs([-40 / k for k in (100, 200, 400)], error=0.01))
        assert found.bias == pytest.approx(0.1)
        assert found.matters(error) == matters

    def test_runs_that_are_far_shorter_do_not_count(self) -> None:
        short, long = runs([-1.0, 0.0, 0.0], steps=(20, 100, 200)), runs([0.0], steps=[400])
        assert lag(short).significant
        assert not lag(short + long).significant

    def test_a_bias_by_chance_does_not_matter(self) -> None:
        assert not lag(runs([-40 / k for k in (100, 200, 400)], error=0.2)).matters(0.01)

    def test_the_verdict_asks_for_more_steps(self) -> None:
        earlier = [Estimate("a trial", -1.0, 0.1, 25)]
        verdict = assess(even_weights(), target_mcse=0.1, steps=50, earlier=earlier)
        assert verdict.status == "more steps needed"
        assert "the transitions lag behind the path" in str(verdict)

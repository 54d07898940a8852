"""Annealed importance sampling: estimates from log weights, errors and intervals."""

import numpy as np
import pytest

from scipy import special, stats

from pymc_anneal.evidence.ais import (
    ais,
    bootstrap_interval,
    effective_sample_size,
    jackknife_error,
    population_means,
    student_interval,
)
from pymc_anneal.evidence.estimate import EvidenceEstimate

FOUR = np.log([1.0, 2.0, 4.0, 9.0])


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    values = np.array([1.0, 2.0, 4.0, 9.0])
    left_out = (values.sum() - values) / 3
    assert jackknife_error(left_out) == pytest.approx(values.std(ddof=1) / 2)


def test_four_weights_by_hand() -> None:
    # Sum 16, mean 4, sum of squares 102; RSE^2 = 102/16^2 - 1/4 = 38/256.
    estimate = ais(FOUR)
    assert estimate.log_evidence == pytest.approx(np.log(4.0), abs=1e-12, rel=0)
    assert estimate.ess == pytest.approx(256 / 102, abs=1e-12, rel=0)
    assert estimate.mcse == pytest.approx(np.sqrt(np.log(294 / 256)), abs=1e-12, rel=0)
    assert effective_sample_size(FOUR) == estimate.ess


def test_zero_weights_count() -> None:
    estimate = ais(np.array([0.0, -np.inf, np.log(3.0), -np.inf]))
    assert estimate.log_evidence == pytest.approx(0.0, abs=1e-12)
    assert estimate.ess == pytest.approx(1.6, abs=1e-12)
    assert estimate.mcse == pytest.approx(np.sqrt(np.log(1.375)), abs=1e-12)


@pytest.mark.parametrize("constant", [-1.2e5, -7.25, 3.0, 800.0])
def test_a_constant_shifts_the_log_evidence_alone(constant: float) -> None:
    rng = np.random.default_rng(1)
    log_weight = np.round(rng.normal(size=100) * 2**20) / 2**20  # sums with a constant are exact
    before, after = ais(log_weight), ais(log_weight + constant)
    shift = after.log_evidence - before.log_evidence
    assert shift == pytest.approx(constant, rel=1e-15, abs=1e-14)
    assert after.mcse == before.mcse
    assert after.ess == pytest.approx(before.ess, rel=1e-9)


def test_shape_does_not_matter() -> None:
    log_weight = np.random.default_rng(2).normal(size=(4, 25))
    assert ais(log_weight) == ais(log_weight.ravel())


def test_equal_weights_have_no_error() -> None:
    estimate = ais(np.full(10, -3.7))
    assert estimate.mcse == 0
    assert estimate.ess == pytest.approx(10)
    assert estimate.log_evidence == pytest.approx(-3.7, abs=1e-14)


def test_a_single_weight() -> None:
    assert ais(np.array([2.0])).log_evidence == 2.0


def test_all_weights_zero() -> None:
    estimate = ais(np.full(5, -np.inf))
    assert estimate.log_evidence == -np.inf
    assert estimate.mcse == np.inf
    assert estimate.ess == 0


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([0.0, np.nan], "found 2 of which 1 are NaN and 0 are \\+inf"),
        ([np.inf, 0.0, np.inf], "found 3 of which 0 are NaN and 2 are \\+inf"),
        ([], "found 0"),
    ],
)
def test_weights_that_are_none(bad: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ais(np.array(bad))


def test_mcse_is_the_error_of_the_log() -> None:
    # Standard deviation of the estimates over replications against the mean of their MCSE.
    rng = np.random.default_rng(3)
    estimates = [ais(rng.normal(-0.125, 0.5, size=400)) for _ in range(2000)]
    spread = np.std([e.log_evidence for e in estimates])
    expected = np.sqrt(np.log1p(np.expm1(0.25) / 400))
    # The standard error of a standard deviation is about 1/sqrt(2 n).
    assert spread == pytest.approx(expected, rel=5 / np.sqrt(4000))
    assert np.mean([e.mcse for e in estimates]) == pytest.approx(expected, rel=0.03)


def test_mean_weight_is_unbiased_and_its_log_is_low() -> None:
    rng = np.random.default_rng(4)
    values = np.array([ais(rng.normal(-0.5, 1.0, size=10)).log_evidence for _ in range(4000)])
    weight = np.exp(values)
    assert abs(weight.mean() - 1) < 5 * weight.std() / np.sqrt(len(weight))
    assert values.mean() < -5 * values.std() / np.sqrt(len(values))


class TestBootstrapInterval:
    """Coverage on log-normal weights, whose mean is one."""

    replications = 400
    particles = 300

    def covered(self, seed: int, shrink: float = 1.0) -> int:
        """How many intervals hold log Z = 0; a shrunken one is the wrong twin."""
        rng = np.random.default_rng(seed)
        count = 0
        for _ in range(self.replications):
            log_weight = rng.normal(-0.125, 0.5, size=self.particles)
            lower, upper = bootstrap_interval(log_weight, resamples=400, rng=rng)
            centre, half = (lower + upper) / 2, shrink * (upper - lower) / 2
            count += abs(centre) <= half
        return count

    def accepts(self, covered: int) -> bool:
        """Whether a count agrees with 95 % (less 1 % for the bootstrap), at a level of 1e-5."""
        lower = stats.binom.ppf(5e-6, self.replications, 0.94)
        upper = stats.binom.ppf(1 - 5e-6, self.replications, 0.95)
        return lower <= covered <= upper

    def test_coverage(self) -> None:
        assert self.accepts(self.covered(seed=5))

    def test_half_the_width_does_not_cover(self) -> None:
        assert not self.accepts(self.covered(seed=5, shrink=0.5))

    def test_quantiles_of_normal_weights(self) -> None:
        # Weights without skewness: the interval is the estimate +- 1.96 standard errors.
        rng = np.random.default_rng(6)
        weight = 1 + 0.1 * stats.norm.ppf((np.arange(2000) + 0.5) / 2000)
        lower, upper = bootstrap_interval(np.log(weight), resamples=20_000, rng=rng)
        error = weight.std() / np.sqrt(len(weight))
        assert lower == pytest.approx(-1.96 * error, rel=0.05)
        assert upper == pytest.approx(1.96 * error, rel=0.05)

    def test_skewed_weights_move_it_upwards(self) -> None:
        log_weight = np.random.default_rng(7).normal(-0.5, 1.0, size=500)
        estimate = ais(log_weight).log_evidence
        lower, upper = bootstrap_interval(log_weight, rng=np.random.default_rng(8))
        assert upper - estimate > estimate - lower > 0

    def test_wider_for_more_probability(self) -> None:
        log_weight = np.random.default_rng(9).normal(size=200)
        intervals = [
            bootstrap_interval(log_weight, p, rng=np.random.default_rng(10)) for p in (0.5, 0.95)
        ]
        assert intervals[1][0] < intervals[0][0] < intervals[0][1] < intervals[1][1]

    def test_a_constant_shifts_it(self) -> None:
        log_weight = np.random.default_rng(11).normal(size=100)
        first = bootstrap_interval(log_weight, rng=np.random.default_rng(12))
        second = bootstrap_interval(log_weight - 5000, rng=np.random.default_rng(12))
        assert np.allclose(np.add(second, 5000), first, rtol=0, atol=1e-9)

    def test_equal_weights(self) -> None:
        rng = np.random.default_rng(13)
        assert bootstrap_interval(np.full(9, -2.0), rng=rng) == pytest.approx((-2.0, -2.0))

    def test_zero_weights(self) -> None:
        rng = np.random.default_rng(14)
        assert bootstrap_interval(np.full(9, -np.inf), rng=rng) == (-np.inf, np.inf)
        half = np.where(np.arange(4000) % 2, 0.0, -np.inf)
        lower, upper = bootstrap_interval(half, resamples=4000, rng=rng)
        error = np.sqrt(0.25 / 4000)
        assert lower == pytest.approx(np.log(0.5 - 1.96 * error), abs=0.15 * error / 0.5)
        assert upper == pytest.approx(np.log(0.5 + 1.96 * error), abs=0.15 * error / 0.5)


def test_effective_sample_size_bounds() -> None:
    rng = np.random.default_rng(15)
    for spread in (0.0, 0.1, 1.0, 30.0):
        log_weight = rng.normal(0, spread, size=64)
        ess = effective_sample_size(log_weight)
        assert 1 - 1e-12 <= ess <= 64 * (1 + 1e-12)
        assert ess == pytest.approx(1 / (special.softmax(log_weight) ** 2).sum(), rel=1e-12)


class TestPopulations:
    def test_means(self) -> None:
        found = population_means(np.log([[1.0, 3.0, 2.0, 4.0]]), 2)
        np.testing.assert_allclose(found, np.log([[2.0, 3.0]]), rtol=1e-12)

    def test_error_is_the_spread_of_the_means(self) -> None:
        weight = np.random.default_rng(16).gamma(2.0, size=(4, 30))
        means = weight.reshape(-1, 5).mean(axis=1)
        relative = means.var(ddof=1) / len(means) / means.mean() ** 2
        found = ais(np.log(weight), population_size=5)
        assert found.log_evidence == pytest.approx(np.log(weight.mean()), abs=1e-12)
        assert found.mcse == pytest.approx(np.sqrt(np.log1p(relative)), rel=1e-12)

    def test_interval_is_that_of_student(self) -> None:
        low, high = student_interval(EvidenceEstimate(-3.0, 0.1, np.nan), 4)
        assert (low, high) == pytest.approx((-3.318245, -2.681755), abs=1e-6)

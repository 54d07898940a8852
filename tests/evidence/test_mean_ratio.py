"""Means of ratios over posterior draws: values, errors that cover, and guards."""

import numpy as np
import pytest

from scipy import stats

from pymc_anneal.base.arviz_compat import draws_ess
from pymc_anneal.evidence.mean_ratio import MeanRatio, mean_ratio
from pymc_anneal.posthoc import density_at_point
from pymc_anneal.posthoc.density_at_point import posterior_density_at
from pymc_anneal.posthoc.shear import Shear
from pymc_anneal.posthoc.window import Window
from tests.cases import log_gamma_draws, log_gamma_marginal

TRUTH = 0.5 * np.log(1 / 1.44)


def ratios(seed: int, autocorrelation: float = 0.6) -> np.ndarray:
    """Log ratios of N(0, sqrt(1/1.44)) to N(0, 1), unnormalised, along autoregressive chains."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(4, 400))
    for t in range(1, x.shape[1]):
        innovation = np.sqrt(1 - autocorrelation**2) * x[:, t]
        x[:, t] = autocorrelation * x[:, t - 1] + innovation
    return -0.22 * x**2


class TestMeanRatio:
    def test_four_numbers(self) -> None:
        found = mean_ratio(np.log([[1.0, 3.0], [2.0, 2.0]]))
        assert found.log_mean == pytest.approx(np.log(2.0), rel=1e-12)

    def test_error_and_effective_size_by_hand(self) -> None:
        ratio = np.exp(ratios(1))
        ess, relative = draws_ess(ratio), ratio.var() / ratio.mean() ** 2
        found = mean_ratio(np.log(ratio))
        assert found.mcse == pytest.approx(np.sqrt(np.log1p(relative / ess)), rel=1e-9)
        assert found.ess == pytest.approx(ess / (1 + relative), rel=1e-9)

    def test_equal_ratios_have_no_error(self) -> None:
        found = mean_ratio(np.full((4, 100), -3.0))
        assert found == MeanRatio(pytest.approx(-3.0), 0.0, 400, -np.inf, 1.0)
        assert found.verdict("").trusted

    def test_a_constant_shifts_the_log_mean_alone(self) -> None:
        a, b = mean_ratio(ratios(1)), mean_ratio(ratios(1) + 700.0)
        assert b.log_mean - a.log_mean == pytest.approx(700.0)
        assert b[1:] == pytest.approx(a[1:], rel=1e-9)

    def test_a_heavy_tail_counts_in_the_error(self) -> None:
        # Of those that the tail does not already give away, more than three plain errors off.
        plain, wide = list[bool](), list[bool]()
        for seed in range(400):
            ratio = stats.genpareto(0.7).rvs((4, 500), random_state=seed)
            found = mean_ratio(np.log(ratio))
            own = np.sqrt(np.log1p(ratio.var() / ratio.mean() ** 2 / draws_ess(ratio)))
            if 0.5 < found.pareto_k <= 0.7:
                off = abs(found.log_mean + np.log(0.3))
                plain.append(off > 3 * own)
                wide.append(off > 3 * found.mcse)
        assert np.mean(plain) > 0.08
        assert np.mean(wide) < 0.05

    def coverage(self, factor: float = 1.0) -> float:
        found = [mean_ratio(ratios(seed)) for seed in range(300)]
        error = np.array([abs(f.log_mean - TRUTH) for f in found])
        width = np.array([f.interval[1] - f.log_mean for f in found])
        return float((error <= factor * width).mean())

    def test_intervals_cover(self) -> None:
        assert 0.92 <= self.coverage() <= 0.98

    @pytest.mark.slow
    def test_intervals_of_independent_draws_do_not(self) -> None:
        # Chains of correlation 0.6 in x have an autocorrelation of 0.36 in x^2.
        assert self.coverage(np.sqrt((1 - 0.36) / (1 + 0.36))) < 0.92

    def test_heavy_tails_are_not_trusted(self) -> None:
        x = np.random.default_rng(1).normal(size=(4, 500))
        found = mean_ratio(0.48 * x**2)  # its mean is finite, its variance is not
        assert found.pareto_k > 0.7
        assert str(found.verdict("do that")).startswith("do not trust: Pareto k of the ratios")
        assert str(found.verdict("do that")).endswith("do that")

    def test_chains_that_disagree_are_not_trusted(self) -> None:
        found = mean_ratio(ratios(1) + np.array([[0.0], [0.0], [0.0], [2.0]]))
        assert "the chains have not converged" in str(found.verdict(""))

    def test_few_draws(self) -> None:
        found = mean_ratio(ratios(2, 0.0)[:, :20])
        assert str(found.verdict("")).startswith("more draws needed: the ratios amount to")

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_impossible_ratios(self, value) -> None:
        with pytest.raises(ValueError, match="NaN or infinite"):
            mean_ratio(np.array([[0.0, value]]))

    def test_zero_ratios(self) -> None:
        with pytest.raises(ValueError, match="zero at all"):
            mean_ratio(np.full((2, 3), -np.inf))


# A shear of two log-gamma variables: skewed, and correlated.
SHEAR = np.array([[1.0, 0.0], [0.8, 1.0]])


def log_density(x: np.ndarray) -> np.ndarray:
    z = x @ np.linalg.inv(SHEAR).T
    return 5.0 + sum(log_gamma_marginal(1.0, i).logpdf(z[:, i]) for i in (0, 1))


def ridge(shape=np.square, scale=0.05):
    """Return draws around a curve, shape (4, 1000, 2), and their log density."""
    rng = np.random.default_rng(2)
    a = rng.normal(size=(4, 1000))
    draws = np.stack([a, shape(a) + scale * rng.normal(size=a.shape)], axis=2)

    def log_density(x: np.ndarray) -> np.ndarray:
        return stats.norm.logpdf(x[:, 0]) + stats.norm.logpdf(x[:, 1], shape(x[:, 0]), scale)

    return draws, log_density


class TestPosteriorDensity:
    value = np.array([0.5])

    def estimate(self, seed: int) -> MeanRatio:
        draws = log_gamma_draws(1.0, 1600, np.random.default_rng([5, seed])) @ SHEAR.T
        coordinates = np.array([0])
        drawn = draws.reshape(4, 400, 2)
        return posterior_density_at(drawn, log_density, coordinates, self.value).density

    def exact(self) -> float:
        return float(log_gamma_marginal(1.0, 0).logpdf(self.value[0]))

    def coverage(self, shift: float = 0.0) -> float:
        found = [self.estimate(seed) for seed in range(300)]
        covered = [f.interval[0] <= self.exact() + shift <= f.interval[1] for f in found]
        return float(np.mean(covered))

    @pytest.mark.slow
    def test_intervals_cover(self) -> None:
        assert 0.92 <= self.coverage() <= 0.98

    @pytest.mark.slow
    def test_intervals_around_another_value_do_not(self) -> None:
        assert self.coverage(shift=2 * self.estimate(1).mcse) < 0.8

    def test_a_normal_posterior_has_a_small_error(self) -> None:
        root = np.array([[1.0, 0.0, 0.0], [0.9, 0.5, 0.0], [-0.4, 0.2, 1.5]])
        density = stats.multivariate_normal(np.zeros(3), root @ root.T)
        draws = np.random.default_rng(2).normal(size=(4, 1000, 3)) @ root.T
        coordinates, value = np.array([2, 0]), np.array([1.0, -2.0])
        found = posterior_density_at(draws, density.logpdf, coordinates, value).density
        exact = stats.multivariate_normal(
            np.zeros(2), (root @ root.T)[np.ix_(coordinates, coordinates)]
        ).logpdf(value)
        assert found.mcse < 0.01
        assert found.ess > 0.8 * 2000  # 1 / 0.95 - 1, and a regression from 2000 draws
        assert abs(found.log_mean - exact) < 4 * found.mcse

    def test_the_second_half_decides_nothing_about_the_estimate(self) -> None:
        """Fitted to the first halves of the chains alone: draws in another order have one mean."""
        draws = np.random.default_rng(3).normal(size=(2, 200, 1))
        density, point = stats.norm(0, 1).logpdf, np.array([0.3])

        def log_mean(second: np.ndarray) -> float:
            both = np.concatenate([draws[:, :100], second], axis=1)
            found = posterior_density_at(both, lambda x: density(x[:, 0]), np.array([0]), point)
            return found.density.log_mean

        tails = draws[:, 100:]
        parts = [np.repeat(part, 2, axis=1) for part in (tails[:, :50], tails[:, 50:])]
        mean = np.exp([log_mean(part) for part in parts]).mean()
        assert log_mean(tails) == pytest.approx(np.log(mean), rel=1e-9)

    @pytest.mark.parametrize("value", [[1.0, -2.0], [0.0, 0.0], [3.0, -6.0], [30.0, -6.0]])
    def test_draws_that_count_are_where_they_have_to_be(self, value) -> None:
        root = np.array([[1.0, 0.0, 0.0], [0.9, 0.5, 0.0], [-0.4, 0.2, 1.5]])
        density, point = stats.multivariate_normal(np.zeros(3), root @ root.T), np.array(value)
        for seed in range(5):
            draws = np.random.default_rng(seed).normal(size=(4, 500, 3)) @ root.T
            found = posterior_density_at(draws, density.logpdf, np.array([2, 0]), point)
            assert found.deviation < 3.5, seed

    @pytest.mark.parametrize("value", [0.0, 1.0, -2.0])
    def test_a_curved_ridge(self, value) -> None:
        found = posterior_density_at(*ridge(), np.array([0]), np.array([value]))
        assert found.verdict("").trusted
        assert found.density.mcse < 0.01
        assert abs(found.density.log_mean - stats.norm.logpdf(value)) < 4 * found.density.mcse

    @pytest.mark.parametrize(
        ("shape", "doubt"),
        [(np.square, "10 independent draws"), (np.abs, "do not count")],
        ids=["square", "kink"],
    )
    def test_draws_that_leave_a_ridge_are_seen(self, monkeypatch, shape, doubt) -> None:
        """The twin: along straight lines most draws leave it, and no weight shows what is lost."""

        def straight(x, log_density, coordinates, value):
            shear = Shear.fit(x, coordinates, 1, np.ones(len(x)))
            return Window.between(x[:, coordinates], value, 1.0, 0.8), shear

        monkeypatch.setattr(density_at_point, "_choose", straight)
        found = posterior_density_at(*ridge(shape, 0.1), np.array([0]), np.array([1.0]))
        assert found.density.log_mean < stats.norm.logpdf(1.0) - 1.0
        assert doubt in str(found.verdict("compare two models"))

    def test_draws_of_another_posterior_are_seen(self) -> None:
        """They count, and are not where they have to be."""
        draws, log_density = ridge()
        draws[:, :, 0] *= 0.8
        draws[:, :, 1] *= 0.64
        found = posterior_density_at(draws, log_density, np.array([0]), np.array([0.5]))
        assert "do not count" in str(found.verdict(""))

    def test_stuck_chains(self) -> None:
        with pytest.raises(ValueError, match="the chains are stuck"):
            posterior_density_at(np.zeros((2, 10, 1)), np.sum, np.array([0]), np.array([1.0]))

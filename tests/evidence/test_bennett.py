"""Bennett's acceptance ratio, and the test that both directions agree."""

import numpy as np
import pytest

from scipy import stats

from pymc_anneal.evidence.bennett import (
    bar,
    both_directions,
    disagreement,
    reweighting_p_value,
)
from tests.evidence.meng_wong import bridge


class TestBar:
    def test_four_numbers(self) -> None:
        """The solution satisfies the equation it is defined by."""
        a, b = np.array([0.3, -1.2]), np.array([0.9, 0.1])
        found = bar(a, b)
        z = np.exp(found.log_evidence)
        numerator = np.mean(np.exp(a) / (0.5 + 0.5 * np.exp(a) / z))
        assert z == pytest.approx(numerator / np.mean(1 / (0.5 + 0.5 * np.exp(b) / z)), rel=1e-11)
        assert found.forward_terms.mean() == pytest.approx(found.reverse_terms.mean(), rel=1e-11)

    @pytest.mark.parametrize("reverse_ess", [None, 10.0])
    def test_the_iteration_of_meng_and_wong(self, reverse_ess: float | None) -> None:
        """Shares of the bridge are those of the effective numbers of draws, here unequal ones."""
        rng = np.random.default_rng(4)
        a, b = rng.normal(0.7, 1.4, 50), rng.normal(2.7, 1.4, 200)
        ess = reverse_ess or 200
        expected = bridge(a, b, np.full(200, 1 / 200), ess / (50 + ess))
        assert bar(a, b, reverse_ess).log_evidence == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize("shift", [-1e4, 30.0, 5e5])
    def test_a_constant_shifts_the_answer(self, shift) -> None:
        a, b = np.array([0.3, -1.2, -np.inf]), np.array([0.9, 0.1])
        plain, shifted = bar(a, b), bar(a + shift, b + shift)
        assert shifted.log_evidence == pytest.approx(plain.log_evidence + shift, abs=1e-9)
        assert shifted.mcse() == pytest.approx(plain.mcse(), rel=1e-6)

    def test_error_of_normal_work(self) -> None:
        """Normal log weights of variance s^2, half of it to either side of log Z."""
        rng, found = np.random.default_rng(1), []
        for _ in range(400):
            a, b = rng.normal(0.7, np.sqrt(2), 100), rng.normal(2.7, np.sqrt(2), 150)
            estimate = bar(a, b)
            found.append((estimate.log_evidence - 1.7, estimate.mcse()))
        error, mcse = np.transpose(found)
        assert abs(error.mean()) < 4 * error.std() / 20
        assert error.std() == pytest.approx(np.sqrt((mcse**2).mean()), rel=0.15)

    @pytest.mark.parametrize(
        ("a", "b"),
        [([], [1.0]), ([1.0], []), ([np.nan], [1.0]), ([1.0], [-np.inf]), ([-np.inf], [1.0])],
    )
    def test_bad_weights(self, a, b) -> None:
        with pytest.raises(ValueError, match="Expected forward log weights"):
            bar(np.array(a), np.array(b))

    def test_default_error_uses_the_ess_of_the_bridge(self) -> None:
        a, b = np.array([0.3, -1.2, 0.4]), np.array([0.9, 0.1, 0.5])
        assert bar(a, b).reverse_ess == 3
        assert bar(a, b, 2.0).reverse_ess == 2
        assert bar(a, b, 2.0).mcse() == bar(a, b, 2.0).mcse(2.0) > bar(a, b, 2.0).mcse(3.0)


class TestBothDirections:
    def test_autocorrelated_reverse_runs_count_less(self) -> None:
        rng = np.random.default_rng(4)
        a, b = rng.normal(0.7, 1, (4, 200)), rng.normal(1.7, 1, (4, 50))
        repeated = both_directions(a, np.repeat(b, 4, axis=1))
        assert repeated.reverse_ess < 400
        assert both_directions(a, b).reverse_ess <= 200


class TestDisagreement:
    @pytest.mark.slow
    def test_normal_work(self) -> None:
        """The scores of consistent weights are standard normal."""
        rng = np.random.default_rng(1)
        scores = [
            disagreement(rng.normal(-1, np.sqrt(2), 400), rng.normal(1, np.sqrt(2), 300))
            for _ in range(200)
        ]
        assert abs(np.mean(scores)) < 4 / np.sqrt(200)
        assert 0.8 < np.std(scores) < 1.25

    def test_a_constant_changes_nothing(self) -> None:
        rng = np.random.default_rng(2)
        a, b = rng.normal(-1, 1, 100), rng.normal(0, 1, 100)
        assert disagreement(a + 1e4, b + 1e4) == pytest.approx(disagreement(a, b), rel=1e-6)

    def test_inconsistent_work(self) -> None:
        """The reverse weights are too large by half a nat."""
        rng = np.random.default_rng(3)
        a, b = rng.normal(-1, np.sqrt(2), 2000), rng.normal(1.5, np.sqrt(2), 2000)
        assert abs(disagreement(a, b)) > 4


class TestReweighting:
    """Normal log weights of variance ``s^2``, their means ``s^2 / 2`` to either side of log Z."""

    def draws(self, s: float, seed: int, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        return rng.normal(3 - s**2 / 2, s, n), rng.normal(3 + s**2 / 2, s, n)

    @pytest.mark.parametrize("s", [0.1, 0.7, 1.2])
    def test_false_alarms(self, s: float) -> None:
        found = np.array([reweighting_p_value(*self.draws(s, seed)) for seed in range(300)])
        assert (found < 1e-3).mean() < 0.01
        assert (found < 0.05).mean() < 0.1

    def test_a_constant_changes_nothing(self) -> None:
        a, b = self.draws(0.7, 1)
        shifted = reweighting_p_value(a + 1e4, b + 1e4)
        assert shifted == pytest.approx(reweighting_p_value(a, b), rel=1e-6)

    def test_weights_of_zero_and_ties(self) -> None:
        a, b = self.draws(0.7, 2)
        a[:50] = -np.inf
        assert reweighting_p_value(a, b) > 1e-3
        assert reweighting_p_value(np.zeros(50), np.zeros(70)) == 1

    def test_a_part_that_forward_runs_missed(self) -> None:
        # Consistent with Bennett's ratio: only a test without a free log Z notices.
        a, b = self.draws(0.3, 3)
        b[: len(b) * 3 // 4] += 20
        assert abs(disagreement(a, b)) < 4
        assert reweighting_p_value(a, b) < 1e-10

    def test_a_part_of_the_target_where_no_reverse_run_starts(self) -> None:
        a, b = self.draws(0.3, 4)
        a[: len(a) // 2] += 20
        assert reweighting_p_value(a, b) < 1e-10

    def test_a_part_of_the_reference_without_any_of_the_target(self) -> None:
        a, b = self.draws(0.3, 4)
        a[: len(a) // 2] -= 20
        assert reweighting_p_value(a, b) > 1e-3

    def test_forward_runs_of_heavier_tails(self) -> None:
        """Drawn by Student-t, for a normal target: at the target the two samples agree."""
        found = []
        for seed in range(200):
            rng = np.random.default_rng(seed)
            x = rng.standard_t(5, (800, 9)), rng.normal(size=(800, 9))
            a, b = ((stats.norm.logpdf(z) - stats.t.logpdf(z, 5)).sum(axis=1) for z in x)
            found.append(reweighting_p_value(a, b))
        assert (np.array(found) < 1e-3).mean() < 0.01

    def test_few_effective_reverse_runs_prove_less(self) -> None:
        a, b = self.draws(0.7, 5)
        b += 0.5
        assert reweighting_p_value(a, b, 10.0) > reweighting_p_value(a, b)

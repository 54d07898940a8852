"""Bridges between the draws of two posteriors: exact values, and coverage where means fail."""

import numpy as np
import pytest

from scipy import stats

from pymc_anneal.evidence.bridged_ratio import bridged_ratio
from pymc_anneal.evidence.mean_ratio import mean_ratio

# Of N(0, 1) and 3 N(1, SCALE): the ratio has no variance under the first.
SCALE, EXACT = 1.7, np.log(3.0)


def samples(seed: int, walkers: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Return log ratios at draws of both, those of the second at three times that agree half."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=(4, 250))
    stay = rng.normal(size=walkers)
    second = 1 + SCALE * (stay + rng.normal(size=(3, walkers))) / np.sqrt(2)

    def log_ratio(x: np.ndarray) -> np.ndarray:
        return EXACT + stats.norm(1, SCALE).logpdf(x) - stats.norm.logpdf(x)

    return log_ratio(first), log_ratio(second)


def test_scores_over_seeds() -> None:
    bridged = [bridged_ratio(*samples(seed)) for seed in range(200)]
    score = np.array([(one.log_mean - EXACT) / one.mcse for one in bridged])
    assert abs(score.mean()) < 4 / np.sqrt(200)
    assert 0.8 < score.std() < 1.2
    assert all(one.verdict("").trusted for one in bridged)
    alone = [mean_ratio(samples(seed)[0]) for seed in range(200)]
    of_means = np.array([(one.log_mean - EXACT) / one.mcse for one in alone])
    assert of_means.mean() < -0.5  # too low: the tail is not in the draws


def test_walkers_that_stay_count_once() -> None:
    first, second = samples(1)
    once = bridged_ratio(first, second[:1])
    thrice = bridged_ratio(first, np.repeat(second[:1], 3, axis=0))
    assert thrice.log_mean == pytest.approx(once.log_mean)
    assert thrice.mcse == pytest.approx(once.mcse, rel=0.02)


def test_times_that_differ_are_not_trusted() -> None:
    first, second = samples(1)
    drifting = second + np.array([[-1.5], [0.0], [1.5]])
    assert bridged_ratio(first, drifting).rhat > 1.05

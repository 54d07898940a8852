"""Errors of weights with a heavy tail."""

import numpy as np
import pytest

from scipy import stats

from pymc_anneal.evidence.ais import ais
from pymc_anneal.evidence.diagnostics import leaves_error_unknown, missing_share
from pymc_anneal.evidence.heavy_tail import ais_with_tail


def heavy(k: float, seed: int, n: int = 2000) -> np.ndarray:
    """Draw log weights of mean ``1 / (1 - k)`` with a Pareto tail."""
    return np.log(stats.genpareto(k).rvs(n, random_state=seed))


def test_weights_without_a_tail_keep_their_error() -> None:
    log_weight = np.random.default_rng(1).normal(0, 0.1, (4, 500))
    estimate, k = ais_with_tail(log_weight)
    assert estimate == ais(log_weight)
    assert k == -np.inf


def test_a_light_tail_changes_little() -> None:
    log_weight = np.random.default_rng(1).normal(0, 0.5, (4, 500))
    estimate, k = ais_with_tail(log_weight)
    assert 0 < k < 1 / 3
    assert 1 < estimate.mcse / ais(log_weight).mcse < 1.05


def test_the_missing_mass_of_pareto_weights() -> None:
    # Weights at the quantiles 1 - i/n, and E[w; w > q] beyond the first one by the known law.
    k, n = 0.6, 2000
    law = stats.genpareto(k)
    weight = law.isf(np.arange(1, n) / n)
    mean = 1 / (1 - k)
    beyond = (weight[0] + (1 + k * weight[0]) / (1 - k) - mean) / n
    assert missing_share(np.log(weight), k) == pytest.approx(beyond / mean, rel=0.15)


def scores(tail: float, n: int, seeds: int, low: float, high: float) -> np.ndarray:
    """Return scores by the error with and without the tail, for fitted k between two values.

    The weights are those of draws of a proposal that is too narrow, in one dimension.
    """
    deviation, found = np.sqrt(1 - tail), []
    for seed in range(seeds):
        x = deviation * np.random.default_rng(seed).normal(size=n)
        log_weight = -0.5 * x**2 * (1 - deviation**-2) + np.log(deviation)
        estimate, k = ais_with_tail(log_weight)
        if low < k <= high:
            errors = np.array([estimate.mcse, ais(log_weight).mcse])
            found.append(estimate.log_evidence / errors)
    return np.array(found).T


@pytest.mark.parametrize(
    ("tail", "n", "seeds", "low", "high"),
    [(0.45, 2000, 150, 1 / 3, 0.5), (0.25, 400, 800, 0.1, 1 / 3)],
)
def test_skewed_weights_have_wider_errors(tail, n, seeds, low, high) -> None:
    """The variance is finite. An error that takes the mean for normal is the wrong twin."""
    wide, plain = scores(tail, n, seeds, low, high)
    assert len(wide) > 40
    assert np.mean(np.square(plain)) > 1.15
    assert np.mean(np.square(wide)) < 1.05


def test_fewer_trusted_estimates_are_far_off() -> None:
    """With k = 0.7 one estimate in ten is more than three plain errors off."""
    plain, wide = [], []
    for seed in range(400):
        log_weight = heavy(0.7, seed)
        estimate, k = ais_with_tail(log_weight)
        if 0.5 < k <= 0.7:
            off = abs(estimate.log_evidence + np.log(0.3))
            wide.append(off > 3 * estimate.mcse)
            plain.append(off > 3 * ais(log_weight).mcse)
    assert np.mean(plain) > 0.08
    assert np.mean(wide) < 0.05


def test_heavy_tails_of_small_weights_have_an_error_that_covers() -> None:
    """One weight of ten has a tail with k = 0.8, on top of weights that are even."""
    share, scale, k, n = 0.1, 0.05, 0.8, 4000
    plain, wide = [], []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        excess = stats.genpareto(k, scale=scale).rvs(n, random_state=rng)
        log_weight = np.log(rng.uniform(0.9, 1.1, n) + (rng.uniform(size=n) < share) * excess)
        estimate, shape = ais_with_tail(log_weight)
        if shape > 0.7 and not leaves_error_unknown(log_weight, shape):
            off = abs(estimate.log_evidence - np.log1p(share * scale / (1 - k)))
            wide.append(off / estimate.mcse)
            plain.append(off / ais(log_weight).mcse)
    assert len(wide) > 40
    assert np.mean(np.array(plain) < 1.96) < 0.9
    assert np.mean(np.array(wide) < 1.96) > 0.95
    assert np.max(wide) < 3

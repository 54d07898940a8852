"""Stretch moves leave a target invariant, whatever its dimension, scales and shape."""

import numpy as np
import pytest

from scipy import stats

from pymc_anneal.posthoc import stretch_moves
from pymc_anneal.posthoc.stretch_moves import stretch

WALKERS, SWEEPS = 2000, 60


def normal(x: np.ndarray) -> np.ndarray:
    return -0.5 * (x**2).sum(axis=1)


def p_value(d: int, seed: int) -> float:
    """Test the radius of walkers that start in a standard normal density and move."""
    rng = np.random.default_rng(seed)
    moved = stretch(normal, rng.normal(size=(WALKERS, d)), rng, SWEEPS)
    return float(stats.kstest((moved**2).sum(axis=1), stats.chi2(d).cdf).pvalue)


@pytest.mark.parametrize("d", [1, 2, 20])
def test_a_normal_density_stays(d) -> None:
    assert p_value(d, seed=1) > 1e-4


def test_the_power_of_the_factor_matters(monkeypatch) -> None:
    """The twin whose proposal is not corrected for its volume."""
    ignoring = lambda x: normal(x) + 2 * np.log(np.abs(x[:, 0]))  # noqa: E731
    rng = np.random.default_rng(1)
    moved = stretch(ignoring, rng.normal(size=(WALKERS, 2)), rng, SWEEPS)
    assert stats.kstest((moved**2).sum(axis=1), stats.chi2(2).cdf).pvalue < 1e-6
    monkeypatch.setattr(stretch_moves, "_STRETCH", 4.0)
    assert p_value(2, seed=2) > 1e-4  # any stretch is right


def test_small_ensembles() -> None:
    """Four walkers on a line leave it invariant too."""
    rng = np.random.default_rng(5)
    moved = [stretch(normal, rng.normal(size=(4, 1)), rng, 10) for _ in range(2000)]
    assert stats.kstest(np.square(moved).ravel(), stats.chi2(1).cdf).pvalue > 1e-4


def test_walkers_reach_a_shifted_and_stretched_target() -> None:
    rng = np.random.default_rng(3)
    scale = np.array([[1e3, 0.0], [0.5, 1e-3]])
    inverse = np.linalg.inv(scale)

    def density(x: np.ndarray) -> np.ndarray:
        return normal((x - [1e4, 0.0]) @ inverse.T)

    moved = stretch(density, rng.normal(size=(WALKERS, 2)), rng, 400)
    white = (moved - [1e4, 0.0]) @ inverse.T
    assert stats.kstest((white**2).sum(axis=1), stats.chi2(2).cdf).pvalue > 1e-4


def test_where_there_is_no_density_no_walker_goes() -> None:
    rng = np.random.default_rng(4)

    def half(x: np.ndarray) -> np.ndarray:
        return np.where(x[:, 0] > 0, normal(x), -np.inf)

    start = np.abs(rng.normal(size=(WALKERS, 1)))
    before = start.copy()
    moved = stretch(half, start, rng, SWEEPS)
    np.testing.assert_array_equal(start, before)
    assert (moved > 0).all()
    assert stats.kstest(moved[:, 0], stats.halfnorm.cdf).pvalue > 1e-4

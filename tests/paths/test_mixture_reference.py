"""Mixtures of references: normalised densities and independent draws."""

import jax
import numpy as np
import pytest

from scipy import integrate, stats

import pymc_anneal as pma

from pymc_anneal.paths.mixed_draws import mixed_draws

WEIGHT = np.array([0.7, 0.3])
MIXTURE = pma.MixtureReference(
    WEIGHT,
    (
        pma.GaussianReference(np.array([-1.0]), np.array([0.5])),
        pma.StudentTReference(np.array([2.0]), np.array([1.5]), 5.0),
    ),
)


def log_density(x: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True):
        return np.asarray(MIXTURE.log_density(np.asarray(x, dtype=float).reshape(-1, 1)))


def distribution(x: np.ndarray) -> np.ndarray:
    parts = stats.norm(-1, 0.5).cdf(x), stats.t(5, 2, 1.5).cdf(x)
    return WEIGHT[0] * parts[0] + WEIGHT[1] * parts[1]


def test_density_of_the_components() -> None:
    x = np.linspace(-4, 8, 9)
    expected = WEIGHT[0] * stats.norm(-1, 0.5).pdf(x) + WEIGHT[1] * stats.t(5, 2, 1.5).pdf(x)
    np.testing.assert_allclose(log_density(x), np.log(expected), rtol=1e-12)


def test_normalised() -> None:
    def density(x: float) -> float:
        return float(np.exp(log_density(np.array([x]))[0]))

    mass = integrate.quad(density, -np.inf, np.inf, points=None, epsabs=1e-9)[0]
    assert mass == pytest.approx(1, abs=1e-7)


def test_draws_follow_the_density() -> None:
    draws = MIXTURE.sample(np.random.SeedSequence(1), 4000)[:, 0]
    assert stats.kstest(draws, distribution).pvalue > 1e-3


def test_a_single_draw_follows_the_density() -> None:
    # The first row comes from every component with its weight.
    first = [MIXTURE.sample(np.random.SeedSequence(i), 3)[0, 0] for i in range(2000)]
    assert stats.kstest(first, distribution).pvalue > 1e-3


def test_draws_are_independent() -> None:
    # The number of draws from a component is binomial; in strata it would hardly vary.
    samplers = [lambda seed, n, k=k: np.full((n, 1), float(k)) for k in range(3)]
    weight, n = np.array([0.25, 0.6, 0.15]), 50
    seeds = np.random.SeedSequence(3).spawn(2000)
    draws = np.stack([mixed_draws(seed, n, weight, samplers)[:, 0] for seed in seeds])
    counts = np.stack([(draws == k).sum(axis=1) for k in range(3)])
    np.testing.assert_allclose(counts.mean(axis=1), n * weight, rtol=0.02)
    np.testing.assert_allclose(counts.var(axis=1), n * weight * (1 - weight), rtol=0.15)


def test_the_same_seed_gives_the_same_draws() -> None:
    a, b = (MIXTURE.sample(np.random.SeedSequence(7), 40) for _ in range(2))
    np.testing.assert_array_equal(a, b)

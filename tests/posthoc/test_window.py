"""Windows: their density and the moments of draws from them."""

import numpy as np
import pytest

from pymc_anneal.posthoc.window import Window

ROOT = np.array([[1.0, 0.0], [0.6, 2.0]])


def window(ndim: int, width: float = 0.5) -> Window:
    b = np.random.default_rng(1).normal(size=(200, ndim)) @ ROOT[:ndim, :ndim].T
    return Window.between(b, np.full(ndim, 2.0), 0.5, width)


@pytest.mark.parametrize("ndim", [1, 2])
def test_the_density_is_normalised_and_the_moments_are_zero(ndim: int) -> None:
    """By the mean over a box, with an even grid."""
    found, steps = window(ndim), 801
    half = 3 * np.abs(found.scale).sum(axis=1)
    axes = [np.linspace(c - h, c + h, steps) for c, h in zip(found.centre, half, strict=True)]
    b = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    mass = np.exp(found.log_density(b)) * np.prod(2 * half / (steps - 1))
    axis = tuple(range(1, ndim + 1))
    assert mass.sum() == pytest.approx(1.0, abs=3e-3)
    np.testing.assert_allclose((mass * found.deviations(b)).sum(axis=axis), 0, atol=5e-3)


def test_draws_of_a_narrower_density_deviate() -> None:
    found = window(2)
    b = np.random.default_rng(2).normal(size=(500, 2)) @ (0.5 * found.scale).T + found.centre
    radius, along = found.deviations(b)
    assert radius.mean() < -1.0
    assert abs(along.mean()) < 0.1


def test_it_lies_on_the_way_to_the_point() -> None:
    b = np.random.default_rng(3).normal(size=(1000, 1))
    for place in (0.0, 0.25, 1.0):
        centre = Window.between(b, np.array([4.0]), place, 1.0).centre
        assert centre == pytest.approx(b.mean() + place * (4 - b.mean()))
    at_the_mean = Window.between(b, b.mean(axis=0), 1.0, 1.0)
    assert np.linalg.norm(at_the_mean.towards) == 1.0

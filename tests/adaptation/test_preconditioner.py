"""The scale of a density: exact for Gaussians, robust to tails, honest about few particles."""

import numpy as np
import pytest

from pymc_anneal.adaptation.preconditioner import _geometric_mean, estimate_scale


def covariance_of(scale: np.ndarray) -> np.ndarray:
    return scale @ scale.T if scale.ndim == 2 else np.diag(scale**2)


def gaussian(dim: int, count: int, seed: int = 1):
    """Return particles of a correlated Gaussian, their gradients, and its covariance."""
    rng = np.random.default_rng(seed)
    root = np.tril(rng.normal(size=(dim, dim)), -1) + np.diag(rng.uniform(0.5, 3, dim))
    covariance = root @ root.T
    position = 5 + rng.normal(size=(count, dim)) @ root.T
    return position, -np.linalg.solve(covariance, (position - 5).T).T, covariance


def roundness(scale: np.ndarray, covariance: np.ndarray) -> float:
    """Condition number of the covariance in the coordinates of the scale."""
    inverse = np.linalg.inv(scale if scale.ndim == 2 else np.diag(scale))
    return float(np.linalg.cond(inverse @ covariance @ inverse.T))


def test_gradients_cancel_the_noise_of_few_particles() -> None:
    position, gradient, covariance = gaussian(dim=20, count=120)
    weight = np.ones(len(position))
    with_gradient = roundness(estimate_scale(position, weight, gradient), covariance)
    without = roundness(estimate_scale(position, weight), covariance)
    assert with_gradient < 1.5
    assert without > 20 * with_gradient  # from the positions alone


def test_weights_count() -> None:
    position, gradient, covariance = gaussian(dim=3, count=4000)
    shift = np.array([1.0, 0.0, 0.0])
    # Half of the particles belong to another density and weigh nothing.
    position, gradient = np.vstack([position, 50 + shift * position]), np.vstack([gradient] * 2)
    weight = np.repeat([1.0, 0.0], 4000)
    found = covariance_of(estimate_scale(position, weight, gradient))
    np.testing.assert_allclose(found, covariance, rtol=0.1, atol=0.1)


@pytest.mark.parametrize("gradients", [False, True])
def test_uneven_weights(gradients: bool) -> None:
    """Draws of N(0, 4) that are weighted to N(1, 1)."""
    position = np.random.default_rng(4).normal(0, 2, size=(40_000, 2))
    weight = np.exp((position**2 / 8 - (position - 1) ** 2 / 2).sum(axis=1))
    scale = estimate_scale(position, weight, 1 - position if gradients else None)
    np.testing.assert_allclose(covariance_of(scale), np.eye(2), atol=0.05)


def test_one_coordinate() -> None:
    position, gradient, covariance = gaussian(dim=1, count=300)
    scale = estimate_scale(position, np.ones(300), gradient)
    assert scale.shape == (1,)
    assert scale[0] ** 2 == pytest.approx(covariance[0, 0], rel=1e-9)


def test_many_coordinates_are_diagonal() -> None:
    position, gradient, _ = gaussian(dim=80, count=300)
    assert estimate_scale(position, np.ones(300), gradient).shape == (80,)


def test_few_particles_are_diagonal() -> None:
    position, gradient, _ = gaussian(dim=20, count=30)
    assert estimate_scale(position, np.ones(30), gradient).shape == (20,)


def test_tails_do_not_set_the_scale() -> None:
    rng = np.random.default_rng(2)
    position = rng.standard_cauchy(size=(2000, 2))
    scale = estimate_scale(position, np.ones(2000))
    assert (np.diag(covariance_of(scale)) < 10).all()


def test_a_coordinate_without_spread_and_gradients_that_are_not_finite() -> None:
    position, gradient, _ = gaussian(dim=2, count=50)
    position[:, 1] = 3.0
    gradient[:, 1] = 0.0
    gradient[:10] = np.nan
    scale = estimate_scale(position, np.ones(50), gradient)
    assert np.isfinite(scale).all()
    nowhere = estimate_scale(position, np.ones(50), np.full_like(position, np.nan))
    assert np.isfinite(nowhere).all()


def test_scales_are_positive_definite_where_particles_coincide() -> None:
    position = np.repeat(np.random.default_rng(3).normal(size=(3, 4)), 100, axis=0)
    scale = estimate_scale(position, np.ones(300), -position)
    assert np.isfinite(scale).all()
    assert (np.linalg.eigvalsh(covariance_of(scale)) > 0).all()


@pytest.mark.parametrize("unit", [1e3, 1e30])
def test_scales_that_are_far_apart_end_as_a_scale(unit: float) -> None:
    """Where rounding loses the small ones (a prior `Gamma(1e-3, 1e-3)`), there are no correlations.

    Whether it does at 1e30 depends on the library of linear algebra.
    """
    x = np.random.default_rng(0).normal(size=(400, 3)) * [unit, 1.0, 1.0]
    scale = estimate_scale(x, np.ones(400), -x)
    assert scale.shape == (3, 3) or unit == 1e30
    assert np.isfinite(scale).all()
    assert (np.diagonal(scale) > 0).all() if scale.ndim == 2 else (scale > 0).all()


def test_gradients_along_one_line_end_as_a_scale() -> None:
    """Their covariance has one eigenvalue, and rounding may make the others negative."""
    rng = np.random.default_rng(0)
    gradient = 1e12 * np.outer(rng.normal(size=400), np.ones(3)) + rng.normal(size=(400, 3))
    scale = estimate_scale(rng.normal(size=(400, 3)), np.ones(400), gradient)
    assert np.isfinite(scale).all()
    assert (np.diagonal(scale) > 0).all() if scale.ndim == 2 else (scale > 0).all()
    with pytest.raises(np.linalg.LinAlgError, match="nothing of the smallest eigenvalue"):
        _geometric_mean(np.eye(2), np.diag([1.0, -1e-9]))

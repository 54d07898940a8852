"""Curvature of log densities, and scales from its mean in many dimensions."""

import jax
import jax.numpy as jnp
import numpy as np

from scipy import linalg

from pymc_anneal.adaptation.curvature import curvature, locate_by_curvature
from pymc_anneal.adaptation.fit_reference import MAX_DENSE, locate
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base import LogTerms
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.paths.geometric import GeometricPath

D = MAX_DENSE + 8
CENTRE = np.linspace(-2.0, 2.0, D)
# Each coordinate depends on its neighbour, as in a random walk.
STEP = np.eye(D) - 0.9 * np.eye(D, k=-1)


def gaussian(x: jax.Array) -> LogTerms:
    return LogTerms(-0.5 * ((jnp.asarray(STEP) @ (x - CENTRE)) ** 2).sum(), jnp.zeros(()))


def draws(n: int) -> np.ndarray:
    z = np.random.default_rng(4).standard_normal((D, n))
    return CENTRE + linalg.solve_triangular(STEP, z, lower=True).T


def covariance_error(scale: np.ndarray) -> float:
    """Return the largest eigenvalue of ``STEP M STEP' - 1``."""
    white = STEP @ (scale if scale.ndim == 2 else np.diag(scale))
    return float(np.abs(np.linalg.eigvalsh(white @ white.T) - 1).max())


@double_precision
def test_few_particles_of_a_gaussian_are_enough() -> None:
    target = TargetDensity(GeometricPath(gaussian), 64)
    position = draws(20)
    slope = target.gradient(position)
    mean, scale = locate_by_curvature(target, position, slope)
    np.testing.assert_allclose(mean, CENTRE, atol=1e-6)
    assert covariance_error(scale) < 1e-6
    assert covariance_error(locate(position, slope)[1]) > 1, "without curvature"


def test_a_density_that_is_not_concave_has_a_diagonal_scale() -> None:
    def student_t(x: jax.Array) -> LogTerms:
        return LogTerms(-jnp.log1p(x**2).sum(), jnp.zeros(()))

    target = TargetDensity(GeometricPath(student_t), 64)
    position = 3 * np.random.default_rng(4).standard_normal((20, D))
    mean, scale = locate_by_curvature(target, position, target.gradient(position))
    assert mean.shape == scale.shape == (D,)
    assert np.isfinite(mean).all()


def test_without_gradients() -> None:
    target = TargetDensity(GeometricPath(gaussian), 64, gradients=False)
    position = draws(20)
    mean, scale = locate_by_curvature(target, position, target.gradient(position))
    np.testing.assert_allclose(mean, position.mean(axis=0))
    assert scale.shape == (D,)
    assert target.evaluations == 0


@double_precision
def test_curvature_by_differences() -> None:
    def terms(x: jax.Array) -> LogTerms:
        return LogTerms(-jnp.cosh(x[0]) - 1e6 * x[1] ** 2 + x[0] * x[1], jnp.zeros(()))

    target, at = TargetDensity(GeometricPath(terms), 4), np.array([0.7, 1e-3])
    found = curvature(target, at, np.array([1.0, 1e-3]))
    expected = [[np.cosh(0.7), -1.0], [-1.0, 2e6]]
    np.testing.assert_allclose(found, expected, rtol=1e-6)

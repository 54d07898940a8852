"""Curvature of log densities, and scales from its mean in many dimensions."""

import jax
import jax.numpy as jnp
import numpy as np

from scipy import linalg

from pymc_anneal.adaptation.curvature import (
    climbing_scale,
    curvature,
    locate_by_curvature,
    locate_tail,
)
from pymc_anneal.adaptation.preconditioner import MAX_DENSE, estimate_scale, locate
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base import LogTerms
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.paths.geometric import GeometricPath
from tests.adaptation import neck

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


class TestClimbingScale:
    # Up along the first direction, down along the second, next to nothing along the third.
    DIRECTIONS = np.linalg.qr(np.random.default_rng(6).standard_normal((3, 3)))[0]
    CURVATURE = np.array([-400.0, 2.5e5, 1e-6])

    def scale_of(self, curvature: np.ndarray) -> np.ndarray:
        def quadratic(x: jax.Array) -> LogTerms:
            along = x @ jnp.asarray(self.DIRECTIONS)
            return LogTerms(-0.5 * (jnp.asarray(curvature) * along**2).sum(), jnp.zeros(()))

        target = TargetDensity(GeometricPath(quadratic), 64)
        return climbing_scale(target, np.ones(3), np.full(3, 2.0))

    @double_precision
    def test_is_the_root_of_the_absolute_curvature_and_no_longer_than_the_prior(self) -> None:
        scale = self.scale_of(self.CURVATURE)
        lengths = np.array([1 / 20, 1 / 500, 2.0])
        expected = self.DIRECTIONS @ np.diag(lengths**2) @ self.DIRECTIONS.T
        np.testing.assert_allclose(scale @ scale.T, expected, atol=1e-5)

    @double_precision
    def test_is_that_of_the_prior_where_there_is_no_finite_curvature(self) -> None:
        np.testing.assert_array_equal(self.scale_of(np.full(3, np.nan)), 2.0 * np.eye(3))


@double_precision
def test_of_a_peak_much_narrower_than_its_place() -> None:
    """Differences in units of its width would be lost to rounding."""
    width = 1e-12

    def narrow(x: jax.Array) -> LogTerms:
        return LogTerms(-0.5 * (((x - 1.0) / width) ** 2).sum(), jnp.zeros(()))

    target = TargetDensity(GeometricPath(narrow), 64)
    found = curvature(target, np.ones(2), np.full(2, width))
    np.testing.assert_allclose(found * width**2, np.eye(2), atol=1e-3)


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


class TestTail:
    """The neck of a funnel (`neck.py`)."""

    def _in_neck(self, position: np.ndarray) -> np.ndarray:
        inside = (position[:, 0] < neck.NECK).astype(float)
        return inside / inside.sum()

    def _lost(self, mean: np.ndarray, scale: np.ndarray) -> float:
        """Return the divergence of the normal density from that of the effects in the neck."""
        covariance = scale @ scale.T if scale.ndim == 2 else np.diag(scale**2)
        inverse = np.linalg.inv(covariance[1:, 1:])
        log_det = np.linalg.slogdet(covariance[1:, 1:])[1]
        return 0.5 * float(
            np.trace(inverse) - neck.EFFECTS + log_det + mean[1:] @ inverse @ mean[1:]
        )

    def _target(self, gradients: bool = True) -> TargetDensity:
        return TargetDensity(GeometricPath(neck.terms), 64, gradients=gradients)

    @double_precision
    def test_a_dozen_particles_of_a_neck_are_enough(self) -> None:
        position = neck.posterior(250)
        weight = self._in_neck(position)
        assert (weight > 0).sum() < 20
        by_moments, by_curvature = locate_tail(self._target(), position, weight)
        assert self._lost(*by_curvature) < 0.1
        assert self._lost(*by_moments) > 2.0

    @double_precision
    def test_the_length_of_a_neck_is_that_of_its_particles(self) -> None:
        position = neck.posterior(250)
        weight = self._in_neck(position)
        _, (mean, scale) = locate_tail(self._target(), position, weight)
        assert abs(mean[0] - weight @ position[:, 0]) < 0.1
        # Beyond a quantile an exponential variable has a standard deviation of one again.
        assert 0.5 < np.linalg.norm(scale[0]) < 2.0

    @double_precision
    def test_one_particle(self) -> None:
        """It shows no length: that of all particles is taken, about one."""
        position = neck.posterior(250)
        weight = np.zeros(250)
        weight[position[:, 0].argmin()] = 1.0
        _, (mean, scale) = locate_tail(self._target(), position, weight)
        assert abs(mean[0] - position[:, 0].min()) < 0.1
        assert 0.5 < np.linalg.norm(scale[0]) < 2.0
        assert self._lost(mean, scale) < 0.1

    @double_precision
    def test_scales_a_million_apart(self) -> None:
        ratio = jnp.geomspace(1e-6, 1.0, 6)
        axes = np.linalg.qr(np.random.default_rng(8).standard_normal((6, 6)))[0]

        def terms(x: jax.Array) -> LogTerms:
            return LogTerms(-0.5 * ((jnp.asarray(axes).T @ x / ratio) ** 2).sum(), jnp.zeros(()))

        position = np.random.default_rng(9).standard_normal((20, 6)) * np.asarray(ratio) @ axes.T
        weight = np.array([0.6, 0.4, *np.zeros(18)])
        target = TargetDensity(GeometricPath(terms), 64)
        _, (_, scale) = locate_tail(target, position, weight)
        assert (np.diag(scale) > 0).all()
        sizes = np.linalg.svd(scale, compute_uv=False)
        np.testing.assert_allclose(sizes, np.sort(ratio)[::-1], rtol=0.01)

    @double_precision
    def test_of_many_particles_the_moments_are_taken(self) -> None:
        position = neck.posterior(8000)
        weight = self._in_neck(position)
        [(mean, scale)] = locate_tail(self._target(), position, weight)
        np.testing.assert_array_equal(mean, weight @ position)
        np.testing.assert_array_equal(scale, estimate_scale(position, weight, largest=MAX_DENSE))

    def test_without_gradients(self) -> None:
        position = neck.posterior(250)
        weight = self._in_neck(position)
        [(mean, scale)] = locate_tail(self._target(gradients=False), position, weight)
        np.testing.assert_array_equal(mean, weight @ position)
        np.testing.assert_array_equal(scale, estimate_scale(position, weight))

    @double_precision
    def test_a_step_that_leaves_the_particles_is_not_taken(self) -> None:
        """The end of a long slope is beyond what was seen of it."""

        def slope(x: jax.Array) -> LogTerms:
            return LogTerms(-0.5 * ((x - 50.0) ** 2).sum(), jnp.zeros(()))

        target, position = TargetDensity(GeometricPath(slope), 64), neck.posterior(30)
        weight = np.full(30, 1 / 30)
        _, (mean, _) = locate_tail(target, position, weight)
        heaviest = np.argsort(weight)[-16:]
        np.testing.assert_allclose(mean, position[heaviest].mean(axis=0))

"""Gaussians as an exponential family, and theorems on averages of their parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scipy import integrate, stats

from pymc_anneal.paths import Gaussian, GaussianPath, geometric_average, moment_average
from pymc_anneal.paths.gaussian import Average

both_averages = pytest.mark.parametrize("average", [geometric_average, moment_average])


def two() -> tuple[Gaussian, Gaussian]:
    first = Gaussian(np.array([-1.0, 0.5]), np.array([[1.0, -0.6], [-0.6, 2.0]]))
    second = Gaussian(np.array([2.0, 0.0]), np.array([[0.5, 0.1], [0.1, 0.3]]))
    return first, second


def unit_normals(distance: float) -> GaussianPath:
    """Return the moment path between two unit normals, ``distance`` apart."""
    ends = [Gaussian(np.array([m]), np.eye(1)) for m in (0.0, distance)]
    return GaussianPath(*ends, moment_average)


def flatten(parameters) -> np.ndarray:
    return np.concatenate([np.ravel(p) for p in parameters])


@jax.jit
def slopes(path: GaussianPath, beta: jax.Array) -> list[jax.Array]:
    return [
        jax.jvp(lambda b, get=get: get(path.at(b)), (beta,), (jnp.ones(()),))[1]
        for get in (lambda g: g.natural, lambda g: g.moments)
    ]


def metric(path: GaussianPath, beta: float) -> float:
    """``eta'(beta).s'(beta)``, the Fisher information of the path."""
    slope = slopes(path, jnp.asarray(beta))
    return float(flatten(slope[0]) @ flatten(slope[1]))


def test_natural_parameters_round_trip() -> None:
    for gaussian in two():
        again = Gaussian.from_natural(*gaussian.natural)
        np.testing.assert_allclose(again.mean, gaussian.mean, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(again.covariance, gaussian.covariance, rtol=1e-12)


def test_normaliser() -> None:
    gaussian = two()[0]
    x = np.array([[0.3, -1.2], [2.0, 0.4]])
    path = GaussianPath(gaussian, gaussian, geometric_average)
    density = path.log_density(jnp.asarray(x), 0.0) - gaussian.log_normaliser()
    expected = stats.multivariate_normal(gaussian.mean, gaussian.covariance).logpdf(x)
    np.testing.assert_allclose(density, expected, rtol=1e-12)


def test_draws() -> None:
    gaussian, n = two()[1], 100_000
    draws = np.asarray(gaussian.sample(jax.random.key(1), n))
    error = 5 * np.sqrt(np.diag(gaussian.covariance) / n)
    assert (np.abs(draws.mean(axis=0) - gaussian.mean) < error).all()
    np.testing.assert_allclose(np.cov(draws.T), gaussian.covariance, atol=0.02)


def test_averages_of_natural_parameters_and_of_moments() -> None:
    first, second = two()
    beta = 0.3
    natural = geometric_average(first, second, beta).natural
    expected = (1 - beta) * flatten(first.natural) + beta * flatten(second.natural)
    np.testing.assert_allclose(flatten(natural), expected, rtol=1e-11)
    moments = moment_average(first, second, beta).moments
    expected = (1 - beta) * flatten(first.moments) + beta * flatten(second.moments)
    np.testing.assert_allclose(flatten(moments), expected, rtol=1e-11)


@both_averages
def test_theorem_2_both_paths_have_the_same_cost(average: Average) -> None:
    # Grosse, Maddison & Salakhutdinov (2013), eq. 17: int g = (eta_1 - eta_0).(s_1 - s_0).
    first, second = two()
    path = GaussianPath(first, second, average)
    cost, _ = integrate.quad(lambda b: metric(path, b), 0, 1, epsabs=1e-8)
    expected = (flatten(second.natural) - flatten(first.natural)) @ (
        flatten(second.moments) - flatten(first.moments)
    )
    assert cost == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(
    ("distance", "length"), [(2.0, 1.925), (5.0, 3.928), (10.0, 5.772), (30.0, 8.842)]
)
def test_length_of_the_moment_path(distance: float, length: float) -> None:
    path = unit_normals(distance)
    # Most of the length lies at the ends: substitute beta = sin^2.
    found, _ = integrate.quad(
        lambda t: np.sqrt(metric(path, np.sin(t) ** 2)) * np.sin(2 * t), 0, np.pi / 2, epsabs=1e-6
    )
    assert found == pytest.approx(length, abs=6e-4)
    assert found <= np.pi + np.sqrt(2) * np.log(1 + distance**2 / 4)  # the paper's bound


@both_averages
def test_path_contract(average: Average) -> None:
    path = GaussianPath(*two(), average)
    x = jnp.asarray(np.random.default_rng(2).normal(size=(5, 2)))
    ratio = path.log_ratio(x, 0.2, 0.7)
    difference = path.log_density(x, 0.7) - path.log_density(x, 0.2)
    np.testing.assert_allclose(ratio, difference, rtol=1e-9)
    step = 1e-6
    slope = (path.log_density(x, 0.4 + step) - path.log_density(x, 0.4 - step)) / (2 * step)
    np.testing.assert_allclose(path.velocity(x, 0.4), slope, rtol=1e-6)

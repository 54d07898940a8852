"""Paths from the prior, or another reference, to the posterior."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.base.contracts import LogTerms, gradient
from tests.cases import PATHS, Case, PathCase, log_gamma_draws, log_gamma_terms, parametrize


@pytest.fixture
def position() -> np.ndarray:
    return log_gamma_draws(0.3, 40, np.random.default_rng(1))


@parametrize("case", PATHS)
class TestContract:
    def test_ends(self, case: PathCase, position: np.ndarray) -> None:
        path = case.make(log_gamma_terms)
        terms = path.evaluate(position)
        exact = jax.vmap(log_gamma_terms)(position)
        start = case.log_start(position)
        np.testing.assert_allclose(path.log_density(terms, 0.0), start, rtol=1e-13)
        np.testing.assert_allclose(path.log_density(terms, 1.0), sum(exact), rtol=1e-13)

    def test_ratio_is_a_difference(self, case: Case, position: np.ndarray) -> None:
        path = case.make(log_gamma_terms)
        terms = path.evaluate(position)
        for a, b in [(0.0, 0.2), (0.2, 0.9), (0.9, 0.1), (0.5, 0.5)]:
            difference = path.log_density(terms, b) - path.log_density(terms, a)
            np.testing.assert_allclose(path.log_ratio(terms, a, b), difference, atol=1e-12)

    def test_ratio_over_a_tiny_step(self, case: Case, position: np.ndarray) -> None:
        # Free of cancellation: log f_{b + h} - log f_b = h v_b to all digits, at h = 1e-13.
        if case.name == "custom":
            pytest.skip("a difference of densities is all that a custom path offers")
        path = case.make(log_gamma_terms)
        terms = path.evaluate(position)
        velocity = path.velocity(terms, jnp.asarray(0.0))
        np.testing.assert_allclose(path.log_ratio(terms, 0.0, 1e-13) / 1e-13, velocity, rtol=1e-9)

    def test_velocity_is_the_derivative(self, case: Case, position: np.ndarray) -> None:
        path = case.make(log_gamma_terms)
        terms = path.evaluate(position)
        for beta in (0.1, 0.6, 1.0):
            _, tangent = jax.jvp(lambda b: path.log_density(terms, b), (beta,), (1.0,))
            np.testing.assert_allclose(path.velocity(terms, beta), tangent, rtol=1e-12)

    def test_is_a_pytree(self, case: Case, position: np.ndarray) -> None:
        path = case.make(log_gamma_terms)
        leaves, structure = jax.tree.flatten(path)
        again = jax.tree.unflatten(structure, leaves)
        compiled = jax.jit(lambda p, x, b: p.log_density(p.evaluate(x), b))
        expected = path.log_density(path.evaluate(position), 0.4)
        np.testing.assert_allclose(compiled(again, position, 0.4), expected, rtol=1e-13)

    def test_gradient(self, case: Case, position: np.ndarray) -> None:
        path, h = case.make(log_gamma_terms), 1e-6
        result = gradient(path, jnp.asarray(position), 0.7)
        for i in range(2):
            step = h * np.eye(2)[i]
            high = path.log_density(path.evaluate(position + step), 0.7)
            low = path.log_density(path.evaluate(position - step), 0.7)
            np.testing.assert_allclose(result[:, i], (high - low) / (2 * h), rtol=1e-6, atol=1e-6)


def test_zero_likelihood() -> None:
    def terms(x: jax.Array) -> LogTerms:
        return LogTerms(-0.5 * x[0] ** 2, jnp.where(x[0] < 0, -jnp.inf, x[0]))

    path = pma.GeometricPath(terms)
    values = path.evaluate(np.array([[-1.0], [2.0]]))
    np.testing.assert_array_equal(path.log_density(values, 0.0), [-0.5, -2.0])
    np.testing.assert_array_equal(path.log_density(values, 0.5), [-np.inf, -1.0])
    np.testing.assert_array_equal(path.log_ratio(values, 0.0, 0.5), [-np.inf, 1.0])
    np.testing.assert_array_equal(path.log_ratio(values, 0.5, 0.5), [0.0, 0.0])

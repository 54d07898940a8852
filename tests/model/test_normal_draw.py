"""Draws of a normal distribution given its precision: values, and derivatives both ways."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pymc_anneal.model.normal_block import NormalDraw, normal_draw


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def inputs(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(k)
    root = rng.normal(size=(k, 2 * k))
    return root @ root.T / k + np.eye(k), rng.normal(size=k), rng.normal(size=k)


def by_inverse(precision: jax.Array, right: jax.Array, e: jax.Array) -> NormalDraw:
    """The same through JAX's own derivatives."""
    root = jnp.linalg.cholesky(precision, symmetrize_input=False)
    deviation = jax.scipy.linalg.solve_triangular(root.T, e)
    log_volume = -jnp.linalg.slogdet(precision)[1] / 2
    return NormalDraw(jnp.linalg.solve(precision, right), deviation, log_volume)


def summed(function):
    """Return a function of a vector ``t`` that moves all inputs, with one result."""
    precision, right, e = inputs(5)
    ways = np.random.default_rng(9).normal(size=(3, 5, 5))
    ways[0] += ways[0].T

    def along(t: jax.Array) -> jax.Array:
        moved = precision + t[0] * ways[0], right + t[1] * ways[1, 0], e + t[2] * ways[2, 0]
        mean, deviation, log_volume = function(*moved)
        return jnp.sin(mean).sum() + jnp.cos(deviation).sum() ** 2 + log_volume

    return along


@pytest.mark.parametrize("k", [1, 5, 30])
def test_values(k) -> None:
    precision, right, e = inputs(k)
    found = jax.jit(normal_draw)(precision, right, e)
    root = np.linalg.cholesky(precision)
    np.testing.assert_allclose(found.mean, np.linalg.solve(precision, right), rtol=1e-9)
    np.testing.assert_allclose(found.deviation, np.linalg.solve(root.T, e), rtol=1e-9)
    np.testing.assert_allclose(found.log_volume, -np.linalg.slogdet(precision)[1] / 2, rtol=1e-9)


@pytest.mark.parametrize("derivative", [jax.grad, jax.jacfwd, jax.hessian])
def test_derivatives(derivative) -> None:
    at = np.array([0.05, -0.3, 0.2])
    found, expected = (jax.jit(derivative(summed(f)))(at) for f in (normal_draw, by_inverse))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_no_number_where_the_precision_is_not_positive() -> None:
    draw = jax.jit(normal_draw)(-np.eye(2), np.ones(2), np.ones(2))
    assert all(np.isnan(part).all() for part in draw)

"""Densities in batches of one size, counted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base import LogTerms

POSITION = np.random.default_rng(1).normal(size=(10, 3))


def terms(x: jax.Array) -> LogTerms:
    return LogTerms(-0.5 * (x**2).sum(), jnp.sin(x).sum())


@pytest.mark.parametrize("size", [1, 4, 10, 16])
def test_batches_are_the_same_as_all_at_once(size) -> None:
    target = TargetDensity(pma.GeometricPath(terms), size)
    with jax.enable_x64(True):
        value, slope = target.value_and_gradient(POSITION)
        own = target.log_density(POSITION)
        gradient = target.gradient(POSITION)
    exact = (-0.5 * POSITION**2 + np.sin(POSITION)).sum(axis=1)
    np.testing.assert_allclose(value, exact, rtol=1e-12)
    np.testing.assert_allclose(own, exact, rtol=1e-12)
    np.testing.assert_allclose(slope, np.cos(POSITION) - POSITION, rtol=1e-12)
    np.testing.assert_array_equal(slope, gradient)
    assert target.evaluations == 3 * len(POSITION)


def test_without_gradients() -> None:
    target = TargetDensity(pma.GeometricPath(terms), 10, gradients=False)
    assert np.isnan(target.gradient(POSITION)).all()
    assert target.evaluations == 0


@pytest.mark.parametrize("size", [1, 4, 256])
def test_one_position(size) -> None:
    target, x = TargetDensity(pma.GeometricPath(terms), size), POSITION[:1]
    with jax.enable_x64(True):
        value, slope = target.value_and_gradient_singly(x)
    assert value == pytest.approx((-0.5 * x**2 + np.sin(x)).sum(), rel=1e-12)
    np.testing.assert_allclose(slope, np.cos(x) - x, rtol=1e-12)
    assert target.evaluations == 1

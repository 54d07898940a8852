"""Rejection at zero densities, at NaN and at divergences of the integrator."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.base.contracts import KernelState, LogTerms, StepInfo
from pymc_anneal.transitions.metropolis import (
    accept_reject,
    apply_scale,
    apply_transposed_scale,
    empty_info,
    merge_info,
    with_coordinate,
)
from tests.cases import TRANSITIONS, Case, compiled_take, parametrize, start


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def truncated_terms(x: jax.Array) -> LogTerms:
    """A normal prior; zero likelihood if ``x_0 > 0.5``, NaN if ``x_1 > 0.5``."""
    log_likelihood = jnp.where(x[0] > 0.5, -jnp.inf, 0.0)
    return LogTerms(-0.5 * (x**2).sum(), jnp.where(x[1] > 0.5, jnp.nan, log_likelihood))


@pytest.mark.quick_cases("independence", "random_walk", "mala_scalar", "hmc_single", "tuned")
@parametrize("case", [c for c in TRANSITIONS if c.exported != "BlackJAXKernel"])
def test_zero_likelihood_is_rejected_and_nan_is_reported(case: Case) -> None:
    path, kernel = pma.GeometricPath(truncated_terms), case.make()
    position = np.random.default_rng(12).normal(0.0, 0.2, size=(500, 2)).clip(-0.5, 0.5)
    state = start(path, kernel, jax.random.key(12), position)
    new, info = compiled_take(kernel, jax.random.key(13), state, path, jnp.asarray(1.0))
    assert (new.position <= 0.5).all()
    assert (new.position != position).any()
    assert info.nan.any()
    assert not info.nan.all()
    assert (info.nan_position[info.nan > 0][:, 1] > 0.5).all()


def test_a_divergence_is_a_rejection_and_no_nan() -> None:
    # The quartic sends long steps to infinity, where the density is NaN.
    def terms(x: jax.Array) -> LogTerms:
        return LogTerms(-0.5 * (x**2).sum(), -(x**4).sum() * (x.sum() + 10) / (x.sum() + 10))

    path, kernel = pma.GeometricPath(terms), pma.HMC(50.0, 20, 1.0)
    position = np.random.default_rng(14).normal(size=(100, 2))
    state = start(path, kernel, jax.random.key(14), position)
    new, info = compiled_take(kernel, jax.random.key(15), state, path, jnp.asarray(1.0))
    assert not info.nan.any()
    np.testing.assert_array_equal(new.position, position)
    assert (info.accept_rate == 0).all()


def test_accept_reject() -> None:
    log_accept = jnp.array([jnp.nan, -jnp.inf, 0.0, jnp.inf])
    current = KernelState(jnp.zeros((4, 2)), jnp.zeros(4), ())
    proposal = KernelState(jnp.ones((4, 2)), jnp.ones(4), ())
    new, probability = accept_reject(jnp.full(4, 0.5), log_accept, proposal, current)
    np.testing.assert_array_equal(probability, [0, 0, 1, 1])
    np.testing.assert_array_equal(new.terms, [0, 0, 1, 1])
    np.testing.assert_array_equal(new.position, [[0, 0], [0, 0], [1, 1], [1, 1]])


@pytest.mark.parametrize(
    "scale", [2.0, np.array([2.0, 0.5]), np.array([[2.0, 0.0], [0.3, 0.5]])], ids=np.ndim
)
def test_scales(scale) -> None:
    z, matrix = np.array([[1.0, 2.0], [-1.0, 3.0]]), np.asarray(scale)
    matrix = matrix if matrix.ndim == 2 else np.diag(np.broadcast_to(matrix, 2))
    np.testing.assert_allclose(apply_scale(jnp.asarray(scale), z), z @ matrix.T)
    np.testing.assert_allclose(apply_transposed_scale(jnp.asarray(scale), z), z @ matrix)


def test_diagnostics_of_several_proposals_are_merged() -> None:
    position = jnp.zeros((2, 1))
    first = StepInfo(jnp.array([1.0, 0.5]), jnp.array([True, False]), jnp.array([[7.0], [8.0]]))
    second = StepInfo(jnp.array([0.0, 0.5]), jnp.array([False, False]), jnp.array([[5.0], [6.0]]))
    total = merge_info(merge_info(empty_info(position), first, 0.5), second, 0.5)
    np.testing.assert_array_equal(total.accept_rate, [0.5, 0.5])
    np.testing.assert_array_equal(total.nan, [0.5, 0.0])
    assert total.nan_position[0] == 7.0


def test_one_coordinate_is_replaced() -> None:
    position = jnp.arange(6.0).reshape(2, 3)
    found = with_coordinate(position, 1, jnp.array([-1.0, -2.0]))
    np.testing.assert_array_equal(found, [[0, -1, 2], [3, -2, 5]])

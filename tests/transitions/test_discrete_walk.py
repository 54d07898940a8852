"""Random walks of whole numbers: zero densities, NaN, costs."""

import jax
import numpy as np
import pytest

import pymc_anneal as pma

from tests.transitions.discrete_targets import check_ending, move_ending


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def test_zero_likelihood_and_nan() -> None:
    check_ending(*move_ending(pma.DiscreteRandomWalk([0], 2.0, 3, 1.0)))


def test_cost_is_a_density_for_each_coordinate_and_sweep() -> None:
    kernel = pma.DiscreteRandomWalk([0, 2], 1.0, 3, 1.0)
    np.testing.assert_array_equal(kernel.cost(np.array([0.5, 1.0])), [6, 6])


def test_coordinates_are_whole_numbers() -> None:
    kernel = pma.DiscreteRandomWalk(np.array([2, 0]))
    assert kernel.moved_coordinates == (2, 0)
    assert kernel.tuning.free == {"step_size", "n_steps", "scale"}

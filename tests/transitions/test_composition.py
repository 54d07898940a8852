"""Kernels in turn, and kernels on a block of coordinates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.transitions.metropolis import merge_columns
from tests.cases import GIBBS, ON_RATE, WALK

HMC = pma.HMC(0.3, 4, 1.0)


@pytest.mark.parametrize(
    ("kernel", "cost"),
    [
        (HMC, 9),
        (pma.RandomWalkMetropolis(0.3, 4, 1.0), 4),
        (pma.BlockTransition(HMC, [0, 2]), 9),
        (
            pma.Composition([pma.BlockTransition(HMC, [0]), pma.Gibbs([1, 2], [(0, 1), (3, 5)])]),
            9 + 2 * 2,
        ),
        (pma.Composition([]), 0),
    ],
    ids=["hmc", "random_walk", "block", "composition", "empty"],
)
def test_costs_add_up(kernel, cost: int) -> None:
    np.testing.assert_array_equal(kernel.cost(np.array([0.3, 1.0])), [cost, cost])


def test_the_step_size_is_that_of_the_first_part_that_has_one() -> None:
    betas = np.array([0.5, 1.0])
    composition = pma.Composition([GIBBS, ON_RATE, WALK])
    np.testing.assert_array_equal(composition.step_sizes(betas), [0.9, 0.9])
    assert np.isnan(pma.Composition([GIBBS]).step_sizes(betas)).all()


def test_the_reversal_runs_the_reversed_parts_in_the_opposite_order() -> None:
    reversal = pma.Composition([ON_RATE, GIBBS, WALK]).reversal()
    assert [part.name for part in reversal.parts] == ["DiscreteRandomWalk", "Gibbs", "HMC"]
    assert [part.backward for part in reversal.parts[:2]] == [True, True]


def test_names() -> None:
    assert pma.Composition([ON_RATE, GIBBS]).name == "HMC, Gibbs"
    assert ON_RATE.name == "HMC"


def test_coordinates_of_a_block_are_sorted() -> None:
    assert pma.BlockTransition(HMC, [3, 0]).moved_coordinates == (0, 3)


@pytest.mark.parametrize(
    "coordinates", [(), (0,), (1, 2), (0, 3), (0, 1, 3, 5), (0, 1, 2, 3, 4, 5)], ids=str
)
def test_columns_are_merged(coordinates: tuple[int, ...]) -> None:
    whole = jnp.zeros((2, 6))
    part = jnp.arange(1.0, 1 + 2 * len(coordinates)).reshape(2, len(coordinates))
    expected = np.zeros((2, 6))
    expected[:, list(coordinates)] = part
    np.testing.assert_array_equal(merge_columns(whole, part, coordinates), expected)


def test_auxiliary_variables_are_those_of_the_block() -> None:
    kernel = pma.BlockTransition(pma.GeneralizedHMC(0.3, 1, 1.0), [1])
    momentum = kernel.init(jax.random.key(0), jnp.zeros((5, 3)))
    assert momentum.shape == (5, 1)

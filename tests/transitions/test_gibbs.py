"""Gibbs sweeps: supports of any size, zero densities, costs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.base.contracts import LogTerms
from tests.cases import GIBBS, compiled_take, start
from tests.transitions.discrete_targets import check_ending, move_ending

PARTICLES = 20_000


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def test_zero_likelihood_and_nan() -> None:
    check_ending(*move_ending(pma.Gibbs([0], [(0, 2)])))


def test_a_particle_of_density_zero_stays() -> None:
    path = pma.GeometricPath(lambda x: LogTerms(jnp.zeros(()), jnp.where(x[0] < 9, -jnp.inf, 0.0)))
    kernel = pma.Gibbs([0], [(0, 2)])
    state = start(path, kernel, jax.random.key(0), np.array([[0.0], [1.0], [2.0]]))
    new, info = compiled_take(kernel, jax.random.key(1), state, path, jnp.asarray(0.5))
    np.testing.assert_array_equal(new.position, state.position)
    np.testing.assert_array_equal(info.accept_rate, 0.0)


def test_acceptance_is_the_probability_of_another_value() -> None:
    path = pma.GeometricPath(lambda x: LogTerms(jnp.zeros(()), 4.0 * x[0]))
    kernel = pma.Gibbs([0], [(0, 1)])
    state = start(path, kernel, jax.random.key(0), np.array([[0.0], [1.0]]))
    _, info = compiled_take(kernel, jax.random.key(1), state, path, jnp.asarray(0.5))
    one = 1 / (1 + np.exp(-2.0))
    np.testing.assert_allclose(info.accept_rate, [one, 1 - one], rtol=1e-12)


@pytest.mark.parametrize("values", [9, 10, 20])
def test_supports_of_more_than_one_batch(values: int) -> None:
    # One draw from the conditional of the only coordinate is a draw of the density.
    path = pma.GeometricPath(lambda x: LogTerms(jnp.zeros(()), -0.07 * (x[0] - 6.0) ** 2))
    kernel = pma.Gibbs([0], [(2, 1 + values)])
    state = start(path, kernel, jax.random.key(0), np.full((PARTICLES, 1), 3.0))
    new, _ = compiled_take(kernel, jax.random.key(1), state, path, jnp.asarray(0.5))
    mass = np.exp(-0.035 * (np.arange(2, 2 + values) - 6.0) ** 2)
    observed = np.bincount(np.asarray(new.position[:, 0]).astype(int), minlength=2 + values)[2:]
    assert stats.chisquare(observed, PARTICLES * mass / mass.sum()).pvalue > 1e-7
    np.testing.assert_allclose(new.terms.log_likelihood, -0.07 * (new.position[:, 0] - 6) ** 2)


def test_a_support_of_one_value() -> None:
    kernel = pma.Gibbs([0, 1], [(4, 4), (0, 1)])
    path = pma.GeometricPath(lambda x: LogTerms(-x.sum(), x[1]))
    state = start(path, kernel, jax.random.key(0), np.tile([4.0, 0.0], (50, 1)))
    new, _ = compiled_take(kernel, jax.random.key(1), state, path, jnp.asarray(0.5))
    assert (new.position[:, 0] == 4).all()
    assert set(np.unique(new.position[:, 1])) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [(0, 1)]), "`support` has 1 entries for 2 coordinates"),
        (([2], [(3, 1)]), "support of coordinate 2 is empty: 3 to 1"),
    ],
)
def test_bad_arguments(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pma.Gibbs(*arguments)


@pytest.mark.parametrize(
    ("kernel", "cost"),
    [
        (pma.Gibbs(range(5), [(0, 1)] * 5), 5),
        (GIBBS, 3 * 2),  # three coordinates, two other values at most
        (pma.Gibbs([0], [(0, 8)]), 8),
        (pma.Gibbs([0], [(0, 9)]), 16),  # two batches
    ],
    ids=["binary", "mixed", "one_batch", "two_batches"],
)
def test_cost_is_a_density_for_every_other_value(kernel: pma.Gibbs, cost: int) -> None:
    np.testing.assert_array_equal(kernel.cost(np.array([0.1, 0.7, 1.0])), [cost] * 3)

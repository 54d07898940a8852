"""Joint changes of discrete and real coordinates: exact where the density is normal."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.base.small_factors import factor, inverse_factor
from tests.cases import compiled_take, start

RNG = np.random.default_rng(4)
DESIGN, RESPONSE = RNG.normal(size=(12, 3)), RNG.normal(size=12)
SHARE = 0.2


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def selection(x: jax.Array) -> LogTerms:
    """Three indicators with their coefficients, normal given the indicators."""
    on, slope = x[:3], x[3:]
    inside = ((on == 0) | (on == 1)).all()
    log_prior = jnp.where(on == 1, np.log(SHARE), np.log1p(-SHARE)).sum() - 0.5 * (slope**2).sum()
    residual = RESPONSE - DESIGN @ (on * slope)
    return LogTerms(jnp.where(inside, log_prior, -jnp.inf), -0.5 * (residual**2).sum())


def step(kernel: pma.JointFlip, particles: int, beta: float = 0.7):
    position = np.tile([0.0, 1.0, 0.0, 9.0, -3.0, 4.0], (particles, 1))
    path = pma.GeometricPath(selection)
    state = start(path, kernel, jax.random.key(0), position)
    new, info = compiled_take(kernel, jax.random.key(1), state, path, jnp.asarray(beta))
    return np.asarray(new.position), info


def test_normal_conditionals_are_integrated_out() -> None:
    # Acceptance depends on the ratio of the masses of both configurations, wherever the
    # coefficients are: so all particles that propose the same change have the same.
    kernel = pma.JointFlip([0, 1, 2], [(0, 1)] * 3, [3, 4, 5], n_steps=1)
    _, info = step(kernel, 2000)
    rates = np.unique(np.asarray(info.accept_rate).round(8))
    assert len(rates) <= 6  # three changes of one indicator, three of two


@pytest.mark.parametrize("redrawn", [[1], []])
def test_a_newton_step_into_an_overflow_is_rejected(redrawn: list[int]) -> None:
    """From a flat tail; the same NaN beside real coordinates that stay is one of the model."""

    def counts(x: jax.Array) -> LogTerms:
        log_rate = jnp.where(x[0] == 1, x[1], -x[1])
        log_likelihood = jnp.where(log_rate > 700, jnp.nan, 3 * log_rate - jnp.exp(log_rate))
        return LogTerms(-0.5 * (x[1] / 1e4) ** 2, log_likelihood)

    path, kernel = pma.GeometricPath(counts), pma.JointFlip([0], [(0, 1)], redrawn, n_steps=1)
    position = np.tile([0.0, -7.0] if redrawn else [0.0, 1000.0], (50, 1))
    state = start(path, kernel, jax.random.key(0), position)
    new, info = compiled_take(kernel, jax.random.key(1), state, path, jnp.asarray(1.0))
    np.testing.assert_array_equal(new.position, position)
    assert (np.asarray(info.nan) == (not redrawn)).all()


def test_without_real_coordinates_these_stay() -> None:
    kernel = pma.JointFlip([0, 1, 2], [(0, 1)] * 3, n_steps=1)
    position, _ = step(kernel, 50)
    np.testing.assert_array_equal(position[:, 3:], [[9.0, -3.0, 4.0]] * 50)


def test_one_or_two_coordinates_take_other_values() -> None:
    kernel = pma.JointFlip([2, 0], [(0, 1), (3, 6)])
    before = jnp.asarray(np.tile([5.0, 0.5, 1.0], (4000, 1)))
    after = np.asarray(kernel._flipped(jax.random.key(3), before))
    first, second = after[:, 2] != 1, after[:, 0] != 5
    assert (first | second).all()
    assert (after[:, 1] == 0.5).all()
    # A change of both has the probability 1/4.
    np.testing.assert_allclose((first & second).mean(), 0.25, atol=0.035)
    values, count = np.unique(after[second, 0], return_counts=True)
    np.testing.assert_array_equal(values, [3, 4, 6])
    np.testing.assert_allclose(count / count.sum(), 1 / 3, atol=0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [(0, 1)]), "1 entries for 2 coordinates; expected a pair"),
        (([], []), "0 entries for 0 coordinates; expected a pair"),
        (([0, 1], [(0, 1), (2, 2)]), "Coordinate 1 has the support 2 to 2; expected two values"),
        (([0, 1], [(0, 1)] * 2, [1, 2]), r"Coordinates \[1\] are in `coordinates` and in `red"),
    ],
)
def test_errors(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pma.JointFlip(*arguments)


def test_factors_of_small_matrices() -> None:
    root = RNG.normal(size=(5, 4, 4))
    matrix = root @ root.transpose(0, 2, 1) + 0.1 * np.eye(4)
    matrix[3] = np.diag([1.0, -1.0, 1.0, 1.0])
    found = np.asarray(factor(jnp.asarray(matrix)))
    inverse = np.asarray(inverse_factor(jnp.asarray(found)))
    good = [0, 1, 2, 4]
    np.testing.assert_allclose(
        found[good], np.linalg.cholesky(matrix[good]), rtol=1e-12, atol=1e-13
    )
    np.testing.assert_allclose(inverse[good], np.linalg.inv(found[good]), rtol=1e-10, atol=1e-11)
    assert np.isnan(inverse[3]).any()

"""Shears that move draws along a ridge, with volume one."""

import numpy as np
import pytest

from pymc_anneal.posthoc.shear import Shear, count_terms

COORDINATES = np.array([2, 0])
POINT = np.array([0.5, -1.0])


def draws(n: int = 300) -> np.ndarray:
    """Draws whose other coordinates are a quadratic function of two of them."""
    b = np.random.default_rng(1).normal(size=(n, 2))
    ridge = 3 * b[:, 0] - b[:, 1] + 0.7 * b[:, 0] * b[:, 1] + b[:, 1] ** 2
    return np.stack([b[:, 1], ridge, b[:, 0], -ridge], axis=1)


def on_ridge(point: np.ndarray) -> float:
    return float(3 * point[0] - point[1] + 0.7 * point[0] * point[1] + point[1] ** 2)


def test_draws_stay_on_a_quadratic_ridge() -> None:
    x = draws()
    moved = Shear.fit(x, COORDINATES, 2, np.ones(len(x))).move(x, POINT)
    np.testing.assert_array_equal(moved[:, COORDINATES], np.broadcast_to(POINT, (len(x), 2)))
    np.testing.assert_allclose(moved[:, 1], on_ridge(POINT), rtol=1e-10)
    np.testing.assert_allclose(moved[:, 3], -on_ridge(POINT), rtol=1e-10)


def test_a_straight_line_leaves_it() -> None:
    x = draws()
    moved = Shear.fit(x, COORDINATES, 1, np.ones(len(x))).move(x, POINT)
    assert moved[:, 1].std() > 0.3


def test_weights_say_where_a_line_is_fitted() -> None:
    x = draws(20_000)
    near = np.square(x[:, COORDINATES] - POINT).sum(axis=1)
    shear = Shear.fit(x, COORDINATES, 1, np.exp(-0.5 * near / 0.05**2))
    moved = shear.move(x[near < 0.02], POINT)
    assert np.abs(moved[:, 1] - on_ridge(POINT)).max() < 0.05


def test_volume_is_one() -> None:
    x = draws()
    shear, step = Shear.fit(x, COORDINATES, 2, np.ones(len(x))), 1e-6
    others = [1, 3]
    columns = [
        (shear.move(x[:1] + step * np.eye(4)[[j]], POINT) - shear.move(x[:1], POINT))[0, others]
        for j in others
    ]
    np.testing.assert_allclose(np.array(columns) / step, np.eye(2), atol=1e-8)


@pytest.mark.parametrize(("degree", "terms"), [(1, 3), (2, 9)])
def test_number_of_terms(degree: int, terms: int) -> None:
    assert count_terms(3, degree) == terms

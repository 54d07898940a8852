"""Increments of ``log(1 + e^x)`` against eighty decimal digits."""

from decimal import Decimal, localcontext

import jax
import numpy as np
import pytest

from pymc_anneal.rbm.paths import (
    softplus_increment,
    softplus_increment_by_series,
    sum_softplus_increments,
)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def exact_increment(x: float, d: float) -> float:
    with localcontext() as context:
        context.prec = 80
        one, x, d = Decimal(1), Decimal(float(x)), Decimal(float(d))
        return float((one + (x + d).exp()).ln() - (one + x.exp()).ln())


FIELDS = [-60.0, -20.0, -3.0, -0.1, 0.0, 0.4, 5.0, 15.0, 25.0, 40.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("size", [1e-12, 1e-9, 1e-6, 1e-3, 0.1, 1.0, 8.0, 17.0, 30.0])
def test_relative_precision(size: float, sign: int, dtype: type) -> None:
    x, d = np.array(FIELDS, dtype), np.full(len(FIELDS), sign * size, dtype)
    expected = np.array([exact_increment(*pair) for pair in zip(x, d, strict=True)])
    found = np.asarray(softplus_increment(x, d))
    assert found.dtype == dtype
    # Single precision underflows on its own below 1e-38, and loses some 20 eps in exp(-60).
    np.testing.assert_allclose(found, expected, rtol=60 * np.finfo(dtype).eps, atol=1e-37)


def exact_decrement(x: float, d: float) -> float:
    """Return ``softplus(x) - softplus(x - d)``."""
    return -exact_increment(x, -float(d))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-6, 1e-3, 0.1, 0.3, 0.5])
def test_series(size: float, sign: int) -> None:
    x, d = np.array(FIELDS, np.float32), np.full(len(FIELDS), sign * size, np.float32)
    expected = np.array([exact_decrement(*pair) for pair in zip(x, d, strict=True)])
    found = np.asarray(softplus_increment_by_series(jax.nn.sigmoid(x), d))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=60 * np.finfo(np.float32).eps, atol=1e-37)


def test_the_series_fails_for_large_increments() -> None:
    p, d = np.full(1, 0.5, np.float32), np.full(1, 5.0, np.float32)
    exact = exact_decrement(0.0, 5.0)
    assert float(softplus_increment_by_series(p, d)[0]) != pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("step", [0.4, -0.4, 0.6, -20.0])
def test_sums_over_units(step: float, dtype: type) -> None:
    rng = np.random.default_rng(1)
    x, slope = rng.normal(0, 4, (3, 50)).astype(dtype), rng.uniform(-1, 1, (3, 50)).astype(dtype)
    step = np.asarray(step, dtype)
    exact = [
        [exact_decrement(*p) for p in zip(*row, strict=True)]
        for row in zip(x, step * slope, strict=True)
    ]
    found = np.asarray(jax.jit(sum_softplus_increments)(x, slope, step))
    assert found.dtype == dtype
    scale = np.abs(exact).sum(axis=1)
    np.testing.assert_array_less(
        np.abs(found - np.sum(exact, axis=1)), 20 * np.finfo(dtype).eps * scale
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("x", "d"), [(0.0, 1000.0), (-1500.0, 2000.0), (500.0, -1000.0)])
def test_large_fields_in_few_steps(x: float, d: float, dtype: type) -> None:
    found = softplus_increment(np.array(x, dtype), np.array(d, dtype))
    assert float(found) == pytest.approx(exact_increment(x, d), rel=1e-6)


def test_a_difference_of_densities_loses_digits() -> None:
    x, d = np.float32(5.0), np.float32(1e-6)
    naive = np.logaddexp(0, x + d) - np.logaddexp(0, x)
    assert abs(naive / exact_increment(x, d) - 1) > 0.01

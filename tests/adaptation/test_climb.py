"""Climbs from many starts at once."""

import numpy as np
import pytest

from pymc_anneal.adaptation.climb import climb_together

RNG = np.random.default_rng(3)
ROOT = np.linalg.cholesky(np.cov(RNG.normal(size=(30, 8)), rowvar=False))
PRECISION = np.linalg.inv(ROOT @ ROOT.T)


class Normal:
    """Log density of a normal distribution, and the number of its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.calls += 1
        return -0.5 * np.einsum("ni,ij,nj->n", x, PRECISION, x), -x @ PRECISION


def rosenbrock(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, b = x.T
    value = -0.5 * ((1 - a) ** 2 + 100 * (b - a**2) ** 2)
    return value, np.stack([1 - a + 200 * a * (b - a**2), -100 * (b - a**2)], axis=1)


def saturating(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A narrow peak at logit(0.9) in a bounded variable; flat far from zero."""
    p = 1 / (1 + np.exp(-x[:, 0]))
    slope = -1e6 * (p - 0.9) * p * (1 - p)
    return -5e5 * (p - 0.9) ** 2, slope[:, None]


def test_a_normal_density_in_its_own_scale_takes_few_calls() -> None:
    density = Normal()
    top, value = climb_together(density, 50 * RNG.normal(size=(20, 8)), ROOT, 100)
    np.testing.assert_allclose(top, 0, atol=1e-6)
    np.testing.assert_allclose(value, 0, atol=1e-9)
    assert density.calls < 12


@pytest.mark.parametrize("scale", [np.ones(8), 1e-3 * np.ones(8), np.eye(8)])
def test_a_wrong_scale_takes_more(scale: np.ndarray) -> None:
    top, _ = climb_together(Normal(), 50 * RNG.normal(size=(20, 8)), scale, 300)
    np.testing.assert_allclose(top, 0, atol=0.02)


def test_a_bent_valley() -> None:
    _, value = climb_together(rosenbrock, 5 * RNG.normal(size=(20, 2)), np.ones(2), 300)
    assert value.min() > -0.01


def test_steps_do_not_end_where_a_transform_saturates() -> None:
    top, _ = climb_together(saturating, RNG.normal(size=(20, 1)), np.ones(1), 100)
    np.testing.assert_allclose(top, np.log(9), atol=1e-3)


def test_climbs_are_independent() -> None:
    start = 5 * RNG.normal(size=(4, 2))
    together, _ = climb_together(rosenbrock, start, np.ones(2), 300)
    alone, _ = climb_together(rosenbrock, start[:1], np.ones(2), 300)
    np.testing.assert_array_equal(together[:1], alone)


def test_climbs_that_have_ended_are_not_evaluated() -> None:
    calls, start, top = list[list[float]](), np.array([[3.0], [50.0]]), np.array([[3.0], [1.0]])

    def normal(x: np.ndarray, centre: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        calls.append(centre.ravel().tolist())
        return -0.5 * (x - centre)[:, 0] ** 2, centre - x

    end, _ = climb_together(normal, start, np.ones(1), 100, [top])
    np.testing.assert_allclose(end, top, atol=1e-3)
    assert calls[0] == [3.0, 1.0]  # the first one is where it goes
    assert len(calls) > 2
    assert all(given == [1.0] for given in calls[1:])


def test_never_below_the_start() -> None:
    start = 5 * RNG.normal(size=(10, 2))
    for calls in (1, 2, 5):
        top, value = climb_together(rosenbrock, start, np.ones(2), calls)
        assert (value >= rosenbrock(start)[0]).all()
        np.testing.assert_allclose(value, rosenbrock(top)[0])


def test_starts_of_no_density_stay() -> None:
    def half(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, slope = -0.5 * (x[:, 0] - 1) ** 2, 1 - x
        below = x[:, 0] < 0
        return np.where(below, -np.inf, value), np.where(below[:, None], np.nan, slope)

    top, value = climb_together(half, np.array([[-1.0], [3.0]]), np.ones(1), 50)
    np.testing.assert_allclose(top, [[-1.0], [1.0]], atol=1e-3)
    assert value[0] == -np.inf


def test_slopes_that_overflow_end_a_climb() -> None:
    def steep(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return -np.exp(np.abs(x[:, 0])), (-np.sign(x) * np.exp(np.abs(x)))

    top, value = climb_together(steep, np.array([[600.0], [2.0]]), np.array([1e160]), 50)
    assert np.isfinite(value).all()
    assert value[1] >= -np.exp(2.0)

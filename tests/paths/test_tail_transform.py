"""Heavy tails are compressed, other coordinates unchanged, and tilts have a single mode."""

import jax.numpy as jnp
import numpy as np
import pytest

from scipy import stats

from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.paths.geometric import GeometricPath
from pymc_anneal.paths.tail_transform import TailTransform
from pymc_anneal.paths.tilted_prior import TiltedPrior


def quantiles(distribution, n: int = 4000) -> np.ndarray:
    return distribution.ppf((np.arange(n) + 0.5) / n)[:, None]


GRID = np.linspace(-6.0, 6.0, 25)[:, None]


@pytest.mark.parametrize("seed", range(5))
def test_normal_coordinates_are_unchanged(seed: int) -> None:
    draws = np.random.default_rng(seed).normal(3.0, 2.0, size=(1000, 4))
    np.testing.assert_allclose(TailTransform.from_draws(draws)(GRID), np.tile(GRID, 4), atol=1e-8)


def test_light_tails_are_unchanged() -> None:
    transform = TailTransform.from_draws(quantiles(stats.uniform(-1, 2)))
    np.testing.assert_allclose(transform(GRID), GRID, atol=1e-8)


@pytest.mark.parametrize("delta", [0.8, 1.5])
def test_inverse_of_a_hyperbolic_sine(delta: float) -> None:
    """Draws of ``delta sinh(N(0, 1) / delta)`` are transformed to normal draws."""
    z = quantiles(stats.norm())
    x = delta * np.sinh(z / delta)
    u = TailTransform.from_draws(x)(x)
    np.testing.assert_allclose(u, z, rtol=0.02, atol=0.01)


def test_each_side_has_its_own_delta() -> None:
    """A log-normal variable has one heavy tail."""
    transform = TailTransform.from_draws(quantiles(stats.lognorm(0.7)))
    assert transform.upper[0] < 5
    assert transform.lower[0] > 1e3
    below, above = (transform(np.array([[1 + x]]))[0, 0] for x in (-0.5, 4.0))
    assert below == pytest.approx(0.5, abs=1e-3)  # unchanged; the median is 1
    assert 2 < above < 4


def test_constant_coordinate() -> None:
    transform = TailTransform.from_draws(np.ones((50, 2)))
    assert np.isfinite(transform(np.ones((3, 2)))).all()


def count_modes(family: TiltedPrior, tilt: float) -> int:
    """Return the number of local maxima of a tilted prior."""
    terms = family.evaluate(jnp.linspace(-10.0, 300.0, 31_001)[:, None])
    log_density = np.asarray(terms.log_base + tilt * terms.statistics[:, 1])
    inner = log_density[1:-1]
    return int(((inner > log_density[:-2]) & (inner >= log_density[2:])).sum())


@pytest.mark.parametrize("tilt", [0.3, 0.5, 1.0])
def test_a_tilt_moves_a_heavy_tail_as_a_whole(tilt: float) -> None:
    """Student's t keeps one mode; a tilt of the coordinate itself makes its tail a second mode."""
    base = GeometricPath(lambda x: LogTerms(student_t(x[0]), -((x[0] - 10) ** 2)))
    prior, posterior = quantiles(stats.t(4)), quantiles(stats.norm(10, 0.4))
    family = TiltedPrior.around(base, prior, posterior)
    assert count_modes(family, tilt * float(family.scale[0])) == 1
    plain = TiltedPrior(base, np.zeros(1), np.ones(1), np.full(1, 60.0))
    assert count_modes(plain, tilt) == 2


def student_t(x):
    """Return the log density of Student's t with four degrees of freedom, up to a constant."""
    return -2.5 * jnp.log1p(x**2 / 4)

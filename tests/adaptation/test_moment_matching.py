"""Moment matching by particles: the averaged moments at every knot, or an error."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation.moment_matching import (
    MomentMatchingError,
    MomentSpline,
    _Limits,
    _move_along,
    _segment,
    _SolverState,
    fit_moment_spline,
)
from pymc_anneal.adaptation.particles import ParticleSystem
from pymc_anneal.adaptation.pilot import run_pilot
from pymc_anneal.base.contracts import LogTerms

# Number of coordinates; observations of each, their standard deviation, their mean.
D, ROWS, NOISE, AWAY = 2, 10, 0.5, 4.0


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def log_terms(x: jax.Array) -> LogTerms:
    """Prior N(0, I); ten observations of a mean that lies four deviations away."""
    return LogTerms(-0.5 * (x**2).sum(), -0.5 * ROWS * ((x - AWAY) ** 2).sum() / NOISE**2)


PRECISION = 1 + ROWS / NOISE**2
MEAN, SD = AWAY * (PRECISION - 1) / PRECISION, PRECISION**-0.5


def ends(n: int = 512, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, D)), rng.normal(MEAN, SD, size=(n, D))


@cache
def fitted(statistics: str) -> MomentSpline:
    path, seed = pma.GeometricPath(log_terms), np.random.SeedSequence(3)
    return fit_moment_spline(path, pma.HMC(), *ends(), seed, statistics=statistics)


@pytest.mark.parametrize("statistics", ["linear", pytest.param("squares", marks=pytest.mark.slow)])
class TestNormal:
    def test_ends_are_exact(self, statistics: str) -> None:
        spline = fitted(statistics)
        assert (spline.natural[0] == 0).all()
        np.testing.assert_array_equal(spline.natural[-1], spline.path.family.posterior)
        assert spline.knots[0] == 0
        assert spline.knots[-1] == 1

    def test_knots_have_the_averaged_mean(self, statistics: str) -> None:
        # On a normal model every knot is a normal density, whose mean is known.
        spline = fitted(statistics)
        family = spline.path.family
        for j, beta in enumerate(spline.knots[1:-1], start=1):
            b, tilt = spline.natural[j][0], spline.natural[j][1:]
            shift = tilt[:D] / family.scale
            curvature = tilt[D:] / family.scale**2 if len(tilt) > D else np.zeros(D)
            precision = 1 + b * (PRECISION - 1) - 2 * curvature
            pull = b * (PRECISION - 1) * AWAY + shift - 2 * curvature * family.centre
            # The noise of 512 particles, the clipping of tails and the ridge, all together.
            assert (np.abs(pull / precision - beta * MEAN) < 0.5 / np.sqrt(precision)).all()

    @pytest.mark.slow
    def test_path_is_shorter(self, statistics: str) -> None:
        # Lengths as measured by the pilots of both paths.
        seed = np.random.SeedSequence(4)
        lengths = [
            run_pilot(path, pma.HMC(), ends()[0], seed).barrier
            for path in (pma.GeometricPath(log_terms), fitted(statistics).path)
        ]
        assert lengths[1] < {"linear": 0.95, "squares": 0.9}[statistics] * lengths[0]


def test_a_step_that_is_too_long_is_taken_in_part() -> None:
    """From the prior to the posterior at once: the particles are those of the new parameters."""
    family = fitted("linear").path.family
    path = _segment(family, np.zeros((2, family.size)))
    particles = ParticleSystem.create(path, pma.HMC(), jax.random.key(1), ends()[0])
    limits = _Limits(np.full(family.size, -np.inf), np.full(family.size, np.inf))
    rng, origin = np.random.default_rng(1), np.zeros(family.size)
    state = _SolverState(family, limits, origin, particles, jax.random.key(2), rng, np.inf)
    moved = _move_along(state, family.posterior)
    power = moved.natural[0]
    assert 0 < power < 0.1
    np.testing.assert_allclose(moved.natural, power * family.posterior)
    precision = 1 + power * (PRECISION - 1)
    mean = power * (PRECISION - 1) * AWAY / precision
    found = np.asarray(moved.particles.state.position)
    assert np.abs(found.mean(axis=0) - mean).max() < 6 / np.sqrt(precision * 0.7 * len(found))


def test_too_few_evaluations() -> None:
    path, seed = pma.GeometricPath(log_terms), np.random.SeedSequence(3)
    with pytest.raises(MomentMatchingError, match=r"took more than 2e\+04 evaluations"):
        fit_moment_spline(path, pma.HMC(), *ends(), seed, max_evaluations=2e4)


@pytest.mark.slow
def test_moments_out_of_reach_are_an_error() -> None:
    # The draws lie far outside the support of prior and likelihood.

    def bounded(x: jax.Array) -> LogTerms:
        inside = (jnp.abs(x) < 1).all()
        return LogTerms(jnp.where(inside, 0.0, -jnp.inf), -(x**2).sum())

    rng = np.random.default_rng(5)
    first, last = rng.uniform(-1, 1, (256, 1)), rng.uniform(8, 9, (256, 1))
    path, seed = pma.GeometricPath(bounded), np.random.SeedSequence(6)
    with pytest.raises(MomentMatchingError, match=r"were missed by .* standard deviations"):
        fit_moment_spline(path, pma.HMC(), first, last, seed)


@pytest.mark.slow
def test_heavy_tails_and_zero_likelihoods() -> None:
    # A Cauchy prior, and a likelihood that is zero on half of it.

    def terms(x: jax.Array) -> LogTerms:
        likelihood = -0.5 * ((x[0] - 6) / 0.5) ** 2
        return LogTerms(-jnp.log1p(x[0] ** 2), jnp.where(x[0] < 0, -jnp.inf, likelihood))

    rng = np.random.default_rng(7)
    first, last = rng.standard_cauchy((512, 1)), rng.normal(5.9, 0.5, (512, 1))
    path, seed = pma.GeometricPath(terms), np.random.SeedSequence(8)
    spline = fit_moment_spline(path, pma.HMC(), first, last, seed)
    assert np.isfinite(spline.natural).all()
    assert (spline.natural[:, 0] >= 0).all()
    assert spline.residual.max() < 1

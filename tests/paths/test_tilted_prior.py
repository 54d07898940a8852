"""Tilted priors, their splines and the theorems on moment averages, by quadrature."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.paths.moment_spline import MomentSplinePath
from pymc_anneal.paths.tilted_prior import TiltedPrior


def normal_prior(log_likelihood):
    return lambda x: LogTerms(-0.5 * x[0] ** 2, log_likelihood(x[0]))


def half_normal_scale(x: jax.Array) -> LogTerms:
    """Return the terms of a log scale: half-normal prior, 50 residuals of root mean square 20."""
    log_prior = x[0] - 0.5 * jnp.exp(2 * x[0])
    return LogTerms(log_prior, -50 * x[0] - 10_000 * jnp.exp(-2 * x[0]))


def two_peaks(x: jax.Array) -> jax.Array:
    return jnp.logaddexp(-0.5 * ((x - 6) / 0.3) ** 2, -0.5 * ((x + 6) / 0.3) ** 2)


@dataclass(frozen=True)
class Line:
    """A model of one parameter on ``[low, high]``, and the lengths of its two paths."""

    name: str
    log_terms: object
    low: float
    high: float
    geometric: float
    spline: float


# Prior N(0, 1) except for log_sigma; 11 uniform knots, T = (V, x, x^2).
LINES = [
    Line("normal", normal_prior(lambda x: -0.5 * ((x - 5) / 0.3) ** 2), -8, 9, 7.37, 5.39),
    Line(
        "student_t",
        normal_prior(lambda x: -100 * jnp.log1p((x - 8) ** 2 / 4)),
        *(-8, 12, 10.01, 6.79),
    ),
    Line("poisson", normal_prior(lambda x: 50 * x - jnp.exp(x)), -8, 7, 6.50, 5.33),
    Line("many_counts", normal_prior(lambda x: 2000 * x - 20 * jnp.exp(x)), -6, 6, 10.27, 8.38),
    Line("log_sigma", half_normal_scale, -8, 5, 22.39, 14.12),
    Line("two_modes", normal_prior(two_peaks), -9, 9, 8.17, 5.52),
]


class Grid:
    """Exact expectations of a tilted prior on a line."""

    def __init__(self, line: Line):
        self.x = np.linspace(line.low, line.high, 3001)[:, None]
        self.family = TiltedPrior(
            pma.GeometricPath(line.log_terms),
            np.zeros(1),
            np.ones(1),
            np.full(1, np.inf),
            "squares",
        )
        self.terms = self.family.evaluate(jnp.asarray(self.x))
        self.statistics = np.asarray(self.terms.statistics)

    def distribution(self, eta: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the probabilities of the grid points and the log normaliser."""
        log_density = np.asarray(self.terms.log_base) + self.statistics @ eta
        top = log_density.max()
        weight = np.exp(log_density - top)
        return weight / weight.sum(), float(top + np.log(weight.sum()))

    def mean(self, eta: np.ndarray) -> np.ndarray:
        return self.distribution(eta)[0] @ self.statistics

    def information(self, eta: np.ndarray, slope: np.ndarray) -> float:
        """Variance of the velocity ``slope.T``."""
        p, _ = self.distribution(eta)
        v = self.statistics @ slope
        return float(p @ (v - p @ v) ** 2)

    def match(self, wanted: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """Return the natural parameters of moments, by Newton steps with a line search."""
        for _ in range(500):
            p, log_z = self.distribution(eta)
            mean = p @ self.statistics
            centred = self.statistics - mean
            covariance = centred.T @ (centred * p[:, None])
            sd = np.sqrt(np.diag(covariance))
            residual = (wanted - mean) / sd
            step = np.linalg.solve(covariance / np.outer(sd, sd) + 1e-10 * np.eye(3), residual) / sd
            gain = step @ (residual * sd)
            if gain < 1e-14:
                break
            size = 1.0
            while (
                self.distribution(eta + size * step)[1] - log_z - size * step @ wanted
                > -1e-4 * size * gain
            ):
                size /= 2
            eta = eta + size * step
        return eta

    def spline(self, knots: np.ndarray) -> MomentSplinePath:
        """Return the exact moment-average spline."""
        first, last = self.mean(np.zeros(3)), self.mean(self.family.posterior)
        natural = [np.zeros(3)]
        for beta in knots[1:-1]:
            natural.append(self.match((1 - beta) * first + beta * last, natural[-1]))
        return MomentSplinePath(self.family, knots, np.array([*natural, self.family.posterior]))


def both_ends(n: int) -> np.ndarray:
    """Return points from 0 to 1, dense at both ends."""
    half = np.geomspace(1e-9, 0.5, n)
    return np.concatenate([[0.0], half, 1 - half[-2::-1], [1.0]])


def length(grid: Grid, path: MomentSplinePath) -> float:
    """Return the integral of the root of the Fisher information over a spline."""
    total = 0.0
    for start, stop in zip(path.natural[:-1], path.natural[1:], strict=True):
        share = both_ends(150)
        g = [grid.information((1 - t) * start + t * stop, stop - start) for t in share]
        total += np.trapezoid(np.sqrt(g), share)
    return float(total)


@pytest.fixture(scope="module", params=LINES, ids=lambda line: line.name)
def solved(request):
    with jax.enable_x64(True):
        grid = Grid(request.param)
        return request.param, grid, grid.spline(np.linspace(0, 1, 11))


def test_lengths(solved) -> None:
    line, grid, spline = solved
    posterior = grid.family.posterior
    geometric = MomentSplinePath(
        grid.family, np.array([0.0, 1.0]), np.stack([0 * posterior, posterior])
    )
    assert length(grid, geometric) == pytest.approx(line.geometric, rel=0.02)
    assert length(grid, spline) == pytest.approx(line.spline, rel=0.02)


def test_equal_cost_functionals(solved) -> None:
    """Theorem 2 of Grosse et al. (2013): half the integral of g is the same on every path."""
    _, grid, spline = solved
    first, last = grid.mean(np.zeros(3)), grid.mean(grid.family.posterior)
    exact = 0.5 * grid.family.posterior @ (last - first)
    knots, natural = np.asarray(spline.knots), np.asarray(spline.natural)
    along = 0.0
    for j, width in enumerate(np.diff(knots)):
        change = natural[j + 1] - natural[j]
        # The integral of the variance along a segment is the increase of the mean.
        rise = change @ (grid.mean(natural[j + 1]) - grid.mean(natural[j]))
        along += 0.5 * rise / width
    assert along == pytest.approx(exact, rel=1e-4)


def test_knots_have_the_averaged_moments(solved) -> None:
    """The variational interpretation (Grosse et al. 2013, eq. 16).

    ``(1 - beta) KL(p_0 | p) + beta KL(p_1 | p)`` is smallest if the moments are the averages, so
    any other natural parameters give a larger value.
    """
    _, grid, spline = solved
    first, last = grid.mean(np.zeros(3)), grid.mean(grid.family.posterior)

    def divergence(eta: np.ndarray) -> float:
        return grid.distribution(eta)[1] - eta @ (0.5 * first + 0.5 * last)

    eta = np.asarray(spline.natural)[5]
    p, _ = grid.distribution(eta)
    sd = np.sqrt(p @ (grid.statistics - p @ grid.statistics) ** 2)
    for direction in np.eye(3):
        for sign in (-1, 1):
            assert divergence(eta + sign * 0.05 * direction / sd) > divergence(eta)


class TestBounded:
    """Bounded coordinates: any tilt of any prior is integrable."""

    @pytest.fixture
    def family(self) -> TiltedPrior:
        rng = np.random.default_rng(1)
        base = pma.GeometricPath(lambda x: LogTerms(-jnp.log1p(x[0] ** 2), -((x[0] - 3) ** 2)))
        ends = rng.standard_cauchy((400, 1)), rng.normal(3, 0.7, (400, 1))
        return TiltedPrior.around(base, *ends, "squares")

    def test_equal_to_the_coordinates_inside(self, family: TiltedPrior) -> None:
        x = jnp.linspace(-2.0, 5.0, 9)[:, None]
        z = (family.tail_transform(x)[:, 0] - family.centre) / family.scale
        np.testing.assert_allclose(family.evaluate(x).statistics[:, 1], z, rtol=2e-3)

    def test_constant_far_outside(self, family: TiltedPrior) -> None:
        plain = replace(family, tail_transform=None)
        statistics = plain.evaluate(jnp.array([[1e6], [1e9]])).statistics[:, 1:]
        np.testing.assert_allclose(statistics[0], statistics[1], rtol=1e-6)
        np.testing.assert_allclose(statistics[1, 0], family.bound[0], rtol=1e-6)

    def test_within_the_bound(self, family: TiltedPrior) -> None:
        x = jnp.array([[1e3], [1e6], [1e300]])
        s = np.abs(family.evaluate(jnp.concatenate([-x, x])).statistics[:, 1])
        assert (s < family.bound[0]).all()

    def test_constant_coordinate(self) -> None:
        base = pma.GeometricPath(lambda x: LogTerms(0.0 * x[0], x[0]))
        family = TiltedPrior.around(base, np.ones((5, 1)), np.ones((5, 1)))
        assert np.isfinite(family.evaluate(jnp.ones((2, 1))).statistics).all()


def test_zero_likelihood() -> None:
    def terms(x: jax.Array) -> LogTerms:
        return LogTerms(-0.5 * x[0] ** 2, jnp.where(x[0] < 0, -jnp.inf, x[0]))

    family = TiltedPrior(pma.GeometricPath(terms), np.zeros(1), np.ones(1), np.full(1, 9.0))
    path = MomentSplinePath(family, np.array([0.0, 0.5, 1.0]), np.array([[0, 0], [0, 0.2], [1, 0]]))
    values = path.evaluate(jnp.array([[-1.0], [2.0]]))
    np.testing.assert_array_equal(path.log_density(values, 0.0), [-0.5, -2.0])
    # eta_V is 0 on the first segment, yet all densities but the prior share one support.
    assert np.isneginf(path.log_density(values, 0.25)[0])
    assert np.isneginf(path.log_ratio(values, 0.0, 0.25)[0])
    assert np.isfinite(path.log_density(values, 0.25)[1])
    np.testing.assert_array_equal(path.log_ratio(values, 0.3, 0.3)[1], 0.0)

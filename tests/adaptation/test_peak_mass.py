"""The mass of peaks with cusps, flat tops, correlations and edges, by importance sampling."""

from collections.abc import Callable
from math import gamma
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation.peak_mass import weigh, widths
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base import LogTerms

D, SCALE = 4, 0.01
ROOT = np.eye(D) + 0.8 * np.tri(D, k=-1)


class Shape(NamedTuple):
    """The log density of a peak around zero, the log of its mass, and its standard deviations."""

    log_density: Callable[[jax.Array], jax.Array]
    log_mass: float
    sd: np.ndarray


def cusp(z: jax.Array) -> jax.Array:
    return -jnp.abs(z).sum()


def flat(z: jax.Array) -> jax.Array:
    return jnp.where((z**2).sum() < 1, 0.0, -jnp.inf)


def ridge(z: jax.Array) -> jax.Array:
    return -0.5 * (jnp.linalg.solve(ROOT, z) ** 2).sum()


def edge(z: jax.Array) -> jax.Array:
    return jnp.where((z >= 0).all(), -z.sum(), -jnp.inf)


SHAPES = {
    "cusp": Shape(cusp, D * np.log(2), np.full(D, np.sqrt(2))),
    "flat top": Shape(flat, np.log(np.pi ** (D / 2) / gamma(D / 2 + 1)), np.full(D, 6**-0.5)),
    "ridge": Shape(ridge, D / 2 * np.log(2 * np.pi), np.linalg.norm(ROOT, axis=1)),
    "edge": Shape(edge, 0.0, np.ones(D)),
}


def target_of(shape: Shape) -> TargetDensity:
    """Return a peak of width ``SCALE``, by a path whose prior is flat."""

    def terms(x: jax.Array) -> LogTerms:
        return LogTerms(jnp.zeros(()), shape.log_density(x / SCALE))

    return TargetDensity(pma.GeometricPath(terms), 256, gradients=False)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("name", SHAPES)
def test_mass_and_spread(name: str) -> None:
    """From a spread a hundred times as wide, without a gradient."""
    shape, scores, spreads = SHAPES[name], [], []
    log_mass = shape.log_mass + D * np.log(SCALE)
    for seed in range(8):
        target = target_of(shape)
        wide = widths(target, np.zeros(D), 0.0, np.ones(D))
        peak = weigh(target.log_density, wide, None, np.random.SeedSequence(seed))
        assert peak is not None
        scores.append(peak.log_mass - log_mass)
        scale = np.asarray(peak.normal.scale)
        sd = np.linalg.norm(scale, axis=1) if scale.ndim == 2 else scale
        spreads.append(np.log(sd / (SCALE * shape.sd)).mean())
    # At least 16 of 512 draws count, and mostly a quarter: errors of 0.08 to 0.25.
    assert abs(np.mean(scores)) < 0.15
    assert np.max(np.abs(scores)) < 0.6
    assert abs(np.mean(spreads)) < 0.1


@pytest.mark.parametrize("factor", [0.1, 10.0, 30.0])
def test_scales_that_are_far_off(factor: float) -> None:
    """Eight coordinates, half of their scales off by a factor: few draws of 512 have any weight."""
    d, found = 8, []
    normal = Shape(lambda z: -0.5 * (z**2).sum(), d / 2 * np.log(2 * np.pi), np.ones(d))
    start = pma.GaussianReference(np.zeros(d), SCALE * np.where(np.arange(d) < 4, 1.0, factor))
    for seed in range(8):
        log_density = target_of(normal).log_density
        peak = weigh(log_density, start, None, np.random.SeedSequence(seed))
        assert peak is not None
        found.append(peak.log_mass - normal.log_mass - d * np.log(SCALE))
    assert abs(np.mean(found)) < 0.15
    assert np.max(np.abs(found)) < 0.5


def test_a_needle_that_few_draws_meet() -> None:
    """The scale stays as it was until draws are where the density is not zero."""
    far = pma.GaussianReference(np.zeros(D), np.full(D, 5 * SCALE))
    for seed in range(8):
        peak = weigh(target_of(BOX).log_density, far, None, np.random.SeedSequence(seed))
        assert peak is None or (np.diag(np.atleast_2d(peak.normal.scale)) > 0).all()


def widths_of(shape: Shape, top: np.ndarray | float = 0.0) -> pma.GaussianReference:
    target, top = target_of(shape), top + np.zeros(D)
    return widths(target, top, float(target.log_density(top[None])[0]), np.ones(D))


# Factor by which a distance may be too large, after halvings of the logarithm of two.
FINE = 2**0.125


def test_a_cusp_falls_by_one_nat_at_its_scale() -> None:
    wide = widths_of(SHAPES["cusp"])
    np.testing.assert_array_equal(wide.mean, 0.0)
    assert (np.asarray(wide.scale) / SCALE >= 1).all()
    assert (np.asarray(wide.scale) / SCALE < FINE).all()


def test_at_an_edge_the_other_side_counts() -> None:
    wide = widths_of(SHAPES["edge"])
    np.testing.assert_array_equal(wide.mean, 0.0)
    assert (np.asarray(wide.scale) / SCALE >= np.sqrt(2)).all()
    assert (np.asarray(wide.scale) / SCALE < np.sqrt(2) * FINE).all()


BOX = Shape(lambda z: jnp.where((jnp.abs(z) < 1).all(), 0.0, -jnp.inf), D * np.log(2), np.ones(D))


@pytest.mark.parametrize("top", [0.0, 0.7 * SCALE, -0.99 * SCALE])
def test_a_climb_ends_anywhere_on_a_flat_top(top: float) -> None:
    """The middle of the box is between its edges, with a half of their distance for a scale."""
    wide = widths_of(BOX, top)
    np.testing.assert_allclose(wide.mean, 0.0, atol=0.1 * SCALE)
    np.testing.assert_allclose(wide.scale, FINE**0.5 * SCALE, rtol=FINE**0.5 - 1)


def test_curvature_is_taken_where_it_fits() -> None:
    target, shape = target_of(SHAPES["ridge"]), SHAPES["ridge"]
    wide = widths(target, np.zeros(D), 0.0, np.ones(D))
    curved = pma.GaussianReference(np.zeros(D), SCALE * ROOT)
    peak = weigh(target.log_density, wide, curved, np.random.SeedSequence(1))
    assert peak is not None
    assert peak.normal is curved
    assert peak.log_mass == pytest.approx(shape.log_mass + D * np.log(SCALE), abs=0.3)


def test_curvature_of_a_cusp_is_not() -> None:
    """Differences of gradients at a cusp are huge: a normal density with next to no mass."""
    target, shape = target_of(SHAPES["cusp"]), SHAPES["cusp"]
    wide = widths(target, np.zeros(D), 0.0, np.ones(D))
    curved = pma.GaussianReference(np.zeros(D), np.full(D, 1e-4 * SCALE))
    peak = weigh(target.log_density, wide, curved, np.random.SeedSequence(1))
    assert peak is not None
    assert peak.log_mass == pytest.approx(shape.log_mass + D * np.log(SCALE), abs=0.3)


def test_nothing_around_a_point() -> None:
    def nowhere(z: jax.Array) -> jax.Array:
        return jnp.where((z == 0).all(), 0.0, -jnp.inf)

    target = target_of(Shape(nowhere, -np.inf, np.zeros(D)))
    wide = widths(target, np.zeros(D), 0.0, np.ones(D))
    assert weigh(target.log_density, wide, None, np.random.SeedSequence(1)) is None

"""Paths from the prior, or another reference, to the posterior."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.base.contracts import (
    LogTerms,
    Path,
    ScreenedTerms,
    gradient,
    log_density_and_gradient,
    rejected_nan,
)
from pymc_anneal.paths.between_models import BetweenModels, EndTerms
from pymc_anneal.transitions.on_coordinates import ConditionalPath
from tests.cases import Case, log_gamma_draws, log_gamma_terms, parametrize
from tests.path_cases import INNER_PATHS, PATHS, PathCase

ALL_PATHS = [*PATHS, *INNER_PATHS]


@pytest.fixture
def position() -> np.ndarray:
    return log_gamma_draws(0.3, 40, np.random.default_rng(1))


def zero_below(terms: Callable, x: jax.Array) -> LogTerms:
    """Return terms whose likelihood is zero where the first coordinate is negative."""
    log_prior, log_likelihood = terms(x)
    return LogTerms(log_prior, jnp.where(x[0] < 0, -jnp.inf, log_likelihood))


def screened(x: jax.Array) -> ScreenedTerms:
    """Return terms whose likelihood was NaN where the first coordinate is negative."""
    return ScreenedTerms(*zero_below(log_gamma_terms, x), x[0] < 0)


half_terms = partial(zero_below, log_gamma_terms)


@parametrize("case", ALL_PATHS)
class TestContract:
    def test_ends(self, case: PathCase, position: np.ndarray) -> None:
        path = case.make(log_gamma_terms)
        terms = path.evaluate(position)
        exact = jax.vmap(log_gamma_terms)(position)
        start = case.log_start(position)
        np.testing.assert_allclose(path.log_density(terms, 0.0), start, rtol=1e-13)
        np.testing.assert_allclose(path.log_density(terms, 1.0), sum(exact), rtol=1e-13)

    def test_ratio_is_a_difference(self, case: Case, position: np.ndarray) -> None:
        path = case.make(log_gamma_terms)
        terms = path.evaluate(position)
        for a, b in [(0.0, 1.0), (0.0, 0.2), (0.2, 0.9), (0.9, 0.1), (0.5, 0.5), (0.3, 1.0)]:
            difference = path.log_density(terms, b) - path.log_density(terms, a)
            np.testing.assert_allclose(path.log_ratio(terms, a, b), difference, atol=1e-12)

    def test_ratio_over_a_tiny_step(self, case: Case, position: np.ndarray) -> None:
        # Free of cancellation: log f_{b + h} - log f_b = h v_b to all digits, at h = 1e-13.
        if case.name == "custom":
            pytest.skip("a difference of densities is all that a custom path offers")
        path = case.make(log_gamma_terms)
        terms = path.evaluate(position)
        velocity = path.velocity(terms, jnp.asarray(0.0))
        np.testing.assert_allclose(path.log_ratio(terms, 0.0, 1e-13) / 1e-13, velocity, rtol=1e-9)

    def test_velocity_is_the_derivative(self, case: Case, position: np.ndarray) -> None:
        path = case.make(log_gamma_terms)
        terms = path.evaluate(position)
        # At the ends a density may be that of the end alone: the derivative is the limit.
        for beta, near in [(0.0, 1e-9), (0.1, 0.1), (0.6, 0.6), (1.0, 1 - 1e-9)]:
            _, tangent = jax.jvp(lambda b: path.log_density(terms, b), (near,), (1.0,))
            velocity, digits = path.velocity(terms, beta), 1e-12 if beta == near else 1e-6
            np.testing.assert_allclose(velocity, tangent, rtol=digits, atol=digits)

    def test_terms_are_those_of_each_position(self, case: Case, position: np.ndarray) -> None:
        # Resampling takes rows of all leaves of the terms.
        path = case.make(log_gamma_terms)
        rows = np.array([3, 3, 0, 39])
        every, some = path.evaluate(jnp.asarray(position)), path.evaluate(position[rows])
        assert {leaf.shape[0] for leaf in jax.tree.leaves(every)} == {len(position)}
        for found, expected in zip(jax.tree.leaves(every), jax.tree.leaves(some), strict=True):
            np.testing.assert_allclose(found[rows], expected, rtol=1e-14)

    def test_is_a_pytree(self, case: Case, position: np.ndarray) -> None:
        path = case.make(log_gamma_terms)
        leaves, structure = jax.tree.flatten(path)
        again = jax.tree.unflatten(structure, leaves)
        compiled = jax.jit(lambda p, x, b: p.log_density(p.evaluate(x), b))
        expected = path.log_density(path.evaluate(position), 0.4)
        np.testing.assert_allclose(compiled(again, position, 0.4), expected, rtol=1e-13)

    def test_gradient(self, case: Case, position: np.ndarray) -> None:
        path, h = case.make(log_gamma_terms), 1e-6
        log_density, result = log_density_and_gradient(path, jnp.asarray(position), 0.7)
        expected = path.log_density(path.evaluate(position), 0.7)
        np.testing.assert_allclose(log_density, expected, rtol=1e-13)
        for i in range(2):
            step = h * np.eye(2)[i]
            high = path.log_density(path.evaluate(position + step), 0.7)
            low = path.log_density(path.evaluate(position - step), 0.7)
            np.testing.assert_allclose(result[:, i], (high - low) / (2 * h), rtol=1e-6, atol=1e-6)

    def test_zero_likelihood(self, case: PathCase, position: np.ndarray) -> None:
        path, dead = case.make(half_terms), position[:, 0] < 0
        assert 5 < dead.sum() < 35
        terms = path.evaluate(jnp.asarray(position))
        if case.name != "custom":  # as its function says
            np.testing.assert_allclose(path.log_density(terms, 0.0), case.log_start(position))
        for beta in (0.0, 0.4):
            ratio = path.log_ratio(terms, beta, 1.0)
            assert (np.isneginf(ratio) == dead).all()
            change = path.log_density(terms, 1.0) - path.log_density(terms, beta)
            np.testing.assert_allclose(ratio[~dead], change[~dead], atol=1e-12)
        np.testing.assert_array_equal(path.log_ratio(terms, 0.4, 0.4)[~dead], 0.0)
        assert (np.isneginf(path.log_density(terms, 1.0)) == dead).all()


@parametrize("case", [case for case in ALL_PATHS if case.average])
@pytest.mark.parametrize("beta", [0.15, 0.8])
def test_density_between_the_ends(case: PathCase, beta: float, position: np.ndarray) -> None:
    path = case.make(log_gamma_terms)
    ends = case.log_start(position), sum(jax.vmap(log_gamma_terms)(position))
    found = path.log_density(path.evaluate(position), beta)
    np.testing.assert_allclose(found, case.average(*map(np.asarray, ends), beta), rtol=1e-12)


@parametrize("case", [case for case in PATHS if case.exported == "MomentAveragedPath"])
@pytest.mark.parametrize("beta", [0.15, 0.25, 0.6, 0.8])
def test_density_between_the_knots(case: PathCase, beta: float, position: np.ndarray) -> None:
    path = case.make(log_gamma_terms)
    terms = path.evaluate(position)
    natural = np.array([np.interp(beta, path.knots, column) for column in path.natural.T])
    expected = case.log_start(position) + np.asarray(terms.statistics) @ natural
    np.testing.assert_allclose(path.log_density(terms, beta), expected, rtol=1e-12)


# Built on the terms of a model, in which NaN may count as zero likelihood.
SCREENED = {"GeometricPath", "ReferencePath", "MomentAveragedPath", "QPath"}


@parametrize("case", [case for case in PATHS if case.exported in SCREENED])
def test_rejected_nan(case: PathCase, position: np.ndarray) -> None:
    plain, kept = case.make(half_terms), case.make(screened)
    terms = kept.evaluate(jnp.asarray(position))
    assert rejected_nan(plain.evaluate(position)) is None
    np.testing.assert_array_equal(rejected_nan(terms), position[:, 0] < 0)
    expected = plain.log_density(plain.evaluate(position), 0.6)
    np.testing.assert_allclose(kept.log_density(terms, 0.6), expected, rtol=1e-14)


@parametrize("case", PATHS[:2])
def test_path_on_some_coordinates(case: PathCase, position: np.ndarray) -> None:
    """A ``ConditionalPath`` is the path itself at the merged positions."""
    path, other = case.make(log_gamma_terms), jnp.asarray(position[::-1])
    merged = jnp.column_stack([other[:, 0], position[:, 1]])
    part = ConditionalPath(path, other, (1,))
    whole, terms = path.evaluate(merged), part.evaluate(jnp.asarray(position[:, 1:]))
    for call in (
        lambda p, t: p.log_density(t, 0.3),
        lambda p, t: p.log_ratio(t, 0.3, 0.8),
        lambda p, t: p.velocity(t, 0.3),
    ):
        np.testing.assert_array_equal(call(part, terms), call(path, whole))
    found = gradient(part, jnp.asarray(position[:, 1:]), 0.3)
    np.testing.assert_allclose(found[:, 0], gradient(path, merged, 0.3)[:, 1], rtol=1e-12)


def test_nan_is_zero_where_the_prior_is_negligible() -> None:
    """By a factor of e^-1000 of the reference, which here is wide; elsewhere it stays."""
    wide = pma.GaussianReference(np.zeros(1), np.full(1, 100.0))

    def broken(x: jax.Array) -> LogTerms:
        return LogTerms(-0.5 * (x**2).sum(), jnp.where(x[0] > 0, jnp.nan, x[0]))

    path = pma.ReferencePath(broken, wide, 0.1)
    with jax.enable_x64(True):
        found = path.evaluate(np.array([[60.0], [40.0], [-60.0], [-1.0]])).log_target
    np.testing.assert_array_equal(found, [-np.inf, np.nan, -1860.0, -1.5])


class TestZeroLikelihood:
    """Both ends may be zero, at different places."""

    values = np.array([[-1.0], [2.0]])

    def check(self, path: Path, beta: float, expected: list[float]) -> None:
        terms = path.evaluate(self.values)
        np.testing.assert_array_equal(path.log_density(terms, beta), expected)

    def test_geometric(self) -> None:
        def terms(x: jax.Array) -> LogTerms:
            return LogTerms(-0.5 * x[0] ** 2, jnp.where(x[0] < 0, -jnp.inf, x[0]))

        path = pma.GeometricPath(terms)
        self.check(path, 0.0, [-0.5, -2.0])
        self.check(path, 0.5, [-np.inf, -1.0])
        values = path.evaluate(self.values)
        np.testing.assert_array_equal(path.log_ratio(values, 0.0, 0.5), [-np.inf, 1.0])
        np.testing.assert_array_equal(path.log_ratio(values, 0.5, 0.5), [0.0, 0.0])

    def test_between_models(self) -> None:
        def log_ends(x: jax.Array) -> EndTerms:
            return EndTerms(jnp.where(x[0] > 0, -jnp.inf, 3.0), jnp.where(x[0] > 0, 5.0, -jnp.inf))

        path = BetweenModels(log_ends)
        self.check(path, 0.0, [3.0, -np.inf])
        self.check(path, 0.5, [-np.inf, -np.inf])
        self.check(path, 1.0, [-np.inf, 5.0])

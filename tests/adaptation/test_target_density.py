"""Densities in batches of one size, counted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation import target_density as module
from pymc_anneal.adaptation.target_density import TargetDensity, operations
from pymc_anneal.base import LogTerms
from pymc_anneal.base.contracts import NanDensityError

POSITION = np.random.default_rng(1).normal(size=(10, 3))


def terms(x: jax.Array) -> LogTerms:
    return LogTerms(-0.5 * (x**2).sum(), jnp.sin(x).sum())


@pytest.mark.parametrize("size", [1, 4, 10, 16])
def test_batches_are_the_same_as_all_at_once(size) -> None:
    target = TargetDensity(pma.GeometricPath(terms), size)
    with jax.enable_x64(True):
        value, slope = target.value_and_gradient(POSITION)
        own = target.log_density(POSITION)
        gradient = target.gradient(POSITION)
    exact = (-0.5 * POSITION**2 + np.sin(POSITION)).sum(axis=1)
    np.testing.assert_allclose(value, exact, rtol=1e-12)
    np.testing.assert_allclose(own, exact, rtol=1e-12)
    np.testing.assert_allclose(slope, np.cos(POSITION) - POSITION, rtol=1e-12)
    np.testing.assert_array_equal(slope, gradient)
    assert target.evaluations == 3 * len(POSITION)


def test_without_gradients() -> None:
    target = TargetDensity(pma.GeometricPath(terms), 10, gradients=False)
    assert np.isnan(target.gradient(POSITION)).all()
    assert target.evaluations == 0


@pytest.mark.parametrize("size", [1, 4, 256])
def test_one_position(size) -> None:
    target, x = TargetDensity(pma.GeometricPath(terms), size), POSITION[:1]
    with jax.enable_x64(True):
        value, slope = target.value_and_gradient_singly(x)
    assert value == pytest.approx((-0.5 * x**2 + np.sin(x)).sum(), rel=1e-12)
    np.testing.assert_allclose(slope, np.cos(x) - x, rtol=1e-12)
    assert target.evaluations == 1


@pytest.mark.parametrize(
    ("far", "known", "fine"), [(60.0, False, True), (40.0, False, False), (40.0, True, True)]
)
def test_nan_is_zero_where_the_prior_is_negligible(far: float, known: bool, fine: bool) -> None:
    """The log prior is 1,800 or 800 nats below that of the other draws."""

    def broken(x: jax.Array) -> LogTerms:
        return LogTerms(-0.5 * (x**2).sum(), jnp.where(x[0] > 30, jnp.nan, jnp.sin(x).sum()))

    draws = np.concatenate([POSITION, [[far, 0.0, 0.0]]])
    target = TargetDensity(pma.GeometricPath(broken), len(draws), nan_is_zero=known)
    with jax.enable_x64(True):
        if not fine:
            with pytest.raises(NanDensityError, match="40"):
                target.evaluate_draws(draws)
            return
        found = target.evaluate_draws(draws)
    assert found.log_likelihood[-1] == -np.inf
    np.testing.assert_allclose(found.log_likelihood[:-1], np.sin(POSITION).sum(axis=1))


N = 50
ROOT = np.tril(np.ones((N, N)))


def scanned(x: jax.Array) -> jax.Array:
    return jax.lax.scan(lambda carry, _: (carry * x, None), x, length=7)[0]


def chosen(x: jax.Array) -> jax.Array:
    return jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x)


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (jnp.sin, N),
        (jax.jit(jnp.sin), 2 * N),  # what a call returns counts beside what it computes
        (lambda x: jnp.asarray(ROOT)[:3] @ x, 3 * N),
        (lambda x: jnp.outer(x, x) @ ROOT, N**2 + N**3),
        (scanned, N + 7 * N),
        (lambda x: jax.lax.linalg.cholesky(x[0] * ROOT, symmetrize_input=False), N**3),
    ],
    ids=["sine", "call", "vector", "matrix", "loop", "cholesky"],
)
def test_operations(function, count) -> None:
    found = operations(jax.jit(function).trace(jnp.ones(N)).jaxpr)
    assert count <= found <= 1.2 * count + 3 * N  # copies and changes of shape count too


def test_operations_of_a_choice_are_those_of_all_branches() -> None:
    of = {f: operations(jax.jit(f).trace(jnp.ones(500)).jaxpr) for f in (jnp.sin, chosen)}
    assert of[chosen] > 2 * of[jnp.sin]


class TestEffort:
    @pytest.mark.parametrize("size", [1, 32])
    def test_falls_with_the_operations(self, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
        target = TargetDensity(pma.GeometricPath(terms), size)
        with jax.enable_x64(True):
            path = module.trace_of_gradient(target.path, np.zeros((size, 3)))
            assert target.effort(3) == 1.0
            for times, share in ((0.5, 0.5), (0.2, 0.2), (0.01, 0.125), (3.0, 1.0)):
                monkeypatch.setattr(module, "_CHEAP", times * operations(path) / size)
                assert target.effort(3) == pytest.approx(share)

    def test_of_a_long_density(self) -> None:
        rows = np.ones((200_000, 8))

        def log_terms(x: jax.Array) -> LogTerms:
            return LogTerms(-0.5 * (x**2).sum(), -0.5 * jnp.square(rows @ x).sum())

        target = TargetDensity(pma.GeometricPath(log_terms), 4)
        assert target.effort(8) == pytest.approx(1 / 4, rel=0.3)  # 1.6e6 multiplications twice

    def test_of_no_operation(self) -> None:
        target = TargetDensity(pma.GeometricPath(lambda x: LogTerms(0.0, 0.0)), 4)
        assert target.effort(3) == 1.0

    def test_without_gradients(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_CHEAP", 1.0)
        assert TargetDensity(pma.GeometricPath(terms), 4, gradients=False).effort(3) == 1.0

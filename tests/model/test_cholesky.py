"""Cholesky factors, inverses and solutions by blocks, against LAPACK and JAX's derivatives."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pytensor.compile.mode import Mode
from scipy import linalg

from pymc_anneal.model.cholesky import cholesky, invert_triangular, solve_triangular
from pymc_anneal.model.jaxify import jaxify
from tests.model.models import assert_agrees_with_pymc

EPS = np.finfo(float).eps
SIZES = (1, 2, 9, 40)
# Other modes of PyTensor compile for ten seconds.
IN_PYTHON = Mode("py", "fast_compile")


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def covariances(n: int, batch: int = 3) -> np.ndarray:
    """Return covariances of a smooth process: condition numbers up to 1e7."""
    x, length = np.linspace(0, 3, n), np.linspace(0.5, 2, batch)[:, None, None]
    return np.exp(-0.5 * ((x[:, None] - x) / length) ** 2) + 1e-6 * np.eye(n)


@pytest.mark.parametrize("n", SIZES)
def test_inverses(n) -> None:
    factor = np.linalg.cholesky(covariances(n))
    garbage = factor + np.triu(np.full((n, n), 7.0), 1)
    inverse = np.asarray(jax.jit(invert_triangular)(garbage))
    exact = np.array([linalg.solve_triangular(f, np.eye(n), lower=True) for f in factor])
    error = np.abs(inverse - exact).max() / np.abs(exact).max()
    assert error <= n * EPS * np.linalg.cond(factor).max()
    assert np.all(np.triu(inverse, 1) == 0)


@pytest.mark.parametrize("n", SIZES)
def test_solutions_have_the_residuals_of_substitution(n) -> None:
    factor, right = np.linalg.cholesky(covariances(n)), np.ones((3, n, 4))
    right[..., 1] = np.arange(n)
    found = np.asarray(jax.jit(solve_triangular)(factor, right))
    exact = np.array(
        [linalg.solve_triangular(f, b, lower=True) for f, b in zip(factor, right, strict=True)]
    )
    rounding = EPS * (np.abs(factor) @ np.abs(exact))
    assert np.all(np.abs(factor @ found - right) <= n * rounding)


@pytest.mark.quick_cases("1")
@pytest.mark.parametrize("n", [1, 12])
def test_derivatives(n) -> None:
    """Forwards and backwards, once and twice, as JAX's own."""
    rng = np.random.default_rng(n)
    tilt, right = rng.normal(size=(n, n)), rng.normal(size=(n, 2))
    change = rng.normal(size=(n, n))
    change = change + change.T

    def own(t: jax.Array) -> jax.Array:
        factor = cholesky(4 * n * jnp.eye(n) + jnp.sin(t) * change)
        return (factor * tilt).sum() + (solve_triangular(factor, t * right) ** 2).sum()

    def known(t: jax.Array) -> jax.Array:
        factor = jnp.linalg.cholesky(4 * n * jnp.eye(n) + jnp.sin(t) * change)
        solution = jax.scipy.linalg.solve_triangular(factor, t * right, lower=True)
        return (factor * tilt).sum() + (solution**2).sum()

    for derivative in (jax.grad, jax.jacfwd, jax.hessian):
        found, exact = (float(jax.jit(derivative(f))(0.4)) for f in (own, known))
        assert found == pytest.approx(exact, 1e-10)


def test_a_change_above_the_diagonal_is_not_read() -> None:
    rng = np.random.default_rng(2)
    matrix, change = 12 * np.eye(3) + 1, rng.normal(size=(3, 3))
    lower = np.tril(change) + np.tril(change, -1).T
    with jax.enable_x64(True):
        found, expected = (jax.jvp(cholesky, (matrix,), (c,))[1] for c in (change, lower))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_gradients_of_batches() -> None:
    n = 20
    tilt = np.random.default_rng(1).normal(size=(n, n))

    def gradient(factorise: Callable) -> jax.Array:
        slope = jax.vmap(jax.grad(lambda s: (factorise(s) * tilt).sum()))
        return jax.jit(slope)(covariances(n))

    own, known = gradient(cholesky), gradient(jnp.linalg.cholesky)
    symmetric = (own + own.mT) / 2  # on symmetric matrices only their symmetric part matters
    assert np.abs(symmetric - (known + known.mT) / 2).max() < 1e-9 * np.abs(known).max()


def test_no_factor_of_an_indefinite_matrix() -> None:
    matrix = jnp.array([[1.0, 2.0], [2.0, 1.0]])
    assert np.isnan(cholesky(matrix)).any()


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_translation(lower, batch) -> None:
    n = 12
    matrix = pt.tensor("matrix", shape=(*batch, n, n))
    right = pt.tensor("right", shape=(*batch, n, 2))
    factor = pt.linalg.cholesky(matrix, lower=lower)
    solution = pt.linalg.solve_triangular(factor, right, lower=lower, b_ndim=2)
    value = covariances(n)[: len(batch) and 3].reshape(*batch, n, n) if batch else covariances(n)[0]
    rows = np.ones((*batch, n, 2))
    found = jax.jit(jaxify([matrix, right], [factor, solution]))(value, rows)
    for own, known in zip(found, [factor, solution], strict=True):
        exact = known.eval({matrix: value, right: rows}, mode=IN_PYTHON, on_unused_input="ignore")
        assert np.abs(np.asarray(own) - exact).max() < 1e-9 * np.abs(exact).max()


def build_process() -> pm.Model:
    x = np.linspace(0, 4, 24)
    with pm.Model() as model:
        length = pm.InverseGamma("length", 5, 5)
        covariance = pm.gp.cov.ExpQuad(1, length)
        f = pm.gp.Latent(cov_func=covariance).prior("f", X=x[:, None])
        pm.Normal("y", f, 0.5, observed=np.sin(x))
    return model


def build_rows() -> pm.Model:
    with pm.Model() as model:
        scales = pm.Exponential.dist(1.0, shape=12)
        factor, *_ = pm.LKJCholeskyCov("factor", n=12, eta=2.0, sd_dist=scales)
        pm.MvNormal("y", np.zeros(12), chol=factor, observed=np.ones((5, 12)))
    return model


@pytest.mark.parametrize("build", [build_process, build_rows])
def test_models(build) -> None:
    model = build()
    compiled = assert_agrees_with_pymc(model)
    program = jax.make_jaxpr(jax.vmap(jax.grad(lambda x: sum(compiled.log_terms(x)))))
    text = str(program(np.zeros((2, compiled.ndim))))
    if build is build_process:  # whose gradient has no solution with many right-hand sides
        assert "triangular_solve" not in text

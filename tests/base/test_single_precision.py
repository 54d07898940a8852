"""Functions of 64-bit numbers, computed with 32-bit numbers."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.base.contracts import LogTerms, gradient
from pymc_anneal.base.single_precision import in_single_precision
from tests.problems import PROBLEMS

ROOT = np.linalg.cholesky(np.cov(np.random.default_rng(1).normal(size=(4, 30))))


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


@jax.custom_jvp
def cubed(x: jax.Array) -> jax.Array:
    return x**3


cubed.defjvp(lambda x, t: (cubed(*x), 3 * x[0] ** 2 * t[0]))


def scanned(x: jax.Array) -> jax.Array:
    def body(total, row):
        return total + jnp.sin(row), total * 0.5

    total, each = jax.lax.scan(body, jnp.zeros(()), x)
    return total + each.sum()


FUNCTIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "arithmetic": lambda x: (2.5 * x - jnp.exp(-(x**2)) / 3).sum(),
    "special functions": lambda x: (jax.scipy.special.gammaln(x**2 + 1) + jax.nn.softplus(x)).sum(),
    "constants": lambda x: ROOT @ x,
    "conversion": lambda x: (x > 0).astype(jnp.float64) * x / 3,
    "branches": lambda x: jax.lax.cond(x[0] > 0, lambda y: y.sum(), lambda y: (y * y).sum(), x),
    "scan": scanned,
    "while": lambda x: jax.lax.while_loop(lambda y: (y**2).sum() > 1e-2, lambda y: y / 3, x),
    "inner program": lambda x: jax.jit(jnp.tanh)(x) + jax.checkpoint(jnp.cos)(x),
    "rule of its own": lambda x: cubed(x),
    "linear algebra": lambda x: jax.scipy.linalg.solve_triangular(ROOT * x[0], x, lower=True),
    "linear solution": lambda x: jax.scipy.sparse.linalg.cg(lambda y: ROOT @ (ROOT.T @ y), x)[0],
    "mapped": lambda x: jax.lax.map(lambda y: jnp.sin(y) * x, x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("of", ["value", "slope"])
def test_close_to_the_function_itself(name, of) -> None:
    function, x = FUNCTIONS[name], np.array([0.3, -1.2, 0.8, 2.1])
    if of == "slope" and name == "while":
        pytest.skip("JAX has no gradients of loops of unknown length")
    if of == "slope":
        original = function
        function = jax.grad(lambda x: (original(x) ** 2).sum())
    exact, found = jax.jit(function)(x), jax.jit(in_single_precision(function))(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact, rtol=2e-5, atol=1e-6)
    assert (np.asarray(found) != np.asarray(exact)).any()  # or there were no 32-bit numbers


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_wider_numbers_remain(name) -> None:
    """But for the conversion of arguments and constants."""
    single = in_single_precision(FUNCTIONS[name])
    program = jax.jit(single).lower(np.ones(4)).as_text().splitlines()
    wide = [line for line in program if "f64" in line and "stablehlo" in line]
    kept = ("stablehlo.convert", "stablehlo.constant")
    assert [line for line in wide if not any(word in line for word in kept)] == []


def test_pytrees_and_whole_numbers() -> None:
    def function(terms: LogTerms, count: jax.Array) -> dict[str, jax.Array]:
        return {"sum": terms.log_prior + terms.log_likelihood, "count": count + 1}

    terms = LogTerms(jnp.asarray(1.0), jnp.asarray(2.0))
    found = in_single_precision(function)(terms, jnp.asarray(3))
    assert found["sum"] == 3
    assert found["sum"].dtype == np.float32
    assert found["count"] == 4
    assert found["count"].dtype == np.int64


def test_the_host_gets_numbers_of_its_type() -> None:
    def function(x: jax.Array) -> jax.Array:
        shape = jax.ShapeDtypeStruct((), np.float64)
        return 2 * jax.pure_callback(called, shape, x, vmap_method="sequential")

    def called(x: np.ndarray) -> np.ndarray:
        assert x.dtype == np.float64
        return np.asarray(x) + 1

    assert float(in_single_precision(function)(jnp.asarray(1.5))) == 5.0


def test_no_force_where_numbers_are_too_large() -> None:
    """Instead of none that is a number, which would reject all proposals."""
    path = pma.GeometricPath(lambda x: LogTerms(-0.5 * (x**2).sum(), -jnp.exp(x[0])))
    x = jnp.array([[1.0, 2.0], [95.0, 2.0]])
    exact, found = (gradient(path, x, 1.0, single) for single in (False, True))
    np.testing.assert_allclose(found[0], exact[0], rtol=1e-6)
    np.testing.assert_allclose(found[1, 1], exact[1, 1], rtol=1e-6)
    assert found.dtype == np.float64
    assert exact[1, 0] < -1e40
    assert found[1, 0] == 0


@pytest.mark.parametrize("name", ["eight_schools", "gp_regression"])
def test_gradients_of_models(name) -> None:
    (problem,) = [problem for problem in PROBLEMS if problem.name == name]
    compiled = pma.compile_model(problem.build())
    path = pma.GeometricPath(compiled.log_terms)
    x = jnp.asarray(compiled.sample_prior(np.random.SeedSequence(1), 20))
    slopes = [jax.jit(partial(gradient, path, beta=0.7, single_precision=s)) for s in (False, True)]
    exact, found = (np.asarray(slope(x)) for slope in slopes)
    size = np.abs(exact).max(axis=1, keepdims=True)
    assert (np.abs(found - exact) < 1e-3 * size + 1e-3).mean() > 0.95
    assert (found != exact).any()

"""Degrees of polynomials are those of the functions, or said not to be known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jax import lax
from jax.scipy.linalg import solve_triangular

from pymc_anneal.model.degree import NOT_POLYNOMIAL, degrees
from pymc_anneal.model.dependence import flat_program

A = np.tril(np.random.default_rng(0).normal(size=(4, 4))) + 4 * np.eye(4)
TWO = np.full(4, 2.0)
AT = np.array([2, 0, 0, 3])

# Functions of u, in which the degree is, and of x.
DEGREES = {
    0: [
        lambda u, x: jnp.exp(x).sum(),
        lambda u, x: jnp.zeros_like(u).sum() + x[0],
        lambda u, x: jnp.where(x > 0, x, 2.0).sum(),
    ],
    1: [
        lambda u, x: (u[AT] * jnp.exp(x)).sum(),
        lambda u, x: (A @ u - 3) / jnp.log(x[0]),
        lambda u, x: solve_triangular(A * x[0], u, lower=True),
        lambda u, x: jnp.where(x > 0, u, -u[::-1]),
        lambda u, x: jnp.zeros(5).at[AT].add(u).at[1].set(x[0]),
        lambda u, x: jnp.cumsum(jnp.concatenate([u, x])).reshape(2, 4),
        lambda u, x: lax.dynamic_slice(u, (x[0].astype(int),), (2,)),
        lambda u, x: jax.jit(lambda v: v * 2)(u) ** 1,
    ],
    2: [
        lambda u, x: -0.5 * ((u - x) / x[1]) ** 2,
        lambda u, x: u @ A @ u,
        lambda u, x: jnp.square(u).sum() + u[0] * x[0],
        lambda u, x: u[:, None] * u,
        lambda u, x: lax.pow(u, TWO),
    ],
    4: [lambda u, x: (u**2 - x) ** 2],
    NOT_POLYNOMIAL: [
        lambda u, x: jnp.exp(u),
        lambda u, x: x / u,
        lambda u, x: u**-2,
        lambda u, x: u ** x[0],
        lambda u, x: x[0] ** u,
        lambda u, x: jnp.abs(u),
        lambda u, x: jnp.maximum(u, x),
        lambda u, x: jnp.where(u > 0, x, 2.0),
        lambda u, x: jnp.where(u > 9, u, 2 * u),
        lambda u, x: x[u[0].astype(int)],
        lambda u, x: x[jnp.argsort(u)],
        lambda u, x: jnp.sort(u),
        lambda u, x: solve_triangular(A * u[0], x, lower=True),
        lambda u, x: jnp.linalg.cholesky(jnp.eye(4) * u[0]),
        lambda u, x: lax.fori_loop(0, 3, lambda _, v: v * 2, u),
        lambda u, x: jnp.round(u) + x,
        lambda u, x: u.astype(int).astype(float) + x,
        lambda u, x: lax.cumprod(u),
        lambda u, x: jnp.prod(u),
    ],
}
CASES = [(degree, function) for degree, functions in DEGREES.items() for function in functions]


@pytest.mark.parametrize(("degree", "function"), CASES)
def test_degree(degree, function):
    with jax.enable_x64(True):
        program = flat_program(function, np.ones(4), np.full(4, 2.0))
    found = degrees(program, {0: 1.0})
    assert [found(v) for v in program.jaxpr.outvars] == [degree]


def test_nothing_depends_on_inputs_of_degree_zero():
    program = flat_program(lambda u, x: jnp.exp(u) * x**3, np.ones(2), np.ones(2))
    found = degrees(program, {1: 1.0})
    assert [found(v) for v in program.jaxpr.outvars] == [3]

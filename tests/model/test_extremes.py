"""Largest entries and log-sum-exp: values and derivatives, at every point of a large batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from scipy import special

import pymc_anneal as pma

from pymc_anneal.base.batches import _calls
from pymc_anneal.model.extremes import LogSumExp, largest, log_sum_exp, smallest
from pymc_anneal.model.jaxify import jaxify

RNG = np.random.default_rng(1)
AXES = [(0,), (1,), (0, 2), (0, 1, 2)]
CENTRES = np.array([[-8.0, -6.0], [7.0, -8.0], [0.0, 1.0], [9.0, 7.0], [-7.0, 8.0]])


@pytest.mark.parametrize("axis", AXES)
def test_values_are_numpys(axis) -> None:
    x = RNG.normal(scale=300, size=(3, 4, 5))  # exponentials that over- and underflow
    np.testing.assert_array_equal(largest(jnp.asarray(x), axis), x.max(axis))
    np.testing.assert_array_equal(smallest(jnp.asarray(x), axis), x.min(axis))
    expected = special.logsumexp(x, axis=axis)
    np.testing.assert_allclose(log_sum_exp(jnp.asarray(x), axis), expected, rtol=1e-14)


@pytest.mark.parametrize("axis", AXES)
def test_derivatives(axis) -> None:
    """The first of the extreme entries, and the weights of the terms."""
    x = RNG.normal(size=(3, 4, 5))
    ends = x.max(axis, keepdims=True), x.min(axis, keepdims=True)
    for function, end in zip((largest, smallest), ends, strict=True):
        slope = jax.grad(lambda x, f=function: f(x, axis).sum())(jnp.asarray(x))
        np.testing.assert_array_equal(slope, x == end)
    slope = jax.grad(lambda x: log_sum_exp(x, axis).sum())(jnp.asarray(x))
    np.testing.assert_allclose(slope, special.softmax(x, axis=axis), rtol=1e-13)


def test_equal_entries_count_once() -> None:
    slope = jax.grad(lambda x: largest(x, (0,)))(jnp.array([1.0, 2.0, 2.0]))
    assert slope.tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([-np.inf, -np.inf], -np.inf),
        ([np.inf, 0.0], np.inf),
        ([-np.inf, 1.0], 1.0),
        ([np.nan, 1.0], np.nan),
        ([], -np.inf),
    ],
)
def test_terms_that_are_not_finite(x, expected) -> None:
    if x:
        np.testing.assert_equal(float(log_sum_exp(jnp.array(x), (0,))), expected)
    np.testing.assert_equal(float(largest(jnp.array(x, float), (0,))), max(x, default=-np.inf))


def written_out(x, axis, keepdims: bool):
    return pt.log(pt.exp(x).sum(axis=axis, keepdims=keepdims))


@pytest.mark.parametrize("form", [pt.logsumexp, written_out])
def test_no_maximum_is_differentiated(form) -> None:
    x = pt.matrix("x", shape=(3, 4))
    for keepdims in (False, True):
        program = jaxify([x], [form(x, axis=1, keepdims=keepdims).sum()])
        text = str(jax.make_jaxpr(jax.grad(lambda x, p=program: p(x)[0]))(np.ones((3, 4))))
        assert "argmax" not in text


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
def test_graphs_are_translated(axis, keepdims: bool) -> None:
    x = pt.tensor("x", shape=(3, 4, 5))
    given = RNG.normal(scale=300, size=(3, 4, 5))
    graphs = [f(x, axis=axis, keepdims=keepdims) for f in (pt.logsumexp, pt.max, pt.min)]
    program = jaxify([x], graphs)
    for found, graph in zip(program(jnp.asarray(given)), graphs, strict=True):
        np.testing.assert_allclose(found, graph.eval({x: given}), rtol=1e-13)


def test_no_value_is_compared_with_a_recomputed_one() -> None:
    """As JAX's own derivative of a maximum does: the twin."""
    x = pt.matrix("x", shape=(3, 4))
    program = jaxify([x], [pt.logsumexp(x, axis=1).sum() + x.max() - x.min()])
    assert not compares_numbers(lambda x: program(x)[0])
    assert compares_numbers(lambda x: x.max())


def compares_numbers(function) -> bool:
    """Whether two floating-point numbers are compared in the derivative of a function."""
    program = jax.make_jaxpr(jax.grad(function))(np.ones((3, 4))).jaxpr
    equal = [call.invars for call in _calls(program) if call.primitive.name == "eq"]
    variables = [[v for v in pair if not hasattr(v, "val")] for pair in equal]
    return any(len(pair) == 2 and pair[0].aval.dtype.kind == "f" for pair in variables)


def test_constants_are_evaluated() -> None:
    rows = pt.constant(np.log([[1.0, 3.0], [2.0, 2.0]]))
    np.testing.assert_allclose(LogSumExp((1,))(rows).eval(), np.log([4.0, 4.0]))


def mixture() -> pm.Model:
    with pm.Model() as model:
        x = pm.Normal("x", 0, 6, shape=2)
        distance = ((x - CENTRES) ** 2).sum(axis=1)
        pm.Potential("modes", pt.logsumexp(-distance / 0.72) + pt.max(-distance / 0.5))
    return model


def test_gradients_at_many_points() -> None:
    """With programs that are hardly optimised, a quarter of JAX's own were NaN.

    XLA computed the entries of the comparison anew, with fused multiplications and additions.
    """
    compiled = pma.compile_model(mixture())
    x = compiled.sample_prior(np.random.SeedSequence(1), 512)
    found = jax.jit(jax.vmap(jax.grad(lambda x: compiled.log_terms(x).log_likelihood)))(x)
    difference = CENTRES - x[:, None]
    square = (difference**2).sum(axis=-1)
    share = special.softmax(-square / 0.72, axis=1)
    nearest = difference[np.arange(512), square.argmin(axis=1)]
    expected = (share[..., None] * difference).sum(axis=1) * 2 / 0.72 + nearest * 2 / 0.5
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)

"""Geometric and spline paths: densities, ratios and velocities of the RBMs that they connect."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scipy.special import expit

from pymc_anneal.rbm.spline_path import SplineRBMPath
from tests.rbm.small_paths import (
    GEOMETRIC,
    KNOTS,
    MIDDLE,
    REFERENCE,
    SHAPE,
    SPLINE,
    TARGET,
    call,
    each_path,
    expected_rbm_at,
)
from tests.rbm_cases import random_rbm, states

VISIBLE = states(SHAPE[0])


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


@each_path
@pytest.mark.parametrize("beta", [0.0, 0.2, 0.35, 0.6, 1.0])
def test_density_and_rbm(path, beta: float) -> None:
    model = expected_rbm_at(path, beta)
    found = call("model_at", path, beta)
    for left, right in zip(jax.tree.leaves(found), jax.tree.leaves(model), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-13, atol=1e-15)
    elsewhere = call("evaluate", path, VISIBLE)
    for terms in (elsewhere, call("evaluate_at", path, VISIBLE, beta)):
        density = call("log_density", path, terms, beta)
        np.testing.assert_allclose(density, model.log_density(VISIBLE), rtol=1e-12, atol=1e-13)
        field = call("hidden_field", path, call("at", path, terms, beta), beta)
        np.testing.assert_allclose(expit(field), model.hidden_probability(VISIBLE), rtol=1e-12)
    hidden = states(SHAPE[1])
    field = call("visible_field", path, hidden, beta)
    np.testing.assert_allclose(expit(field), model.visible_probability(hidden), rtol=1e-12)


@each_path
@pytest.mark.parametrize(
    ("start", "stop"),
    [
        (0.0, 1.0),
        (0.1, 0.2),
        (0.2, 0.7),
        (0.1, 0.35),
        (0.35, 0.9),
        (0.5, 0.5),
        (0.7, 0.2),
        (1.0, 0.0),
        (0.35, 0.1),
        (0.9, 0.35),
    ],
)
def test_ratio(path, start: float, stop: float) -> None:
    upper, lower = (expected_rbm_at(path, b).log_density(VISIBLE) for b in (stop, start))
    for at in (0.0, start, stop):
        terms = call("evaluate_at", path, VISIBLE, at)
        found = call("log_ratio", path, terms, start, stop)
        np.testing.assert_allclose(found, upper - lower, rtol=1e-11, atol=1e-13)


@each_path
@pytest.mark.parametrize("width", [1e-7, 1e-10])
def test_small_steps_lose_nothing(path, width: float) -> None:
    terms = call("evaluate_at", path, VISIBLE, 0.6)
    stop = 0.6 + width
    ratio = np.asarray(call("log_ratio", path, terms, 0.6, stop))
    midpoint = np.asarray(call("velocity", path, terms, 0.6 + width / 2)) * (stop - 0.6)
    np.testing.assert_allclose(ratio, midpoint, rtol=1e-9)
    upper, lower = (call("log_density", path, terms, beta) for beta in (stop, 0.6))
    assert not np.allclose(upper - lower, midpoint, rtol=1e-9, atol=0)


def test_a_step_over_several_knots() -> None:
    knots = np.linspace(0, 1, 6)
    models = [REFERENCE, *(random_rbm(*SHAPE, seed=i) for i in range(4)), TARGET]
    path = SplineRBMPath.through(knots, models)
    terms = call("evaluate", path, VISIBLE)
    expected = TARGET.log_density(VISIBLE) - REFERENCE.log_density(VISIBLE)
    found = call("log_ratio", path, terms, 0.0, 1.0)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    for knot, model in zip(knots, models, strict=True):
        density = call("log_density", path, terms, knot)
        np.testing.assert_allclose(density, model.log_density(VISIBLE), rtol=1e-12)


@each_path
@pytest.mark.parametrize("beta", [0.0, 0.2, 0.6, 0.999])
def test_velocity(path, beta: float) -> None:
    terms = call("evaluate", path, VISIBLE)
    slope = slope_of(path, terms, beta)
    for at in (terms, call("evaluate_at", path, VISIBLE, beta)):
        np.testing.assert_allclose(call("velocity", path, at, beta), slope, rtol=1e-10)
    h = 1e-6
    upper, lower = (expected_rbm_at(path, b).log_density(VISIBLE) for b in (beta + h, beta))
    np.testing.assert_allclose(slope, (upper - lower) / h, atol=1e-4)


@jax.jit
def slope_of(path, terms, beta):
    return jax.jvp(lambda b: path.log_density(terms, b), (beta,), (jnp.ones_like(beta),))[1]


def test_two_knots_are_a_geometric_path() -> None:
    spline = SplineRBMPath.through(np.array([0.0, 1.0]), [REFERENCE, TARGET])
    left, right = (call("evaluate", p, VISIBLE) for p in (spline, GEOMETRIC))
    for beta in (0.0, 0.3, 1.0):
        for name in ("log_density", "velocity", "hidden_field"):
            pair = call(name, spline, left, beta), call(name, GEOMETRIC, right, beta)
            np.testing.assert_allclose(*pair, rtol=1e-12, atol=1e-13)
    for start, stop in [(0.0, 0.3), (0.3, 1.0), (0.8, 0.1)]:
        pair = (
            call("log_ratio", spline, left, start, stop),
            call("log_ratio", GEOMETRIC, right, start, stop),
        )
        np.testing.assert_allclose(*pair, rtol=1e-12)
    three = call("log_density", SPLINE, call("evaluate", SPLINE, VISIBLE), 0.3)
    assert not np.allclose(three, call("log_density", GEOMETRIC, right, 0.3))


@pytest.mark.parametrize(
    ("knots", "models", "message"),
    [
        ([0.0, 1.0], [REFERENCE, MIDDLE, TARGET], "Found 3 RBMs .* for 2 knots"),
        ([0.0, 0.5, 1.0], [REFERENCE, TARGET], "Found 2 RBMs .* for 3 knots"),
        ([0.0, 1.0], [REFERENCE, random_rbm(4, 2)], r"shapes \[\(4, 2\), \(4, 3\)\]"),
        ([0.0, 0.7, 0.5, 1.0], [REFERENCE] * 4, "not increasing"),
        ([0.1, 1.0], [REFERENCE, TARGET], "starts at 0.1"),
    ],
)
def test_bad_splines(knots, models, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SplineRBMPath.through(np.array(knots), models)


@pytest.mark.parametrize("setting", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_spline_has_the_type_of_its_rbms(dtype: type, setting: bool) -> None:
    with jax.enable_x64(setting):
        models = [m.astype(dtype) for m in (REFERENCE, MIDDLE, TARGET)]
        path = SplineRBMPath.through(KNOTS, models)
    assert {x.dtype for x in jax.tree.leaves((path.start, path.change))} == {np.dtype(dtype)}


@each_path
def test_single_precision_is_kept(path) -> None:
    def everything(path, visible, hidden, beta):
        terms = path.evaluate_at(visible, beta)
        return (
            path.log_ratio(terms, beta, beta + 0.1),
            path.velocity(terms, beta),
            path.hidden_field(terms, beta),
            path.visible_field(hidden, beta),
            path.model_at(beta),
        )

    single = jax.tree.map(lambda x: np.asarray(x, np.float32), path)
    layers = (np.asarray(states(n), np.float32) for n in SHAPE)
    found = jax.eval_shape(everything, single, *layers, jnp.float64(0.6))
    assert {x.dtype for x in jax.tree.leaves(found)} == {np.dtype(np.float32)}

"""Rewrites of graphs: fast forms are equal to the originals, and only true checks are dropped."""

from collections.abc import Callable

import jax
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from scipy import special

import pymc_anneal as pma

from pymc_anneal.model.rewrites import softplus
from tests.model.models import Y, assert_agrees_with_pymc, evaluate, reference


def test_parameters_out_of_bounds_have_zero_density() -> None:
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Normal("y", 0.0, x, observed=[0.5])
    terms = evaluate(pma.compile_model(model), np.array([[-2.0], [1.0]]))
    assert terms.log_likelihood[0] == -np.inf
    assert np.isfinite(terms.log_likelihood[1])


@pytest.mark.parametrize(
    ("rate", "certain"),
    [
        (lambda x: pt.exp(x), True),
        (lambda x: 2.0 * pt.exp(x[:, None]) + pt.sqr(x), True),
        (lambda x: pt.switch(np.array([0, 1, 1]), pt.abs(x), pt.sigmoid(x)), True),
        (lambda x: x, False),
        (lambda x: pt.exp(x) - 0.1, False),
        (lambda x: pt.exp(x) * pt.sqr(x), False),  # NaN where one overflows
        (lambda x: pt.switch(x > 0, x, pt.exp(x)), False),
    ],
)
def test_checks_that_cannot_fail_are_dropped(rate: Callable, certain: bool) -> None:
    with pm.Model() as model:
        x = pm.Normal("x", shape=3)
        shape = pt.as_tensor(rate(pt.zeros(3))).shape.eval()
        pm.Poisson("y", rate(x), observed=np.full(shape, 2))
    compiled = pma.compile_model(model)
    with jax.enable_x64(True):
        program = str(jax.make_jaxpr(compiled.log_terms)(np.zeros(3)))
    assert ("reduce_and" in program) != certain
    expected = reference(compiled)
    point = np.array([0.3, 0.4, 0.7])
    value = evaluate(compiled, point[None]).log_likelihood[0]
    assert value == pytest.approx(expected(point)[1], rel=1e-6)


@pytest.mark.parametrize("likelihood", ["bernoulli", "categorical", "censored", "mixture"])
def test_fast_forms_are_equal(likelihood: str) -> None:
    # The element-wise forms that are replaced by faster ones, far into their tails.
    with pm.Model() as model:
        x = pm.Normal("x", 0.0, 15.0, shape=3)
        if likelihood == "bernoulli":
            pm.Bernoulli("y", logit_p=x, observed=[0, 1, 1])
        elif likelihood == "categorical":
            pm.Categorical("y", p=pm.math.softmax(x / 8), observed=[0, 2, 2, 1])
        elif likelihood == "censored":
            pm.Censored("y", pm.Normal.dist(x, 9.0), lower=0, upper=None, observed=[0, 3, 9.0])
        else:
            pm.NormalMixture("y", pm.math.softmax(x / 8), [-1.0, 0, 2], 1.0, observed=Y)
    assert_agrees_with_pymc(model)


def test_many_points_in_the_tails_are_not_nan() -> None:
    # logit(p) of +-800: the straightforward forms overflow.
    with pm.Model() as model:
        x = pm.Normal("x", 0.0, 500.0)
        pm.Bernoulli("y", logit_p=x, observed=[1, 0])
    values = evaluate(pma.compile_model(model), np.array([[-800.0], [800.0]]))
    np.testing.assert_allclose(values.log_likelihood, [-800.0, -800.0], rtol=1e-6)
    assert np.isfinite(special.logsumexp(values.log_prior))


@pytest.mark.parametrize("x", [-1000.0, -1.0, 0.0, 1.0, 1000.0])
def test_second_derivative_of_softplus(x: float) -> None:
    # The curvature at a peak is made of it.
    p = special.expit(x)
    with jax.enable_x64(True):
        curvature = float(jax.hessian(softplus)(x))
    assert curvature == pytest.approx(p * (1 - p), rel=1e-12)

"""Translated graphs: gradients and precision."""

import jax
import numpy as np
import pymc as pm
import pytensor
import pytest

import pymc_anneal as pma

from tests.model.models import Y, assert_agrees_with_pymc, build, evaluate


@pytest.mark.slow
def test_gradients_agree_with_pymc() -> None:
    compiled = pma.compile_model(build("lkj_cholesky"))
    model = compiled.model
    gradient = model.compile_dlogp()
    draws = compiled.sample_prior(np.random.SeedSequence(12), 3)
    with jax.enable_x64(True):
        ours = jax.vmap(jax.grad(lambda x: sum(compiled.log_terms(x))))(draws)
    name = model.value_vars[0].name
    for x, g in zip(draws, np.asarray(ours), strict=True):
        np.testing.assert_allclose(g, gradient({name: x}), rtol=1e-5, atol=1e-5)


def test_constants_keep_double_precision() -> None:
    y = 1 + np.array([1e-10, -3e-10, 7e-10])
    with pm.Model() as model:
        x = pm.Normal("x", 1.0, 1.0)
        pm.Potential("likelihood", -1e18 * ((y - x) ** 2).sum())
    compiled = pma.compile_model(model)
    exact = -1e18 * ((y - 1) ** 2).sum()
    terms = evaluate(compiled, np.ones((1, 1)))
    np.testing.assert_allclose(terms.log_likelihood, exact, rtol=1e-5)


def test_float32() -> None:
    with pytensor.config.change_flags(floatX="float32"):
        with pm.Model() as model:
            x = pm.Gamma("x", 2.5, 0.7, shape=3)
            pm.Normal("y", x.sum(), 3.0, observed=Y.astype("float32"))
        compiled = assert_agrees_with_pymc(model, rtol=1e-4)
        assert compiled.log_prior_mass == 0
        assert compiled.sample_prior(np.random.SeedSequence(13), 2).dtype == np.float64

"""Half-Cauchy variables as normal scores."""

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.model.normal_scores import NormalScores


@pytest.fixture(scope="module")
def scores() -> NormalScores:
    with pm.Model() as model:
        pm.Normal("x")
        scale = pm.HalfCauchy("scale", [0.5, 2.0])
        pm.HalfCauchy("inner", scale[0])
        pm.HalfNormal("other")
    return NormalScores.of(pma.compile_model(model))


def test_variables_of_known_scale_have_scores(scores) -> None:
    np.testing.assert_array_equal(scores.columns, [1, 2])
    np.testing.assert_allclose(scores.log_scale, np.log([0.5, 2.0]))


@pytest.mark.parametrize("z", [-20.0, -8.0, -1.0, -1e-9, 1e-9, 0.5, 8.0, 20.0])
def test_quantiles_of_both_distributions_agree(scores, z) -> None:
    y = jnp.array([0.3, z, -z, 0.1, 0.2])
    x, log_volume = jax.jit(scores.backward)(y)
    np.testing.assert_allclose(jax.jit(scores.forward)(x), y, rtol=1e-9, atol=1e-12)
    log_r = np.asarray(x)[1:3] - scores.log_scale
    # Far out the quantile of the nearer tail is accurate.
    tail = stats.norm.sf(abs(z))
    expected = np.log(np.tan(np.pi / 2 * tail)) * np.array([-np.sign(z), np.sign(z)])
    np.testing.assert_allclose(log_r, expected, rtol=1e-9, atol=1e-12)
    log_density = np.log(2 / np.pi) - np.logaddexp(log_r, -log_r)
    assert float(log_volume) == pytest.approx((stats.norm.logpdf([z, -z]) - log_density).sum())


@pytest.mark.parametrize("z", [37.0, 38.0, 60.0, 1e3])
def test_scores_where_probabilities_underflow(scores, z) -> None:
    y = jnp.array([0.3, z, -z, 0.1, 0.2])

    def log_volume(y: jax.Array) -> jax.Array:
        return scores.backward(y)[1]

    x, slope = jax.jit(scores.backward)(y)[0], jax.jit(jax.grad(log_volume))(y)
    log_r = np.log(np.pi / 2) + stats.norm.logsf(z)
    np.testing.assert_allclose(np.asarray(x)[1:3] - scores.log_scale, [-log_r, log_r], rtol=1e-12)
    # The density of log r is exp(-|r|) 2 / pi there.
    expected = 2 * (stats.norm.logpdf(z) - np.log(2 / np.pi) - log_r)
    assert float(jax.jit(log_volume)(y)) == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(np.asarray(slope)[1:3], [1 / z, -1 / z], rtol=0.01)


def test_models_without_them_are_left_as_they_are() -> None:
    with pm.Model() as model:
        pm.Normal("x")
    scores = NormalScores.of(pma.compile_model(model))
    x, log_volume = scores.backward(jnp.array([0.3]))
    assert float(x[0]) == 0.3
    assert float(log_volume) == 0
    assert float(scores.forward(x)[0]) == 0.3

"""Data simulated from the joint distribution of a model."""

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest

from scipy import stats

from pymc_anneal.model.compile import compile_model
from pymc_anneal.model.simulate import simulate, with_data
from tests.model.simulated_models import counts, folded


def test_data_follow_their_parameters() -> None:
    compiled = compile_model(folded())
    x, (y,) = simulate(compiled, np.random.SeedSequence(1), 4000)
    assert stats.kstest(x[:, 0] + 1, "norm").pvalue > 1e-3
    residual = (y[:, 0] - 3 * x[:, 0] ** 2 - x[:, 0]) / 0.2
    assert stats.kstest(residual, "norm").pvalue > 1e-3


def test_the_likelihood_takes_other_data() -> None:
    compiled = compile_model(counts())
    with jax.enable_x64(True):
        x = jnp.array([0.3])
        own = with_data(compiled, [np.array([3, 1, 4])]).log_terms(x)
        other = with_data(compiled, [np.array([0, 1, 9])]).log_terms(x)
        expected = compiled.log_terms(x)
    np.testing.assert_allclose(own, expected, rtol=1e-12)
    rate = np.exp(0.3)
    exact = stats.poisson.logpmf([0, 1, 9], rate).sum()
    assert float(other.log_likelihood) == pytest.approx(exact, rel=1e-12)


def test_data_containers_and_one_draw() -> None:
    with pm.Model() as model:
        y = pm.Data("y", np.array([1.0, 2.0]))
        pm.Normal("z", pm.Normal("mu"), 1, observed=y)
    x, (z,) = simulate(compile_model(model), np.random.SeedSequence(1), 1)
    assert x.shape == (1, 1)
    assert z.shape == (1, 2)


def test_observed_variables_keep_their_order() -> None:
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Normal("near", x, 0.1, observed=np.zeros(2))
        pm.Poisson("count", pm.math.exp(5 + 0 * x), observed=np.zeros(3))
    compiled = compile_model(model)
    x, (near, count) = simulate(compiled, np.random.SeedSequence(1), 50)
    assert near.shape == (50, 2)
    assert np.abs(near - x).max() < 0.6
    assert count.shape == (50, 3)
    assert count.dtype.kind == "i"
    data = [np.array([0.2, 0.4]), np.array([140, 150, 160])]
    with jax.enable_x64(True):
        found = with_data(compiled, data).log_terms(jnp.array([0.3])).log_likelihood
    normal = stats.norm(0.3, 0.1).logpdf(data[0]).sum()
    assert float(found) == pytest.approx(normal + stats.poisson(np.exp(5)).logpmf(data[1]).sum())

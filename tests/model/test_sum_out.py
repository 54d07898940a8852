"""Discrete variables summed out of the density, against the sum over all configurations."""

import pickle

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from scipy import special, stats

import pymc_anneal as pma

from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model import summation as module
from pymc_anneal.model.sum_out import SummedModel, sum_by_elimination, sum_out
from tests.model.summed_models import MODELS, configurations, log_densities, log_sum, magnet


@cache
def summed(name: str) -> tuple[pma.CompiledModel, SummedModel]:
    whole = pma.compile_model(MODELS[name]())
    found = sum_by_elimination(whole)
    assert isinstance(found, SummedModel), whole.fallbacks
    return whole, found


@pytest.mark.quick_cases("mixture", "slab", "magnet")
@pytest.mark.parametrize("name", MODELS)
@double_precision
def test_density(name: str) -> None:
    whole, found = summed(name)
    assert not found.discrete
    x = found.sample_prior(np.random.SeedSequence(3), 3)
    terms = jax.jit(jax.vmap(found.log_terms))(x)
    total = np.asarray(terms.log_prior + terms.log_likelihood)
    for i in range(3 if found.ndim else 1):
        values = found.constrain(x[i : i + 1])
        # Bernoulli variables have log probabilities of 32 bits.
        assert total[i] == pytest.approx(log_sum(whole, values), abs=2e-6)


@pytest.mark.quick_cases("slab")
@pytest.mark.parametrize("name", ["mixture", "slab"])
@double_precision
def test_prior_and_likelihood_are_apart(name: str) -> None:
    """Integrated over the prior, the likelihood of the sum is that of the model."""
    whole, found = summed(name)
    x = found.sample_prior(np.random.SeedSequence(5), 4000)
    z = whole.sample_prior(np.random.SeedSequence(6), 4000)
    of_sum = np.exp(jax.jit(jax.vmap(found.log_terms))(x).log_likelihood)
    of_model = np.exp(jax.jit(jax.vmap(whole.log_terms))(z).log_likelihood)
    error = np.hypot(of_sum.std(), of_model.std()) / np.sqrt(4000)
    assert abs(of_sum.mean() - of_model.mean()) < 4 * error


@pytest.mark.quick_cases("occupancy")
@pytest.mark.parametrize("name", ["chain", "occupancy", "slab"])
@double_precision
def test_draws_come_from_the_conditional_distribution(name: str) -> None:
    whole, found = summed(name)
    x = np.repeat(found.sample_prior(np.random.SeedSequence(3), 1), 5000, axis=0)
    values = found.constrain(x)
    drawn = np.column_stack([values[v.name].reshape(5000, -1) for v in whole.discrete])
    rows = configurations(whole)
    share = special.softmax(log_densities(whole, values))
    kinds = {tuple(row): i for i, row in enumerate(rows)}
    counts = np.bincount([kinds[tuple(row)] for row in drawn], minlength=len(rows))
    assert not counts[share < 1e-12].any()
    often = share * 5000 > 5
    few = np.array([counts[~often].sum(), 5000 * share[~often].sum()])
    counts, expected = np.append(counts[often], few[0]), np.append(5000 * share[often], few[1])
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-4


def test_draws_are_those_of_their_positions() -> None:
    _, found = summed("mixture")
    x = found.sample_prior(np.random.SeedSequence(3), 300)
    once, again = found.constrain(x)["label"], found.constrain(x)["label"]
    np.testing.assert_array_equal(once, again)
    assert (found.constrain(x + 1e-9)["label"] != once).any()
    np.testing.assert_allclose(found.unconstrain(found.constrain(x)), x, atol=1e-9)


@double_precision
def test_gradient_where_a_value_is_impossible() -> None:
    """The derivative of ``log(p z)`` at z = 0 is infinite, and has no share in that of the sum."""
    _, found = summed("occupancy")
    x = found.sample_prior(np.random.SeedSequence(4), 1)[0]

    @jax.jit
    def log_density(y: jax.Array) -> jax.Array:
        return sum(found.log_terms(y))

    gradient, step = np.asarray(jax.jit(jax.grad(log_density))(x)), 1e-5
    for j, unit in enumerate(np.eye(2)):
        slope = (log_density(x + step * unit) - log_density(x - step * unit)) / (2 * step)
        assert gradient[j] == pytest.approx(float(slope), rel=1e-6)


@double_precision
def test_no_value_beyond_the_support_is_evaluated() -> None:
    """Two variables share a colour; at the last value of one the other's term is no number."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        two, three = pm.Bernoulli("two", 0.4), pm.Categorical("three", np.ones(3) / 3)
        pm.Normal("y", mu * pt.sqrt(1.5 - two), 1, observed=0.3)
        pm.Normal("z", mu + three, 1, observed=1.2)
    found = sum_by_elimination(pma.compile_model(model))
    assert isinstance(found, SummedModel)
    terms = jax.jit(jax.value_and_grad(lambda x: sum(found.log_terms(x))))
    assert all(np.isfinite(part).all() for part in terms(jnp.array([0.7])))


@pytest.mark.slow
def test_a_missing_colour_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours in one colour never take different values: the check of the sum refuses it."""
    monkeypatch.setattr(module, "colour_apart", lambda depends: np.zeros(depends.shape[1], int))
    whole = pma.compile_model(magnet())
    assert sum_out(whole) is whole
    assert "not summed out" in whole.fallbacks[0]


def test_pickle() -> None:
    _, found = summed("mixture")
    again = pickle.loads(pickle.dumps(found))
    x = found.sample_prior(np.random.SeedSequence(3), 4)
    with jax.enable_x64(True):
        found_terms, same_terms = (jax.jit(jax.vmap(c.log_terms)) for c in (found, again))
        np.testing.assert_array_equal(same_terms(jnp.asarray(x)), found_terms(jnp.asarray(x)))
    np.testing.assert_array_equal(again.constrain(x)["label"], found.constrain(x)["label"])


def test_what_is_left() -> None:
    """Indicators of one regression stay; those beside them are summed out."""
    with pm.Model() as model:
        on = pm.Bernoulli("on", 0.3, shape=3)
        slope = pm.Normal("slope", 0, 1, shape=3)
        odd = pm.Bernoulli("odd", 0.1, shape=6)
        design = np.random.default_rng(0).normal(size=(6, 3))
        mean = pt.dot(design, on * slope)
        pm.Normal("y", mean, pt.switch(odd, 5.0, 1.0), observed=np.arange(6.0))
    found = sum_by_elimination(pma.compile_model(model))
    assert [v.name for v in found.discrete] == ["on"]
    assert [v.name for v in found.taken_out] == ["odd"]
    assert "'odd' (0 to 1)" in found.notes[-1]


def test_evaluations_of_a_sum() -> None:
    """One for each value of a colour: levels take fewer draws of a density that takes longer."""
    with pm.Model() as model:
        k = pm.DiscreteUniform("k", 0, 400)
        pm.Normal("y", k + pm.Normal("x"), observed=3.0)
    compiled = pma.compile_model(model)
    assert (compiled.evaluations, sum_out(compiled).evaluations) == (1, 401)


def test_nothing_to_sum() -> None:
    with pm.Model() as model:
        pm.DiscreteWeibull("k", 0.5, 1.0)  # no end, and none that is known to do
        pm.Normal("x")
    compiled = pma.compile_model(model)
    assert sum_out(compiled) is compiled
    assert not compiled.fallbacks

"""Discrete variables summed out by configurations, once what is normal given them is integrated."""

import gc
import pickle
import weakref

from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from scipy import special, stats

from pymc_anneal.model import sum_out as module
from pymc_anneal.model.compile import compile_model
from pymc_anneal.model.integrate_out import IntegratedModel, integrate_out
from pymc_anneal.model.sum_out import SummedModel, sum_out
from pymc_anneal.model.summation import ConfigurationSum, Summation
from tests.model.summed_models import configurations
from tests.model.test_integrate_out import by_dense_matrices, centred, evaluate

RNG = np.random.default_rng(3)
DESIGN = RNG.normal(size=(12, 3))
Y = 2 * DESIGN[:, 0] + RNG.normal(size=12)


def selection():
    """Coefficients that are switched on and off, with a scale and a share to learn."""
    on = pm.Bernoulli("on", pm.Beta("share", 1, 2), shape=3)
    slope = pm.Normal("slope", 0, 2, shape=3)
    pm.Normal("y", pt.dot(DESIGN, on * slope), pm.HalfNormal("noise", 2), observed=Y)


def spike():
    """Widths of the coefficients' prior that depend on indicators."""
    on = pm.Bernoulli("on", 0.3, shape=3)
    slope = pm.Normal("slope", 0, pt.switch(on, 2.0, 0.1), shape=3)
    pm.Normal("y", pt.dot(DESIGN, slope), pm.HalfNormal("noise", 2), observed=Y)


def change():
    """A change point beside two levels."""
    when = pm.DiscreteUniform("when", 3, 8)
    level = pm.Normal("level", 0, 2, shape=2)
    mean = pt.switch(np.arange(12) < when, level[0], level[1])
    pm.Normal("y", mean, pm.HalfNormal("noise", 2), observed=Y)


def scales():
    """A scale whose own prior depends on what is summed out, and labels of another variable."""
    label = pm.Categorical("label", [0.2, 0.5, 0.3])
    flip = pm.Bernoulli("flip", 0.4)
    noise = pm.HalfNormal("noise", pt.switch(flip, 1.0, 3.0))
    level = pm.Normal("level", 0, 2, shape=3)
    pm.Normal("y", level[label] + DESIGN[:, 0], noise, observed=Y)


KINDS = {f.__name__: f for f in (selection, spike, change, scales)}


@cache
def build(kind):
    with pm.Model() as model:
        KINDS[kind]()
    return compile_model(model)


def is_by_configurations(model):
    return isinstance(model, SummedModel) and isinstance(model._summation, ConfigurationSum)


@cache
def summed(kind):
    found = sum_out(build(kind))
    assert is_by_configurations(found), build(kind).fallbacks
    return found


def log_masses(kind, x):
    """Return the log mass of each configuration beside each row of x, shape ``(c, n)``."""
    compiled, found = build(kind), summed(kind)
    all_of_them = configurations(compiled)
    rows = np.concatenate([found._join(x, np.tile(s, (len(x), 1))) for s in all_of_them])
    return by_dense_matrices(compiled, found._full, rows)[0].reshape(len(all_of_them), len(x))


@pytest.mark.quick_cases("selection-100", "selection-1", "spike-3", "change-1", "scales-3")
@pytest.mark.parametrize("at_once", [100, 3, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_density_and_gradient(kind, at_once):
    found = summed(kind)
    own = replace(found._summation, at_once=at_once)

    def total(x):
        return sum(own.evaluate(x))

    x = found.sample_prior(np.random.SeedSequence(3), 3)
    step = 1e-5 * np.random.default_rng(4).normal(size=found.ndim)
    rows = np.concatenate([x, x + step, x - step])
    value, slope = (
        a.reshape(3, 3, *a.shape[1:]) for a in evaluate(jax.value_and_grad(total), rows)
    )
    # Bernoulli variables have log probabilities of 32 bits.
    np.testing.assert_allclose(value[0], special.logsumexp(log_masses(kind, x), 0), atol=2e-6)
    np.testing.assert_allclose(2 * slope[0] @ step, value[1] - value[2], rtol=1e-3, atol=1e-8)


@pytest.mark.parametrize("kind", ["selection", "scales"])
def test_the_prior_is_that_of_what_is_left(kind):
    found = summed(kind)
    x = found.sample_prior(np.random.SeedSequence(3), 5)
    values = found.constrain(x)
    if kind == "selection":
        noise = stats.halfnorm.logpdf(values["noise"], scale=2) + np.log(values["noise"])
        share = values["share"]
        wanted = noise + stats.beta.logpdf(share, 1, 2) + np.log(share * (1 - share))
    else:
        noise = values["noise"]
        mixed = 0.4 * stats.halfnorm.pdf(noise) + 0.6 * stats.halfnorm.pdf(noise, scale=3)
        wanted = np.log(mixed * noise)
    found_prior = evaluate(lambda y: found.log_terms(y).log_prior, x)
    np.testing.assert_allclose(found_prior, wanted, atol=1e-6)


def test_draws_have_the_probabilities_of_the_configurations():
    found, draws = summed("selection"), 4000
    x = found.sample_prior(np.random.SeedSequence(8), 2)[1:]
    log_mass = log_masses("selection", x)[:, 0]
    on = found.constrain(np.repeat(x, draws, axis=0) + 1e-9 * np.arange(draws)[:, None])["on"]
    assert on.dtype == np.int64
    counts = np.bincount(on @ [4, 2, 1], minlength=8)
    probability = np.exp(log_mass - special.logsumexp(log_mass))
    chosen = draws * probability > 5
    assert chosen.sum() > 2
    scores = (counts - draws * probability)[chosen] / np.sqrt(draws * probability)[chosen]
    assert stats.chi2.sf((scores**2).sum(), chosen.sum() - 1) > 1e-4


def test_pickled():
    found = summed("change")
    again = pickle.loads(pickle.dumps(found))
    x = found.sample_prior(np.random.SeedSequence(5), 2)
    assert found.log_terms(x[0]) == again.log_terms(x[0])
    for name, value in found.constrain(x).items():
        np.testing.assert_array_equal(value, again.constrain(x)[name])
    np.testing.assert_allclose(found.unconstrain(found.constrain(x)), x)


def test_what_is_taken_out_is_named():
    found = summed("change")
    assert {v.name for v in found.taken_out} == {"level", "when"}
    assert found.evaluations == 6
    assert found.notes[-2:] == (
        "Integrated out exactly: 'level' (2).",
        "Summed out exactly: 'when' (3 to 8).",
    )


def test_the_term_that_is_not_a_number_is_named():
    with pm.Model() as model:
        on, scale = pm.Bernoulli("on", 0.5, shape=2), pm.HalfNormal("scale", 1)
        pm.Normal("y", pm.Normal("b", shape=2) * on, 1, observed=[0.3, 0.4])
        pm.Potential("odd", pt.switch(on[0] * scale > 20, np.nan, 0.0))
    found = sum_out(compile_model(model))
    assert is_by_configurations(found)
    message = found.explain_nan(np.array([np.log(30.0)]))
    assert "['odd']" in message
    assert "on = [1 " in message


@pytest.mark.parametrize("bound", ["_MOST_CONFIGURATIONS", "_MOST_WORK"])
def test_too_many_configurations_stay(bound, monkeypatch):
    monkeypatch.setattr(module, bound, 3)
    with pm.Model() as model:
        selection()
    found = sum_out(compile_model(model))
    assert isinstance(found, IntegratedModel)
    assert [v.name for v in found.discrete] == ["on"]
    x = found.sample_prior(np.random.SeedSequence(3), 3)
    assert set(found.constrain(x)) == {"on", "share", "slope", "noise"}


def test_where_nothing_is_normal_variables_are_eliminated():
    with pm.Model() as model:
        on = pm.Bernoulli("on", 0.3, shape=3)
        pm.Poisson("y", pm.Gamma("rate", 2, 1) * (1 + on), observed=[1, 2, 6])
    found = sum_out(compile_model(model))
    assert isinstance(found, SummedModel)
    assert isinstance(found._summation, Summation)


@pytest.mark.quick_cases("selection")
@pytest.mark.parametrize("kind", [selection, centred])
def test_a_model_is_forgotten(kind):
    with pm.Model() as model:
        kind()
    compiled = compile_model(model)
    dead, reduced = weakref.ref(compiled), integrate_out(sum_out(compiled))
    assert reduced.taken_out
    del compiled, model
    gc.collect()
    assert dead() is None


def test_counts_without_an_end_have_no_configurations():
    with pm.Model() as model:
        number = pm.Poisson("number", 3.0)
        pm.Normal("y", pm.Normal("b") * number, 1, observed=Y)
    found = sum_out(compile_model(model))
    assert not is_by_configurations(found)

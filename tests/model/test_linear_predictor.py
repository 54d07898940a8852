"""Latent normal variables are found where the data depend on them through a linear predictor."""

import functools

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.model.linear_predictor import LinearPredictor, linear_predictor
from pymc_anneal.model.location_scale import location_scale_model
from pymc_anneal.pipeline.model_target import ModelTarget
from tests.model import latent_normal_models as models


@functools.cache
def non_centred(build: Callable[[], pm.Model]) -> pma.CompiledModel:
    compiled = pma.compile_model(build())
    coordinates = location_scale_model(compiled)
    return compiled if coordinates is None else coordinates.non_centred


def predictor_of(build: Callable[[], pm.Model]) -> tuple[pma.CompiledModel, LinearPredictor]:
    compiled = non_centred(build)
    found = linear_predictor(compiled)
    assert found is not None
    return compiled, found


@pytest.mark.parametrize(
    ("build", "names", "size"),
    [
        (models.groups, {"mu", "mean"}, 6),
        (models.counts, {"z", "slope"}, 6),
        (models.walk, {"level"}, 6),
        (models.missing, {"x"}, 6),
        (models.outliers, {"u"}, 1),
    ],
)
def test_latent_variables_are_found(build, names, size) -> None:
    _, found = predictor_of(build)
    assert set(found.names) == names
    assert found.size == size


@pytest.mark.parametrize(
    "build", [models.curved, models.joint, models.in_scale, models.in_potential, models.heavy]
)
def test_other_structures_are_left_alone(build) -> None:
    assert linear_predictor(non_centred(build)) is None


def test_discrete_models_are_left_alone() -> None:
    with pm.Model() as model:
        kind = pm.Bernoulli("kind", 0.5)
        pm.Normal("y", pm.Normal("u", 0, 1) + kind, 1, observed=0.3)
    assert linear_predictor(pma.compile_model(model)) is None


def test_prior_and_predictor() -> None:
    compiled, found = predictor_of(models.counts)
    x = compiled.sample_prior(np.random.SeedSequence(1), 1)
    values = {name: v[0] for name, v in compiled.constrain(x).items()}
    u = np.concatenate([np.atleast_1d(values[name]) for name in found.names])
    np.testing.assert_allclose(x[0, found.columns], u)
    expected = {"z": (np.zeros(6), np.ones(6)), "slope": ([0.2], [0.5])}
    for row, value in zip((0, 1), (found.mean, found.scale), strict=True):
        np.testing.assert_allclose(value, np.concatenate([expected[n][row] for n in found.names]))
    eta = 0.5 + values["slope"] * models.COVARIATE + values["scale"] * values["z"]
    np.testing.assert_allclose(found.predict(jnp.asarray(x[0]), jnp.asarray(u)), eta)
    log_likelihood = stats.poisson.logpmf(models.COUNTS, np.exp(eta)).sum()
    assert float(found.log_likelihood(jnp.asarray(x[0]), jnp.asarray(eta))) == pytest.approx(
        log_likelihood
    )


def test_only_what_depends_on_the_predictor_counts() -> None:
    compiled, found = predictor_of(models.walk)
    x = compiled.sample_prior(np.random.SeedSequence(1), 1)
    values = compiled.constrain(x)
    eta = found.predict(jnp.asarray(x[0]), jnp.asarray(x[0, found.columns]))
    np.testing.assert_allclose(eta, values["level"][0])
    expected = stats.norm.logpdf(models.RESPONSE, values["level"][0], values["sigma"][0]).sum()
    assert float(found.log_likelihood(jnp.asarray(x[0]), eta)) == pytest.approx(expected)


def test_data_are_those_of_compilation() -> None:
    model = models.counts()
    compiled = pma.compile_model(model)
    with model:
        pm.set_data({"offset": 7.0})
    found = linear_predictor(compiled)
    assert found is not None
    eta = found.predict(jnp.zeros(compiled.ndim), jnp.zeros(len(found.columns)))
    np.testing.assert_allclose(eta, 0.5)


@pytest.mark.parametrize(("build", "expected"), [(models.counts, True), (models.outliers, False)])
def test_concave_likelihoods_are_told_from_others(build, expected) -> None:
    assert predictor_of(build)[1].log_concave is expected


def test_what_is_censored_has_no_predictor() -> None:
    with pm.Model() as model:
        drawn = pm.Normal.dist(pm.Normal("x", 0, 1, shape=3), 1)
        pm.Censored("y", drawn, lower=0, upper=None, observed=[0.0, 0.5, 1.0])
    compiled = pma.compile_model(model)
    assert linear_predictor(compiled) is None
    assert not compiled.fallbacks


def test_a_likelihood_that_cannot_be_translated_says_so(monkeypatch) -> None:
    def refuse(*arguments):
        raise NotImplementedError("no JAX form")

    compiled = pma.compile_model(models.counts())
    monkeypatch.setattr("pymc_anneal.model.linear_predictor.jaxify", refuse)
    assert linear_predictor(compiled) is None
    (note,) = compiled.fallbacks
    assert "Latent normal variables are not looked for" in note
    assert "NotImplementedError: no JAX form" in note
    assert note in ModelTarget(compiled).attrs["notes"]

"""Coordinates of latent normal variables given the data: a bijection, and the same density."""

import functools
import pickle

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.model.conditional_normal import ConditionalModel, conditional_coordinates
from pymc_anneal.model.location_scale import location_scale_model
from tests.model import latent_normal_models as models

# Names of the latent variables of these models.
LATENT = {"mu", "mean", "level", "x"}
MODELS = [models.groups, models.counts, models.walk, models.missing, models.outliers]


@functools.cache
def conditional(build: Callable[[], pm.Model]) -> tuple[pma.CompiledModel, ConditionalModel]:
    """Return a model in non-centred coordinates, and in those given the data."""
    compiled = pma.compile_model(build())
    choice = location_scale_model(compiled)
    base = compiled if choice is None else choice.non_centred
    coordinates = conditional_coordinates(base)
    assert coordinates is not None
    return base, coordinates.at(coordinates.centre(base.sample_prior(np.random.SeedSequence(5), 9)))


def evaluate(model: pma.CompiledModel, rows: np.ndarray) -> LogTerms:
    """Return the log densities of rows, shape ``(n,)`` each."""
    terms: LogTerms = jax.jit(jax.vmap(model.log_terms))(rows)
    return terms


def jacobian(model: ConditionalModel, y: np.ndarray) -> np.ndarray:
    """Return the derivatives of the map to the model by central differences."""
    step = 1e-5 * np.eye(model.ndim)
    return (model.to_model(y + step) - model.to_model(y - step)).T / 2e-5


@pytest.mark.quick_cases("outliers", "missing", "counts")
@pytest.mark.parametrize("build", MODELS)
def test_the_density_is_that_of_the_model(build) -> None:
    base, model = conditional(build)
    rows = model.sample_prior(np.random.SeedSequence(2), 4)
    found, expected = evaluate(model, rows), evaluate(base, model.to_model(rows))
    np.testing.assert_allclose(found.log_likelihood, expected.log_likelihood, rtol=1e-6)
    log_volume = np.array([np.linalg.slogdet(jacobian(model, y))[1] for y in rows])
    np.testing.assert_allclose(found.log_prior, expected.log_prior + log_volume, atol=1e-5)


@pytest.mark.parametrize("build", MODELS)
def test_maps_are_inverse(build) -> None:
    base, model = conditional(build)
    x = base.sample_prior(np.random.SeedSequence(1), 5)
    np.testing.assert_allclose(model.to_model(model.from_model(x)), x, rtol=1e-7, atol=1e-7)
    values = base.constrain(x)
    np.testing.assert_allclose(model.unconstrain(values), model.from_model(x), atol=1e-6)
    for name, value in model.constrain(model.from_model(x)).items():
        np.testing.assert_allclose(value, values[name], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("build", [models.groups, models.walk, models.missing, models.offset])
def test_a_normal_likelihood_leaves_nothing(build) -> None:
    """Given the rest the latent variables are standard normal, from any centre."""
    _, model = conditional(build)
    places = np.concatenate(
        [np.arange(v.start, v.stop) for v in model.variables if v.name in LATENT]
    )
    y = model.sample_prior(np.random.SeedSequence(3), 1)[0]
    e = np.random.default_rng(0).normal(size=(5, len(places)))
    rows = np.tile(y, (5, 1))
    rows[:, places] = e
    log_density = np.asarray(evaluate(model, rows).log_posterior)
    np.testing.assert_allclose(np.diff(log_density), np.diff(-0.5 * (e**2).sum(axis=1)), rtol=1e-6)


def test_an_overflowing_expansion_is_replaced_by_the_prior() -> None:
    _, model = conditional(models.counts)
    y = np.zeros((1, model.ndim))
    scale = next(v for v in model.variables if v.name == "scale")
    y[0, scale.start] = 36.0  # the scale is 1e280
    x = model.to_model(y)
    assert np.isfinite(x).all()
    np.testing.assert_allclose(model.from_model(x), y, atol=1e-6)


def test_other_centres_share_the_program() -> None:
    compiled = pma.compile_model(models.counts())
    coordinates = conditional_coordinates(compiled)
    assert coordinates is not None
    first, second = coordinates.at(np.zeros(6)), coordinates.at(np.ones(6))
    y = np.full((1, compiled.ndim), 0.3)
    assert not np.allclose(first.to_model(y), second.to_model(y))
    structures = [jax.tree.structure(m.log_terms) for m in (first, second)]
    assert structures[0] == structures[1]


def test_the_density_can_be_sent_to_another_process() -> None:
    _, model = conditional(models.groups)
    y = jnp.full(model.ndim, 0.2)
    again = pickle.loads(pickle.dumps(model.log_terms))
    np.testing.assert_allclose(jax.jit(again)(y), jax.jit(model.log_terms)(y), rtol=1e-12)


def test_pointwise_log_likelihood() -> None:
    base, model = conditional(models.counts)
    x = base.sample_prior(np.random.SeedSequence(1), 3)
    found = model.pointwise_log_likelihood(model.from_model(x))["y"]
    np.testing.assert_allclose(found, base.pointwise_log_likelihood(x)["y"], rtol=1e-6)


def test_costly_maps_are_not_used() -> None:
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=150)
        pm.Normal("y", b * pm.HalfNormal("scale", 1), 1, observed=np.zeros(150))
    assert conditional_coordinates(pma.compile_model(model)) is None


def test_mixtures_are_left_alone() -> None:
    """Latent variables may have several modes there."""
    with pm.Model() as model:
        u = pm.Normal("u", 0, 3)
        parts = [pm.Normal.dist(u, 1), pm.Normal.dist(-u, 1)]
        pm.Mixture("y", [0.4, 0.6], parts, observed=models.RESPONSE)
    assert conditional_coordinates(pma.compile_model(model)) is None


@pytest.mark.parametrize(("build", "count"), [(models.counts, 7), (models.outliers, 0)])
def test_dimensions_with_one_mode(build, count) -> None:
    base, model = conditional(build)
    assert len(model.unimodal_columns) == count
    assert len(base.unimodal_columns) == 0

"""Coordinates of location-scale variables: the same density, with its Jacobian."""

import warnings

import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.model.family import ModelFamily
from pymc_anneal.model.location_scale import LocationScaleModel, location_scale_model
from pymc_anneal.pipeline.model_target import ModelTarget

SIZE = 3


def hierarchical(family: str = "Normal") -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu", 1, 2)
        tau = pm.HalfNormal("tau", 2)
        parameters = {"nu": 4} if family == "StudentT" else {}
        names = {"Laplace": "b", "Cauchy": "beta", "Logistic": "s", "Gumbel": "beta"}
        parameters[names.get(family, "sigma")] = tau
        parameters["alpha" if family == "Cauchy" else "mu"] = mu
        x = getattr(pm, family)("x", **parameters, shape=SIZE)
        pm.Normal("y", x, 1.5, observed=np.array([0.5, 1.0, -2.0]))
    return model


@pytest.fixture(scope="module")
def normal() -> tuple[pma.CompiledModel, LocationScaleModel]:
    compiled = pma.compile_model(hierarchical())
    return compiled, LocationScaleModel(compiled)


@pytest.mark.parametrize("weight", [np.zeros(SIZE), np.ones(SIZE), np.array([0.0, 0.5, 1.0])])
def test_the_density_is_that_of_the_model(normal, weight) -> None:
    compare_densities(*normal, weight)


@pytest.mark.parametrize("family", ["Laplace", "Cauchy", "Logistic", "Gumbel", "StudentT"])
def test_families(family) -> None:
    compiled = pma.compile_model(hierarchical(family))
    compare_densities(compiled, LocationScaleModel(compiled), np.array([0.0, 0.5, 1.0]))


def compare_densities(
    compiled: pma.CompiledModel, model: LocationScaleModel, weight: np.ndarray
) -> None:
    """Compare prior and likelihood in both coordinates, with dx/dz = sigma^(1 - w)."""
    moved = model.at(weight)
    position = moved.sample_prior(np.random.SeedSequence(1), 4)
    values = moved.constrain(position)
    np.testing.assert_allclose(moved.unconstrain(values), position, atol=1e-9)
    volume = ((1 - weight) * np.log(values["tau"][:, None])).sum(axis=1)
    for z, x, log_volume in zip(position, compiled.unconstrain(values), volume, strict=True):
        found, own = moved.log_terms(jnp.asarray(z)), compiled.log_terms(jnp.asarray(x))
        assert float(found.log_prior) == pytest.approx(float(own.log_prior) + log_volume, abs=1e-8)
        assert float(found.log_likelihood) == pytest.approx(float(own.log_likelihood), abs=1e-8)


@pytest.mark.parametrize("weight", [np.full(SIZE, 0.3), np.array([0.0, 0.7, 1.0])])
def test_moved_positions_have_the_same_values(normal, weight) -> None:
    _, model = normal
    position = model.non_centred.sample_prior(np.random.SeedSequence(1), 5)
    moved = model.at(weight)
    found = moved.constrain(model.move(position, weight, moved.variables))
    for name, value in model.non_centred.constrain(position).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-7, err_msg=name)


def walks(batch: tuple[int, ...] = ()) -> pm.Model:
    with pm.Model() as model:
        drift, tau = pm.Normal("drift", 0, 0.3), pm.HalfNormal("tau", 2, shape=batch)
        start = pm.Normal.dist(1, 3)
        x = pm.GaussianRandomWalk("x", drift, tau, init_dist=start, shape=(*batch, SIZE + 1))
        pm.Normal("y", x, 1.5, observed=np.ones((*batch, SIZE + 1)))
    return model


@pytest.mark.parametrize("batch", [(), (2,)])
def test_random_walks(batch) -> None:
    """The Jacobian of a walk is that of its increments; the first one has a known scale."""
    compiled = pma.compile_model(walks(batch))
    model = LocationScaleModel(compiled)
    moved = model.non_centred
    position = moved.sample_prior(np.random.SeedSequence(1), 4)
    values = moved.constrain(position)
    tau = values["tau"].reshape(4, -1, 1)
    first, rest = values["x"].reshape(4, -1, SIZE + 1)[..., :1], np.diff(values["x"], axis=-1)
    rest = rest.reshape(4, -1, SIZE)
    standard = np.concatenate([(first - 1) / 3, (rest - values["drift"][:, None, None]) / tau], -1)
    np.testing.assert_allclose(position[:, model.columns], standard.reshape(4, -1), atol=1e-9)
    volume = (np.log(3) + SIZE * np.log(tau[..., 0])).sum(axis=1)
    for z, x, log_volume in zip(position, compiled.unconstrain(values), volume, strict=True):
        found, own = moved.log_terms(jnp.asarray(z)), compiled.log_terms(jnp.asarray(x))
        assert float(found.log_prior) == pytest.approx(float(own.log_prior) + log_volume, abs=1e-8)
        assert float(found.log_likelihood) == pytest.approx(float(own.log_likelihood), abs=1e-8)
    location, scale = model.location_and_scale(position)
    increments = np.concatenate([first, rest], axis=-1).reshape(4, -1)
    np.testing.assert_allclose(location + scale * standard.reshape(4, -1), increments)


def test_a_walk_with_weight_one_is_itself() -> None:
    compiled = pma.compile_model(walks())
    model = LocationScaleModel(compiled)
    own = model.at(np.ones(model.size))
    position = compiled.sample_prior(np.random.SeedSequence(1), 3)
    moved = own.unconstrain(compiled.constrain(position))
    for x, z in zip(position, moved, strict=True):
        found, expected = own.log_terms(jnp.asarray(z)), compiled.log_terms(jnp.asarray(x))
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_weights_within_a_walk_do_not_differ() -> None:
    model = LocationScaleModel(pma.compile_model(walks()))
    with pytest.raises(ValueError, match="weights of 'x', a random walk, have to be all 0 or 1"):
        model.at(np.array([0.0, 1.0, 0.0, 0.0]))


def test_walks_of_other_increments_have_no_choice() -> None:
    with pm.Model() as model:
        rate = pm.HalfNormal("rate", 1)
        steps = {"innovation_dist": pm.Exponential.dist(rate), "steps": 3}
        pm.RandomWalk("x", init_dist=pm.Normal.dist(0, 1), **steps)
        pm.Normal("y", observed=0.0)
    assert location_scale_model(pma.compile_model(model)) is None


def test_non_centred_prior_draws_are_standard(normal) -> None:
    _, model = normal
    draws = model.non_centred.sample_prior(np.random.SeedSequence(2), 4000)[:, model.columns]
    np.testing.assert_allclose(draws.mean(axis=0), 0, atol=0.07)
    np.testing.assert_allclose(draws.std(axis=0), 1, atol=0.05)


def test_location_and_scale(normal) -> None:
    _, model = normal
    position = model.non_centred.sample_prior(np.random.SeedSequence(3), 5)
    values = model.non_centred.constrain(position)
    location, scale = model.location_and_scale(position)
    np.testing.assert_allclose(location, np.repeat(values["mu"][:, None], SIZE, axis=1))
    np.testing.assert_allclose(scale, np.repeat(values["tau"][:, None], SIZE, axis=1))


def test_the_data_are_those_of_the_compiled_model() -> None:
    """Data that change in between do not get into the other coordinates."""
    with pm.Model() as model:
        y = pm.Data("y", np.array([1.0]))
        x = pm.Normal("x", 0, pm.HalfNormal("tau", 1))
        pm.Normal("observed", x, 1.0, observed=y)
    compiled = pma.compile_model(model)
    with model:
        pm.set_data({"y": np.array([9.0])})
    moved = LocationScaleModel(compiled).non_centred
    assert moved.observed_data()["observed"] == 1.0
    assert model["y"].get_value() == 9.0
    at_zero = float(moved.log_terms(jnp.zeros(2)).log_likelihood)
    assert at_zero == pytest.approx(float(pm.logp(pm.Normal.dist(0, 1), 1.0).eval()))


def constant_parameters() -> pm.Model:
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("x", 0, 1), 1, observed=0.0)
    return model


def with_a_transform() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu")
        x = pm.Normal("x", mu, 1, shape=2, transform=pm.distributions.transforms.ordered)
        pm.Normal("y", x, 1, observed=np.zeros(2))
    return model


def discrete() -> pm.Model:
    with pm.Model() as model:
        x = pm.Normal("x", pm.Normal("mu"), 1)
        pm.Normal("y", x + pm.Bernoulli("k", 0.5), 1, observed=0.0)
    return model


@pytest.mark.parametrize("build", [constant_parameters, with_a_transform, discrete])
def test_models_without_a_choice(build) -> None:
    assert location_scale_model(pma.compile_model(build())) is None


def test_members_of_a_family_keep_their_one_compilation() -> None:
    with pm.Model() as model:
        y = pm.Data("y", np.array([1.0]))
        x = pm.Normal("x", 0, pm.HalfNormal("tau", 1))
        pm.Normal("observed", x, 1.0, observed=y)
    member = ModelFamily(pma.compile_model(model), ("y",)).member({"y": np.array([2.0])})
    assert location_scale_model(member) is None


def test_warnings_of_the_model_are_given_once() -> None:
    with pm.Model() as model:
        x = pm.Normal("x", 0, pm.HalfNormal("tau", 1), shape=2)
        pm.Normal("y", x, 1, observed=np.zeros(2))
        pm.Deterministic("above", x[x > 0])  # a shape that depends on values
    with pytest.warns(UserWarning, match="'above' is left out"):
        compiled = pma.compile_model(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert location_scale_model(compiled) is not None


def test_a_model_that_pymc_does_not_rewrite_says_so(monkeypatch) -> None:
    def refuse(*arguments):
        raise NotImplementedError("no clone\nof this model")

    compiled = pma.compile_model(hierarchical())
    monkeypatch.setattr(LocationScaleModel, "non_centred", property(refuse))
    assert location_scale_model(compiled) is location_scale_model(compiled) is None
    notes = ModelTarget(compiled).attrs["notes"]
    assert notes.count("NotImplementedError: no clone") == 1
    assert "keep the coordinates of the model" in notes

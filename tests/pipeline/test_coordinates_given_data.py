"""Coordinates of latent normal variables given the data, where other ones leave a posterior far."""

import functools

import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.base.meter import Meter
from pymc_anneal.model.conditional_normal import (
    ConditionalMap,
    ConditionalModel,
    conditional_coordinates,
)
from pymc_anneal.pipeline import start_from_survey
from pymc_anneal.pipeline.coordinates_given_data import largest_distance

RESPONSE = np.array([6.0, -5.0, 4.0, 0.3, -0.2, 0.5, 0.1, -0.7, 0.4, 0.0, -0.3, 0.2])
# Data from which the prior is not far.
VAGUE = np.array([1.0, -0.5, 0.3])
GLOBAL_SCALE = 0.3


def horseshoe(response: np.ndarray = RESPONSE) -> pm.Model:
    """Return normal means with a horseshoe prior (Carvalho, Polson & Scott 2010)."""
    with pm.Model() as model:
        tau = pm.HalfCauchy("tau", GLOBAL_SCALE)
        local = pm.HalfCauchy("local", 1, shape=len(response))
        z = pm.Normal("z", 0, 1, shape=len(response))
        pm.Deterministic("mean", tau * local * z)
        pm.Normal("y", tau * local * z, 1, observed=response)
    return model


@functools.cache
def quadrature(response: tuple[float, ...]) -> tuple[float, np.ndarray]:
    """Return log evidence and posterior means, integrated over the scales on grids of scores."""
    score = np.linspace(-8, 8, 2001)
    prior = stats.norm.pdf(score) * (score[1] - score[0])
    scale = np.tan(np.pi / 2 * stats.norm.cdf(score))
    log_z, means = np.empty(len(score)), np.empty((len(score), len(response)))
    for i, tau in enumerate(GLOBAL_SCALE * scale):
        variance = 1 + (tau * scale[:, None]) ** 2
        density = prior[:, None] * stats.norm.pdf(response, 0, np.sqrt(variance))
        log_z[i] = np.log(density.sum(axis=0)).sum()
        shrunk = (1 - 1 / variance) * np.array(response)
        means[i] = (density * shrunk).sum(axis=0) / density.sum(axis=0)
    posterior = prior * np.exp(log_z - log_z.max())
    log_evidence = float(np.log(posterior.sum()) + log_z.max())
    return log_evidence, posterior @ means / posterior.sum()


def log_evidence_of(response: np.ndarray) -> float:
    return quadrature(tuple(response))[0]


@functools.cache
def run(seed: int = 1):
    """Return a run with default settings, and the model in the coordinates chosen."""
    chosen = []
    original = start_from_survey.choose_coordinates

    def record(*arguments):
        target, surveyed = original(*arguments)
        chosen.append(target.compiled)
        return target, surveyed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(start_from_survey, "choose_coordinates", record)
        result = pma.sample_ais(model=horseshoe(), random_seed=seed, progressbar=False)
    return result, chosen[0]


@pytest.mark.slow
def test_a_horseshoe_is_near_to_normal_given_the_data() -> None:
    result, chosen = run()
    assert isinstance(chosen, ConditionalModel)
    found = pma.log_evidence(result)
    assert abs(found.log_evidence - log_evidence_of(RESPONSE)) < 4 * found.mcse
    assert found.mcse < 0.03
    assert found.verdict.trusted


@pytest.mark.slow
def test_draws_are_those_of_the_model() -> None:
    posterior = run()[0]["posterior"]
    assert set(posterior.data_vars) == {"tau", "local", "z", "mean"}
    mean = posterior["mean"].mean(("chain", "draw")).values
    # Standard deviations are at most 1.2, and there are more than a thousand effective draws.
    np.testing.assert_allclose(mean, quadrature(tuple(RESPONSE))[1], atol=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 10))
def test_every_seed_is_right(seed) -> None:
    found = pma.log_evidence(run(seed)[0])
    assert abs(found.log_evidence - log_evidence_of(RESPONSE)) < 4 * found.mcse
    assert found.verdict.trusted


@pytest.mark.slow
def test_posteriors_near_to_normal_keep_their_coordinates(monkeypatch) -> None:
    monkeypatch.setattr(
        "pymc_anneal.pipeline.coordinates_given_data.conditional_coordinates", _not_wanted
    )
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("b", 0, 1, shape=3), 1, observed=[0.5, -0.2, 0.4])
    result = pma.sample_ais(model=model, random_seed=1, progressbar=False)
    assert pma.log_evidence(result).verdict.trusted


def differences(pairs: int) -> tuple[pm.Model, float]:
    """Differences of exponentials: the larger they are, the narrower the posterior."""
    with pm.Model() as model:
        a, b = (pm.Normal(name, 0, 2, shape=pairs) for name in "ab")
        pm.Normal("y", pm.math.exp(a) - pm.math.exp(b), 0.1, observed=np.zeros(pairs))
    grid = np.linspace(-9, 9, 6001)
    prior = stats.norm(0, 2).pdf(grid)
    mass = [(prior * stats.norm(0, 0.1).pdf(np.exp(a) - np.exp(grid))).sum() for a in grid]
    step = grid[1] - grid[0]
    return model, float(pairs * np.log((prior * mass).sum() * step**2))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_coordinates_in_which_no_step_size_is_found_are_not_taken(seed: int, monkeypatch) -> None:
    """Of the first seed, one move there took 37,000 gradients: the run had no end."""
    # Evaluations go on to count in the coordinates that stay.
    monkeypatch.setattr(Meter, "change_density", lambda *_: pytest.fail("The density stays."))
    model, exact = differences(4)
    idata = pma.sample_ais(model=model, random_seed=seed, progressbar=False, warnings=False)
    found = pma.log_evidence(idata)
    assert abs(found.log_evidence - exact) < 4 * found.mcse
    assert float(idata["evidence"]["evaluations"]) < 3e7


@pytest.mark.parametrize(
    ("work", "distance", "limit"), [(1000, 10.0, 5.0), (1000, 4.0, 3.0), (1_000_000, 100.0, 1.0)]
)
def test_large_maps_are_for_runs_of_one_step(work, distance, limit) -> None:
    assert largest_distance(work, distance) == limit


def _not_wanted(compiled: object) -> None:
    raise AssertionError("The posterior is near to normal.")


def conditional_horseshoe() -> ConditionalModel:
    compiled = pma.compile_model(horseshoe(VAGUE))
    coordinates = conditional_coordinates(compiled)
    assert coordinates is not None
    return coordinates.at(VAGUE / 2)


SHORT = {
    "steps": 3,
    "schedule": "linear",
    "reference": pma.GaussianReference(np.zeros(7), 1.2 * np.ones(7)),
    "transition": pma.HMC(0.2, 3, 1.0),
    "progressbar": False,
    "warnings": False,
    "random_seed": 2,
}


@functools.cache
def short_run():
    return pma.sample_ais(4000, model=conditional_horseshoe(), **SHORT)


def mean_weight(result) -> tuple[float, float]:
    """Return the mean of ``exp(log_w - log Z)`` of a short run from the prior, and its error."""
    log_weight = np.asarray(result["annealing"]["log_weight"]).ravel()
    weight = np.exp(log_weight - log_evidence_of(VAGUE))
    return weight.mean(), weight.std() / np.sqrt(weight.size)


@pytest.mark.slow
def test_short_runs_are_unbiased() -> None:
    mean, error = mean_weight(short_run())
    assert error < 0.1
    assert abs(mean - 1) < 4 * error


@pytest.mark.slow
def test_draws_of_a_short_run_are_those_of_the_model() -> None:
    posterior = short_run()["posterior"]
    assert set(posterior.data_vars) == {"tau", "local", "z", "mean"}
    x, exact = posterior["mean"].values.reshape(-1, len(VAGUE)), quadrature(tuple(VAGUE))[1]
    scale = posterior["tau"].values[..., None] * posterior["local"].values
    np.testing.assert_allclose((scale * posterior["z"].values).reshape(x.shape), x, rtol=1e-9)
    for i, value in enumerate(exact):
        # Copies of a particle count once, by their share.
        own, copies = np.unique(x[:, i], return_counts=True)
        error = np.sqrt((copies / len(x)) ** 2 @ (own - value) ** 2)
        assert error < 0.01
        assert abs(x[:, i].mean() - value) < 4.5 * error


@pytest.mark.slow
def test_a_wrong_volume_is_seen(monkeypatch) -> None:
    """The twin forgets the volume of the map."""
    original = ConditionalMap.backward
    monkeypatch.setattr(
        ConditionalMap, "backward", lambda self, c, y: (original(self, c, y)[0], jnp.zeros(()))
    )
    mean, error = mean_weight(short_run.__wrapped__())
    assert not abs(mean - 1) < 4 * error

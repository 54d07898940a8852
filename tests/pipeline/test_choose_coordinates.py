"""The choice of coordinates: by what the data say about each entry, and without bias."""

import functools

import numpy as np
import pymc as pm
import pytest

from scipy import integrate, stats

import pymc_anneal as pma

from pymc_anneal.model.location_scale import LocationScaleModel
from pymc_anneal.model.location_scale_transform import LocationScale
from pymc_anneal.pipeline.choose_coordinates import best_weights

pytestmark = pytest.mark.usefixtures("long_road")

MEAN_SD, SCALE_SD = 2.0, 2.0
RESPONSE = np.array([0.8, -1.4, 2.1, 0.3, -0.6, 3.0])
# Measurement errors: the data say much about some groups, and little about others.
UNEQUAL = (10.0,) * 3 + (0.01,) * 3


def groups(error) -> pm.Model:
    """Group means that are centred, with measurement errors of this size."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, MEAN_SD)
        tau = pm.HalfNormal("tau", SCALE_SD)
        x = pm.Normal("x", mu, tau, shape=len(RESPONSE))
        pm.Normal("y", x, np.asarray(error), observed=RESPONSE)
    return model


@functools.cache
def log_evidence_of_groups(error: float | tuple[float, ...]) -> float:
    """Integrate the means out in closed form, and the scale by quadrature."""

    def density(tau: float) -> float:
        own = tau**2 + np.broadcast_to(error, len(RESPONSE)) ** 2
        covariance = np.diag(own) + MEAN_SD**2
        likelihood = stats.multivariate_normal(np.zeros(len(RESPONSE)), covariance).pdf(RESPONSE)
        return float(likelihood * stats.halfnorm(scale=SCALE_SD).pdf(tau))

    return float(np.log(integrate.quad(density, 0, 40, points=[1, 4], epsabs=0)[0]))


@functools.cache
def compiled(error: float | tuple[float, ...]) -> pma.CompiledModel:
    return pma.compile_model(groups(error))


def run(error: float | tuple[float, ...], **settings):
    return pma.sample_ais(
        model=compiled(error), progressbar=False, random_seed=1, warnings=False, **settings
    )


@pytest.mark.quick_cases("10.0")
@pytest.mark.parametrize("error", [10.0, 0.05, pytest.param(UNEQUAL, id="unequal")])
def test_vague_and_sharp_data(error) -> None:
    found = pma.log_evidence(run(error))
    assert abs(found.log_evidence - log_evidence_of_groups(error)) < 4 * found.mcse
    assert found.mcse < 0.1
    assert found.verdict.trusted


@pytest.mark.slow
def test_a_wrong_jacobian_is_seen(monkeypatch) -> None:
    """The twin forgets the volume of a map to coordinates with unequal weights."""
    monkeypatch.setattr(LocationScale, "log_jac_det", lambda self, value, *inputs: 0.0 * value)
    model = groups(UNEQUAL)
    found = pma.log_evidence(
        pma.sample_ais(model=model, progressbar=False, random_seed=1, warnings=False)
    )
    assert abs(found.log_evidence - log_evidence_of_groups(UNEQUAL)) > 10 * found.mcse


def test_draws_are_those_of_the_model() -> None:
    posterior = run(10.0)["posterior"]
    assert set(posterior.data_vars) == {"mu", "tau", "x"}
    assert posterior["x"].shape[-1] == len(RESPONSE)
    # Little is known: the means scatter as widely as their prior says.
    spread = np.asarray((posterior["x"] - posterior["mu"]) / posterior["tau"])
    assert spread.std() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(
    ("error", "expected"),
    [(10.0, np.zeros(6)), (0.01, np.ones(6)), (np.repeat([10.0, 0.01], 3), [0, 0, 0, 1, 1, 1])],
)
def test_weights(error, expected) -> None:
    """Entries that the data determine are centred, the others are not."""
    model = LocationScaleModel(pma.compile_model(groups(error)))
    rng, n = np.random.default_rng(0), 400
    mu, tau = rng.normal(size=n), np.exp(rng.normal(0, 0.7, size=n))
    conditional = np.broadcast_to(np.asarray(error), (6,)) / tau[:, None]
    # The posterior of x given mu and tau: between RESPONSE and mu, by their precisions.
    shrink = 1 / (1 + conditional**-2)
    centre = shrink * mu[:, None] + (1 - shrink) * RESPONSE
    x = centre + tau[:, None] * np.sqrt(shrink) * rng.normal(size=(n, 6))
    position = model.non_centred.unconstrain({"mu": mu, "tau": tau, "x": x})
    np.testing.assert_array_equal(best_weights(model, position), expected)


@pytest.mark.slow
def test_particles_are_mapped_to_other_coordinates() -> None:
    """They keep the values of the variables."""
    with pm.Model() as model:
        step = pm.HalfNormal("step", 1)
        start = pm.Normal.dist(0, step)
        pm.GaussianRandomWalk("walk", mu=step, sigma=step, init_dist=start, shape=(2, 3))
        x = pm.Normal("x", step, step, shape=2)
        pm.Normal("y", x, 1.0, observed=[0.3, 1.0])
    own = pma.compile_model(model)
    choice = LocationScaleModel(own)
    position = choice.non_centred.sample_prior(np.random.SeedSequence(1), 5)
    expected = choice.non_centred.constrain(position)
    weight = np.ones(choice.size)
    for entries in choice.slices.values():
        if entries not in choice.walks:
            weight[entries] = [0.5, 0.0]
    for compiled in (own, choice.at(weight)):
        used = np.ones(choice.size) if compiled is own else weight
        found = compiled.constrain(choice.move(position, used, compiled.variables))
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-12)


STEPS, SEEN = 24, np.array([2, 9, 17])


def walk(seen: np.ndarray, error: float) -> pm.Model:
    """A random walk of which some values are measured."""
    with pm.Model() as model:
        step = pm.HalfNormal("step", 1)
        start = pm.Normal.dist(0, 1)
        x = pm.GaussianRandomWalk("x", sigma=step, init_dist=start, steps=STEPS - 1)
        pm.Normal("y", x[seen], error, observed=np.sin(seen))
    return model


def log_evidence_of_walk(seen: np.ndarray, error: float) -> float:
    """Integrate the walk out in closed form, and the step by quadrature."""
    shared = np.minimum.outer(seen, seen)

    def density(step: float) -> float:
        covariance = 1 + step**2 * shared + error**2 * np.eye(len(seen))
        likelihood = stats.multivariate_normal(np.zeros(len(seen)), covariance).pdf(np.sin(seen))
        return float(likelihood * stats.halfnorm(scale=1).pdf(step))

    return float(np.log(integrate.quad(density, 0, 12, points=[0.1, 0.5, 2], epsabs=0)[0]))


@pytest.mark.slow
def test_a_walk_with_few_measurements() -> None:
    """The step may be near zero: a funnel in the values of the walk."""
    idata = pma.sample_ais(model=walk(SEEN, 0.5), progressbar=False, random_seed=1, warnings=False)
    found = pma.log_evidence(idata)
    assert abs(found.log_evidence - log_evidence_of_walk(SEEN, 0.5)) < 4 * found.mcse
    assert found.mcse < 0.1
    assert found.verdict.trusted
    assert float(idata["evidence"]["evaluations"]) < 1e6


@pytest.mark.slow
@pytest.mark.parametrize(("error", "expected"), [(2.0, 0.0), (0.01, 1.0)])
def test_weights_of_walks(error, expected) -> None:
    """Sharp measurements of every value keep the walk as it is."""
    model = LocationScaleModel(pma.compile_model(walk(np.arange(STEPS), error)))
    rng, n = np.random.default_rng(0), 400
    step = np.exp(rng.normal(-0.5, 0.2 if error < 1 else 0.8, size=n))
    first = np.array([1.0, *[0.0] * (STEPS - 1)])
    x = np.empty((n, STEPS))
    sums = np.tril(np.ones((STEPS, STEPS)))
    for i, s in enumerate(step):  # draws from the posterior of the walk given the step
        prior = sums @ np.diag(np.where(first, 1.0, s**2)) @ sums.T
        precision = np.linalg.inv(prior) + np.eye(STEPS) / error**2
        mean = np.linalg.solve(precision, np.sin(np.arange(STEPS)) / error**2)
        x[i] = rng.multivariate_normal(mean, np.linalg.inv(precision))
    position = model.non_centred.unconstrain({"step": step, "x": x})
    np.testing.assert_array_equal(best_weights(model, position), np.full(STEPS, expected))


@pytest.mark.slow
@pytest.mark.parametrize("n", [STEPS, 200])
def test_a_walk_of_known_scale(n) -> None:
    """Only the drift is random; with fewer particles than steps the walk stays as it is."""
    with pm.Model() as pm_model:
        drift = pm.Normal("drift", 0, 1)
        pm.GaussianRandomWalk("x", drift, 0.5, init_dist=pm.Normal.dist(0, 1), steps=STEPS - 1)
        pm.Normal("y", observed=0.0)
    model = LocationScaleModel(pma.compile_model(pm_model))
    position = model.non_centred.sample_prior(np.random.SeedSequence(1), n)
    weight = best_weights(model, position)
    assert set(weight) == ({1.0} if n == STEPS else {0.0})


@pytest.mark.slow
@pytest.mark.parametrize("error", [10.0, 0.5, 0.05])
def test_errors_cover(error) -> None:
    exact, scores, ratios = log_evidence_of_groups(error), [], []
    for seed in range(60):
        found = pma.log_evidence(
            pma.sample_ais(
                model=compiled(error), progressbar=False, random_seed=seed, warnings=False
            )
        )
        scores.append((found.log_evidence - exact) / found.mcse)
        ratios.append(np.exp(found.log_evidence - exact))
    assert abs(np.mean(ratios) - 1) < 4 * np.std(ratios) / np.sqrt(len(ratios)) + 0.002
    assert 0.7 < np.std(scores) < 1.35
    assert np.mean(np.abs(scores) < 1.96) > 0.85

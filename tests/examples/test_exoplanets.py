"""The exoplanets of the gallery: orbits, priors and likelihood agree with their textbook forms."""

import importlib.util

from pathlib import Path
from types import ModuleType

import jax
import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from scipy import optimize, stats

import pymc_anneal as pma

SCRIPT = Path(__file__).parents[2] / "examples" / "exoplanets.py"


@pytest.fixture(scope="module")
def exoplanets() -> ModuleType:
    spec = importlib.util.spec_from_file_location("exoplanets", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def eccentric_anomaly(mean_anomaly: float, e: float) -> float:
    """Solve Kepler's equation by bisection, which cannot fail."""
    below, above = mean_anomaly - 1, mean_anomaly + 1
    return optimize.brentq(lambda x: x - e * np.sin(x) - mean_anomaly, below, above, xtol=1e-15)


def radial_velocity(longitude: np.ndarray, e: float, omega: float) -> np.ndarray:
    """Return cos(omega + nu) + e cos(omega) from the true anomaly nu."""
    anomaly = np.array([eccentric_anomaly(x, e) for x in longitude - omega])
    nu = 2 * np.arctan2(np.sqrt(1 + e) * np.sin(anomaly / 2), np.sqrt(1 - e) * np.cos(anomaly / 2))
    return np.cos(omega + nu) + e * np.cos(omega)


def test_keplers_equation(exoplanets: ModuleType) -> None:
    longitude, h, k = pt.dvectors("longitude", "h", "k")
    solve = pytensor.function([longitude, h, k], exoplanets.eccentric_longitude(longitude, h, k))
    omega, phase = 0.7, np.linspace(-7, 7, 301)
    for e in (0.0, 1e-9, 0.2, 0.5, 0.9, 0.99):
        h, k = np.full(301, e * np.cos(omega)), np.full(301, e * np.sin(omega))
        found = solve(phase + omega, h, k)
        expected = np.array([eccentric_anomaly(x, e) for x in phase]) + omega
        assert np.abs(found - expected).max() < 1e-12
    # The wrong sign of k is another orbit.
    assert np.abs(solve(phase + omega, h, -k) - expected).max() > 0.1


def test_orbit(exoplanets: ModuleType) -> None:
    longitude = np.linspace(-7, 7, 101)
    for e, omega in ((0.0, 0.3), (0.4, -2.0), (0.95, 1.0)):
        found = exoplanets.orbit(pt.as_tensor(longitude), e * np.cos(omega), e * np.sin(omega))
        assert found.eval() == pytest.approx(radial_velocity(longitude, e, omega), abs=1e-9)


def test_priors(exoplanets: ModuleType) -> None:
    model = exoplanets.planets(1, 1)
    names = ("K", "e", "jitter", "period")
    draws = pm.draw([model[name] for name in names], 4000, random_seed=1)
    amplitude, e, jitter, period = (np.ravel(x) for x in draws)
    least, largest = exoplanets.period_bounds(1, 1, "narrow").ravel()
    uniform = {
        "amplitude": np.log1p(amplitude) / np.log(1000),
        "e": -np.expm1(-(e**2) / 0.08) / -np.expm1(-12.5),
        "jitter": np.log1p(jitter) / np.log(100),
        "period": np.log(period / least) / np.log(largest / least),
    }
    for name, u in uniform.items():
        assert stats.kstest(u, "uniform").pvalue > 1e-4, name
    # A scale of 0.21 instead of 0.2 is found.
    assert stats.kstest(e / 0.21, "rayleigh").pvalue < 1e-4


@pytest.fixture(scope="module")
def evaluated(exoplanets: ModuleType) -> tuple:
    """Return a point of the model with two planets, its log likelihood and the gradient."""
    compiled = pma.compile_model(exoplanets.planets(2, 1))
    point = np.random.default_rng(1).normal(size=compiled.ndim)

    def log_likelihood(x: jax.Array) -> jax.Array:
        return compiled.log_terms(x).log_likelihood

    with jax.enable_x64(True):
        evaluate = jax.jit(jax.value_and_grad(log_likelihood))
        value, gradient = evaluate(point)
        steps = 1e-6 * np.eye(len(point))
        differences = [(evaluate(point + h)[0] - evaluate(point - h)[0]) / 2e-6 for h in steps]
    return compiled, point, float(value), np.asarray(gradient), np.array(differences)


@pytest.mark.slow
def test_likelihood_with_a_dense_covariance(exoplanets: ModuleType, evaluated: tuple) -> None:
    compiled, point, value, *_ = evaluated
    values = {name: x[0] for name, x in compiled.constrain(point[None]).items()}
    t, v, sigma = np.loadtxt(exoplanets.DATA / "rv_1.csv", delimiter=",", skiprows=1, unpack=True)
    lag = t[:, None] - t
    covariance = 3 * np.exp(-((np.sin(np.pi * lag / 20) / 0.5) ** 2 + (lag / 50) ** 2) / 2)
    covariance += np.diag(sigma**2 + values["jitter"] ** 2)
    mean = np.full(len(t), float(values["C"]))
    for j in range(2):
        x, z = values["amplitude_phase"][j], values["eccentricity_vector"][j]
        longitude = 2 * np.pi * (t - t.mean()) / values["period"][j] + np.arctan2(*x[::-1])
        orbit = radial_velocity(longitude, values["e"][j], np.arctan2(*z[::-1]))
        mean += values["K"][j] * orbit
    exact = stats.multivariate_normal.logpdf(v, mean, covariance)
    assert value == pytest.approx(exact, rel=1e-9)


@pytest.mark.slow
def test_gradient(evaluated: tuple) -> None:
    *_, gradient, differences = evaluated
    assert gradient == pytest.approx(differences, rel=1e-5, abs=1e-3 * np.abs(gradient).max())


def test_exact_log_evidence(exoplanets: ModuleType) -> None:
    """The values of the data's folder, by another program."""
    found = [exoplanets.exact_log_evidence(k) for k in (1, 2, 3)]
    assert found == pytest.approx([-488.0960, -453.8620, -390.6208], abs=2e-4)


def test_stored_results(exoplanets: ModuleType) -> None:
    """Trusted results are exact without planets, and near the best of the teams with them."""
    table = pd.read_csv(exoplanets.DATA / "evidences.csv")
    best = "TeamPUC/vb-importance-sampling-long"
    # Posteriors of several modes, of which the importance sampling of that team misses parts. That
    # of another team lacks log 2 for each planet, in these as in 9 of 10 other cells, to 0.04.
    hard, other = {(2, 2), (2, 3)}, "Nelson/MCMC_IS_30"
    for row in table[table["verdict"] == "trust"].itertuples():
        assert row.mcse <= 0.15
        if row.planets == 0:
            exact = exoplanets.exact_log_evidence(row.data_set)
            assert abs(row.log_evidence - exact) < 4 * row.mcse + 1e-3, row
            continue
        teams = exoplanets.published(row.data_set, row.prior, row.planets)
        if (row.data_set, row.planets) in hard:
            known = teams[other] + row.planets * np.log(2)
            assert abs(row.log_evidence - known) < 0.05, row
        else:
            assert abs(row.log_evidence - teams[best]) < 0.1 + 1e-3, row

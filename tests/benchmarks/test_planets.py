"""The models with planets: Kepler's equation, and the density in the eigenvectors."""

import sys

from pathlib import Path

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from scipy import optimize, stats

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def planets(monkeypatch):
    """Return the script, which imports its neighbours as scripts do."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield __import__("planets")
    for name in ("planets", "models"):
        sys.modules.pop(name, None)


def test_true_anomaly_solves_keplers_equation(planets):
    e, mean = np.linspace(0, 0.95, 20)[:, None], np.linspace(-20, 20, 501)
    half = planets.true_anomaly(pt.constant(mean), pt.constant(e)).eval() / 2
    eccentric = 2 * np.arctan2(np.sqrt(1 - e) * np.sin(half), np.sqrt(1 + e) * np.cos(half))
    off = eccentric - e * np.sin(eccentric) - mean
    np.testing.assert_allclose(np.exp(1j * off), 1, atol=1e-9)


def test_density_is_that_of_the_covariance(planets):
    data = planets.series(1)
    point = {"offset": np.array(2.0), "log_jitter": np.array(0.8)}
    with planets.planets(1, 0) as model:
        found = model.compile_logp(vars=[model["v"]], jacobian=False)(_unconstrained(model, point))
    covariance = (data.vectors * (data.variance + np.expm1(0.8) ** 2)) @ data.vectors.T
    expected = stats.multivariate_normal(np.full(200, 2.0), covariance).logpdf(data.velocity)
    assert found == pytest.approx(expected, rel=1e-10)


def test_covariance_is_that_of_the_challenge(planets):
    data = planets.series(3)
    covariance = (data.vectors * data.variance) @ data.vectors.T
    apart = data.time[0] - data.time[1]
    kernel = 3 * np.exp(-0.5 * (np.sin(np.pi * apart / 20) ** 2 / 0.25 + apart**2 / 2500))
    assert covariance[0, 1] == pytest.approx(kernel, abs=1e-10)
    assert covariance[0, 0] > 3


def test_velocity_of_an_eccentric_orbit(planets):
    t, e, w, mean_at_0, period, amplitude = np.array([0.0, 3.0, 11.0]), 0.5, 1.1, 2.0, 12.5, 7.0
    with pm.Model() as model:
        velocity = planets.velocity_by_planets(t, ((10.0, 20.0),))
    given = {
        "log_P": np.log(period),
        "log_K": np.log1p(amplitude),
        "e_cos_w": e * np.cos(w),
        "e_sin_w": e * np.sin(w),
        "M_plus_w": mean_at_0 + w,
    }
    found = velocity.eval({model[name]: np.array([value]) for name, value in given.items()})
    np.testing.assert_allclose(found, [_velocity(x, e, w, mean_at_0, period, amplitude) for x in t])


def _velocity(t, e, w, mean_at_0, period, amplitude):
    """Return the velocity with Kepler's equation solved by bisection."""
    mean = (2 * np.pi * t / period + mean_at_0) % (2 * np.pi)
    eccentric = optimize.brentq(lambda x: x - e * np.sin(x) - mean, 0, 2 * np.pi, xtol=1e-14)
    anomaly = np.arccos((np.cos(eccentric) - e) / (1 - e * np.cos(eccentric)))
    anomaly = anomaly if eccentric < np.pi else -anomaly
    return amplitude * (np.cos(anomaly + w) + e * np.cos(w))


def _unconstrained(model, point):
    """Return a point of the model in its unconstrained coordinates."""
    return {
        model.rvs_to_values[rv].name: model.rvs_to_transforms[rv]
        .forward(point[rv.name], *rv.owner.inputs)
        .eval()
        for rv in model.free_RVs
    }

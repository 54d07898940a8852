"""The black boxes of PyMC's example gallery run unchanged, with the evidence of their twins."""

import warnings

from typing import Any

import jax
import numpy as np
import pymc as pm
import pytest

from pymc.ode import DifferentialEquation
from scipy import stats

import pymc_anneal as pma

from tests.sampling.published_black_boxes import (
    LINE,
    SIGMA,
    X,
    black_box_line,
    lotka_volterra,
    populations,
    pymc_line,
    solve,
)

pytestmark = pytest.mark.filterwarnings("ignore:Numba will use object mode:UserWarning")


def run(model: pm.Model, draws: int = 200) -> Any:
    """Estimate the evidence, without the warning of the random walk."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The model has no gradient")
        return pma.sample_ais(draws, model=model, random_seed=1, progressbar=False)


def agree(first: pma.LogEvidence, second: pma.LogEvidence) -> bool:
    """Return whether two independent estimates differ by less than four standard errors."""
    difference = first.log_evidence - second.log_evidence
    return abs(difference) < 4 * np.hypot(first.mcse, second.mcse)


def line_log_evidence() -> float:
    """Log evidence of the line; the box of the uniform prior holds all of the likelihood."""
    features = np.stack([X, np.ones_like(X)], axis=1)
    (fit, (residual,), *_), precision = np.linalg.lstsq(features, LINE), features.T @ features
    peak = stats.norm.logpdf(LINE, features @ fit, SIGMA).sum()
    assert np.isclose(peak, -0.5 * residual / SIGMA**2 - len(X) / 2 * np.log(2 * np.pi * SIGMA**2))
    volume = np.log(2 * np.pi * SIGMA**2) - 0.5 * np.linalg.slogdet(precision)[1]
    return float(peak + volume - np.log(400))


@pytest.mark.slow
def test_the_line() -> None:
    idata = run(black_box_line(), 100)
    assert idata["evidence"].attrs["transition"] == "RandomWalkMetropolis"
    estimate = pma.log_evidence(idata)
    assert abs(estimate.log_evidence - line_log_evidence()) < 4 * estimate.mcse
    assert estimate.mcse < 0.1
    assert estimate.verdict.trusted


@pytest.mark.slow
def test_the_line_has_the_evidence_of_its_twin() -> None:
    found = pma.log_evidence(run(black_box_line())), pma.log_evidence(run(pymc_line()))
    assert agree(*found)
    assert max(estimate.mcse for estimate in found) < 0.05


@pytest.mark.slow
def test_predators_and_prey() -> None:
    """42,000 calls of SciPy's `odeint` against gradients through 640 steps of Runge and Kutta."""
    black_box, twin = run(lotka_volterra(solve)), run(lotka_volterra(populations))
    assert black_box["evidence"].attrs["transition"] == "RandomWalkMetropolis"
    assert twin["evidence"].attrs["transition"] != "RandomWalkMetropolis"
    found = pma.log_evidence(black_box)
    assert agree(found, pma.log_evidence(twin))
    assert found.mcse < 0.1
    assert found.verdict.trusted
    # Planted fault: a solver that is 3 % too high.
    high = pma.log_evidence(run(lotka_volterra(lambda theta: 1.03 * populations(theta))))
    assert not agree(found, high)


TIMES = np.arange(0.5, 10, 2.0)
HEIGHT, NOISE = 49 * (1 - np.exp(-0.4 * TIMES)) + np.array([1.2, -0.4, -2.1, 0.3, 1.6]), 2.0


def free_fall(velocity, t, p):
    return 2.0 * p[1] - p[0] * velocity[0]


def integrated(drag, gravity):
    """Free fall as in PyMC's documentation of `pm.ode`, at the times of the data."""
    fall = DifferentialEquation(free_fall, times=TIMES, n_states=1, n_theta=2, t0=0)
    return fall(y0=[0], theta=[drag, gravity])


def in_closed_form(drag, gravity):
    return (2 * gravity / drag * (1 - pm.math.exp(-drag * TIMES)))[:, None]


def falling(solution) -> pm.Model:
    with pm.Model() as model:
        drag = pm.HalfNormal("drag", 1.0)
        gravity = pm.TruncatedNormal("gravity", 9.8, 1.0, lower=0)
        pm.Normal("y", solution(drag, gravity), NOISE, observed=HEIGHT[:, None])
    return model


def gradient(model: pm.Model) -> np.ndarray:
    """Return the gradient of the log density at a drag of 0.4 and a gravity near its prior mean."""
    compiled = pma.compile_model(model)
    at = compiled.unconstrain({"drag": np.array([0.4]), "gravity": np.array([9.0])})[0]
    return np.asarray(jax.grad(lambda x: sum(compiled.log_terms(x)))(at))


@pytest.mark.slow
def test_differential_equations_of_pymc() -> None:
    """Gradients by sensitivity equations are those of the closed form, and are used."""
    models = falling(integrated), falling(in_closed_form)
    assert np.allclose(*map(gradient, models), rtol=1e-5)
    found, exact = (run(model, 50) for model in models)
    assert found["evidence"].attrs["transition"] == "HMC"
    assert agree(pma.log_evidence(found), pma.log_evidence(exact))

"""Regressions on indicators: coefficients integrated out, subsets added up or moved."""

from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from scipy import special, stats

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group
from tests import indicators

SETTINGS = {"random_seed": 1, "progressbar": False}
SHARE, WIDTH = 0.2, 2.0


def data(width: int) -> tuple[np.ndarray, np.ndarray]:
    """Predictors of which the first two are nearly the same, and a response to both."""
    rng = np.random.default_rng(width)
    design = rng.normal(size=(60, width))
    design[:, 1] = design[:, 0] + 0.15 * design[:, 1]
    return design, 3 * (design[:, 0] - design[:, 1]) + rng.normal(size=60)


def selection(width: int, noise: float | None = None) -> pm.Model:
    design, response = data(width)
    with pm.Model() as model:
        on = pm.Bernoulli("on", SHARE, shape=width)
        slope = pm.Normal("slope", 0, WIDTH, shape=width)
        noise = pm.HalfNormal("noise", 2) if noise is None else noise
        pm.Normal("y", pt.dot(design, on * slope), noise, observed=response)
    return model


def log_masses(width: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the subsets, shape ``(2^p, p)``, and the log mass of each, in closed form."""
    design, response = data(width)
    subsets = np.array(list(product([0, 1], repeat=width)), bool)
    gram, along = design.T @ design / noise**2, design.T @ response / noise**2
    found = []
    for on in subsets:
        precision = gram[np.ix_(on, on)] + np.eye(on.sum()) / WIDTH**2
        gain = along[on] @ np.linalg.solve(precision, along[on])
        volume = np.linalg.slogdet(precision)[1] + 2 * on.sum() * np.log(WIDTH)
        log_prior = on.sum() * np.log(SHARE) + (~on).sum() * np.log1p(-SHARE)
        found.append(log_prior + (gain - volume) / 2)
    return subsets, np.array(found) + stats.norm.logpdf(response, 0, noise).sum()


def test_with_known_noise_the_evidence_is_exact() -> None:
    idata = pma.sample_ais(model=indicators.build(), **SETTINGS)
    found = pma.log_evidence(idata)
    assert found.mcse == 0
    assert found.verdict.trusted
    # Bernoulli variables have log probabilities of 32 bits.
    assert found.log_evidence == pytest.approx(indicators.log_evidence(), abs=1e-5)
    draws = np.asarray(group(idata, "posterior")["on"]).reshape(-1, 4)
    exact = np.exp(indicators.log_masses() - indicators.log_evidence())
    number = np.bincount(draws @ [1, 2, 4, 8], minlength=16) / len(draws)
    np.testing.assert_allclose(number, exact, atol=4 * np.sqrt(exact.max() / len(draws)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_an_unknown_noise_is_annealed(seed: int) -> None:
    grid = np.linspace(0.4, 2.5, 150)
    masses = [special.logsumexp(log_masses(5, noise)[1]) for noise in grid]
    exact = special.logsumexp(masses + stats.halfnorm.logpdf(grid, scale=2)) + np.log(
        grid[1] - grid[0]
    )
    found = pma.log_evidence(
        pma.sample_ais(model=selection(5), **{**SETTINGS, "random_seed": seed})
    )
    assert found.verdict.trusted
    assert abs(found.log_evidence - exact) < 4 * found.mcse
    assert found.mcse < 0.01
    assert "Summed out exactly: 'on' (0 to 1)." in str(found)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_many_indicators_are_moved_without_their_coefficients(seed: int) -> None:
    subsets, masses = log_masses(13, 1.0)
    idata = pma.sample_ais(model=selection(13, 1.0), **{**SETTINGS, "random_seed": seed})
    found, exact = pma.log_evidence(idata), special.logsumexp(masses)
    assert found.verdict.trusted
    assert abs(found.log_evidence - exact) < 4 * found.mcse
    assert "Integrated out exactly: 'slope' (13)." in str(found)
    share = np.asarray(group(idata, "posterior")["on"]).reshape(-1, 13).mean(axis=0)
    np.testing.assert_allclose(share, np.exp(masses - exact) @ subsets, atol=0.08)

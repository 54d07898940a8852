"""The mass of a prior that a transform cuts is estimated, and its error is in every error bar."""

import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.model import prior_draws
from pymc_anneal.results.container import Container

MEAN, SCALE, ERROR = np.array([1.5, 0.0]), 0.8, 0.5
RESPONSE = np.array([0.2, 0.9])


def build(mean: np.ndarray = MEAN) -> pm.Model:
    """Return a model of two ordered means, the first of which is expected to be the larger one."""
    ordered = pm.distributions.transforms.ordered
    with pm.Model() as model:
        mu = pm.Normal("mu", mean, SCALE, shape=2, transform=ordered, initval=[0.0, 1.0])
        pm.Normal("y", mu, ERROR, observed=RESPONSE)
    return model


def log_evidence(mean: np.ndarray = MEAN) -> float:
    """Return the density of the data times the posterior share of the ordered means over theirs."""
    total, gain = SCALE**2 + ERROR**2, SCALE**2 / (SCALE**2 + ERROR**2)
    density = stats.norm.logpdf(RESPONSE, mean, np.sqrt(total)).sum()
    after, spread = mean + gain * (RESPONSE - mean), ERROR * np.sqrt(gain)
    ordered = stats.norm.logcdf(np.diff(after) / (np.sqrt(2) * spread))
    return float((density + ordered - stats.norm.logcdf(np.diff(mean) / (np.sqrt(2) * SCALE)))[0])


@pytest.fixture(scope="module", autouse=True)
def _few_draws():
    """Estimate the mass from a thousand draws, of which a tenth are ordered."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prior_draws, "_MASS_BATCHES", 2)
        patch.setattr(prior_draws, "_MOST_TIMES", 1)
        yield


@pytest.fixture(scope="module")
def compiled() -> pma.CompiledModel:
    return pma.compile_model(build())


@pytest.fixture(scope="module")
def idata(compiled) -> Container:
    return pma.sample_ais(model=compiled, random_seed=1, progressbar=False)


def test_the_evidence(compiled, idata) -> None:
    found, error = pma.log_evidence(idata), compiled.log_prior_mass_mcse
    own = found.ess**-0.5
    assert 0.05 < error < 0.15
    assert error < found.mcse < np.hypot(error, 3 * own)
    lower, upper = found.interval
    assert upper - lower == pytest.approx(2 * 1.96 * found.mcse, rel=0.1)
    # The mass is off by more than the error of the run, which the error without it does not cover.
    off = abs(found.log_evidence - log_evidence())
    assert 3 * own < off < 3 * found.mcse
    assert f"+- {error:.2g}, counted in the error" in found.notes


def test_a_bridge(compiled, idata) -> None:
    found, error = pma.bridge_evidence(idata, model=compiled, random_seed=1), compiled
    assert error.log_prior_mass_mcse < found.mcse < 1.5 * error.log_prior_mass_mcse
    lower, upper = found.interval
    assert upper - lower == pytest.approx(2 * 1.96 * found.mcse, rel=0.1)
    assert abs(found.log_evidence - log_evidence()) < 3 * found.mcse


def test_a_direct_bayes_factor(compiled, idata) -> None:
    other = np.array([0.5, 0.5])
    for mean, least in ((other, compiled.log_prior_mass_mcse), (MEAN, 0.0)):
        found = pma.sample_bayes_factor(
            compiled, build(mean), draws_a=idata, random_seed=1, progressbar=False
        )
        assert least <= found.mcse < least + 0.05
        expected = log_evidence() - log_evidence(mean)
        assert abs(found.log_bayes_factor - expected) < max(3 * found.mcse, 1e-9)


def test_more_draws_for_a_small_mass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prior_draws, "_MOST_TIMES", 100)
    assert 0.018 < pma.compile_model(build()).log_prior_mass_mcse < 0.021

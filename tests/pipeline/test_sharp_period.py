"""A periodic signal: many modes in the period, of which one holds all mass and is sharp."""

import functools

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from scipy.special import logsumexp

import pymc_anneal as pma

from pymc_anneal.adaptation import fit_mixture
from pymc_anneal.evidence.estimate import LogEvidence

SHORTEST, LONGEST, SD = 1.25, 1e4, 5.0
TIMES = np.sort(np.random.default_rng(5).uniform(0, 2000, 40))
VALUES = 4 * np.sin(2 * np.pi * TIMES / 15.9 + 1) + np.random.default_rng(6).normal(size=40)


@functools.cache
def compiled() -> pma.CompiledModel:
    with pm.Model() as model:
        log_period = pm.Uniform("log_period", np.log(SHORTEST), np.log(LONGEST))
        a = pm.Normal("a", 0, SD, shape=2)
        angle = 2 * np.pi * TIMES / pt.exp(log_period)
        pm.Normal("y", a[0] * pt.sin(angle) + a[1] * pt.cos(angle), 1, observed=VALUES)
    return pma.compile_model(model)


@functools.cache
def exact() -> float:
    """Sum over frequencies the evidence of the linear model that each of them leaves."""
    frequency = np.linspace(1 / LONGEST, 1 / SHORTEST, 200_000)
    wave = np.exp(2j * np.pi * np.outer(frequency, TIMES))
    basis = np.stack([wave.imag, wave.real], axis=1)
    precision = np.eye(2) / SD**2 + basis @ basis.transpose(0, 2, 1)
    slope = basis @ VALUES
    explained = np.einsum("fi,fi->f", slope, np.linalg.solve(precision, slope[..., None])[..., 0])
    log_density = 0.5 * (explained - np.linalg.slogdet(precision)[1]) - np.log(frequency)
    constant = -2 * np.log(SD) - VALUES @ VALUES / 2 - len(VALUES) / 2 * np.log(2 * np.pi)
    constant += np.log(frequency[1] - frequency[0]) - np.log(np.log(LONGEST / SHORTEST))
    return float(logsumexp(log_density) + constant)


def estimate(seed: int) -> LogEvidence:
    idata = pma.sample_ais(model=compiled(), random_seed=seed, progressbar=False, warnings=False)
    return pma.log_evidence(idata)


def is_silent_miss(found: LogEvidence) -> bool:
    return found.verdict.trusted and abs(found.log_evidence - exact()) > 4 * found.mcse


@pytest.mark.slow
def test_it_is_found() -> None:
    found = estimate(1)
    assert abs(found.log_evidence - exact()) < 4 * found.mcse
    assert found.verdict.trusted


@pytest.mark.slow
def test_no_silent_miss() -> None:
    assert not any(is_silent_miss(estimate(seed)) for seed in range(10))


@pytest.mark.slow
def test_few_climbs_from_the_prior_miss_it(monkeypatch) -> None:
    """The twin climbs from as many draws of the prior as there are particles, and no more."""
    monkeypatch.setattr(fit_mixture, "_MOST_ROUNDS", 0)
    assert any(is_silent_miss(estimate(seed)) for seed in range(10))

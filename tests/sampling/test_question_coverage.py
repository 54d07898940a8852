"""Coverage of errors that runs of the whole package give: sequences, counts, fractions.

Each score is that of a run against a closed form, over many seeds; the wrong twin is the error of
one of the runs that the number is made of.
"""

from functools import cache

import numpy as np
import pymc as pm
import pytest

from scipy import stats
from scipy.special import softmax

import pymc_anneal as pma

from pymc_anneal.sampling.sequential import _run, with_data
from tests.repetitions import REPETITIONS, coverage
from tests.sampling import test_count as polynomials
from tests.sampling.test_fractional_evidence import FRACTION, limit, normal_mean
from tests.sampling.test_sequential import Y, exact
from tests.sampling.test_sequential import normal_mean as growing

SETTINGS = {"draws": 40, "audit": "off"}


@cache
def polynomial(terms: int) -> pm.Model:
    return polynomials.polynomial(terms)


def counted(seed: int) -> dict[str, np.ndarray]:
    """Whether intervals of the probabilities hold, and those of half the width do."""
    found = pma.count(
        polynomial, [1, 2, 3], negligible=0, random_seed=seed, warnings=False, **SETTINGS
    )
    details = found.comparison.details.loc[["1", "2", "3"]]
    truth = softmax([polynomials.log_evidence(k) for k in (1, 2, 3)])
    low, high = details["probability_lower"], details["probability_upper"]
    middle, half = details["probability"], (high - low) / 4
    return {
        "interval": ((low <= truth) & (truth <= high)).to_numpy(),
        "half": (np.abs(middle - truth) < half).to_numpy(),
    }


def fraction(seed: int) -> dict[str, float]:
    settings = {"random_seed": seed, "warnings": False, **SETTINGS}
    found = pma.fractional_evidence(normal_mean(1e3), fraction=FRACTION, **settings)
    error = found.log_evidence - limit()
    return {"both": error / found.mcse, "half": 2 * error / found.mcse}


@cache
def effect(size: int) -> pma.CompiledModel:
    return with_data(growing(True), {"y": Y[:size]})


def looks(seed: int) -> dict[str, float]:
    """Scores of two looks, the second from the posterior of the first, and of what it gains.

    Against the null, whose evidence has no error.
    """
    settings = {"progressbar": False, "warnings": False, "draws": 250, "audit": "off"}
    error, mcse, last = [], [], None
    for size, own in zip((5, 12), np.random.SeedSequence(seed).spawn(2), strict=True):
        last = _run(effect(size), last, own, settings)
        found = pma.log_evidence(last)
        error.append(found.log_evidence - stats.norm.logpdf(Y[:size]).sum() - exact(Y[:size]))
        mcse.append(found.mcse)
    gain = error[1] - error[0]
    return {
        "first": error[0] / mcse[0],
        "second": error[1] / mcse[1],
        "gain": gain / np.hypot(*mcse),
        "gain by one": gain / max(mcse),
    }


@pytest.mark.slow
def test_probabilities_of_a_count() -> None:
    runs = [counted(seed) for seed in range(REPETITIONS)]
    inside = np.array([run["interval"] for run in runs])[:, 1:]  # the first is next to zero
    assert (inside.mean(axis=0) >= 0.92).all()
    assert (inside.mean(axis=0) <= 0.98).all()
    assert np.array([run["half"] for run in runs])[:, 1:].mean() < 0.92


@pytest.mark.slow
def test_fractional_evidences() -> None:
    runs = [fraction(seed) for seed in range(REPETITIONS)]
    assert 0.92 <= coverage(np.array([run["both"] for run in runs])) <= 0.98
    assert coverage(np.array([run["half"] for run in runs])) < 0.92


@pytest.mark.slow
def test_looks_of_a_sequence() -> None:
    runs = [looks(seed) for seed in range(REPETITIONS)]
    scores = {name: coverage(np.array([run[name] for run in runs])) for name in runs[0]}
    assert 0.92 <= scores["first"] <= 0.98
    assert 0.92 <= scores["second"] <= 0.98
    # The looks are independent: the error of one is too small for their difference.
    assert 0.92 <= scores["gain"] <= 0.98
    assert scores["gain by one"] < 0.92


def test_sequential_evidences_add_up() -> None:
    """In closed form: predictive densities of the batches are those of all data together."""
    y = np.array([0.3, 1.2, -0.4, 0.9])

    def log_density(values: np.ndarray) -> float:
        covariance = np.eye(len(values)) + 1
        return float(stats.multivariate_normal.logpdf(values, np.zeros(len(values)), covariance))

    first = log_density(y[:2])
    mean, variance = y[:2].sum() / 3, 1 / 3
    rest = stats.multivariate_normal.logpdf(y[2:], np.full(2, mean), np.eye(2) + variance)
    assert first + rest == pytest.approx(log_density(y))
    assert first + stats.norm.logpdf(y[2:], mean, 1).sum() != pytest.approx(log_density(y))
    assert exact(y) == pytest.approx(log_density(y) - stats.norm.logpdf(y).sum())

"""Coverage of the errors of ratios and averages from dependent draws, each with a wrong twin.

The twins take dependent draws for independent ones, or leave out the errors of the evidences.
"""

import importlib

from collections.abc import Callable

import numpy as np
import pytest

from scipy.special import softmax

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container
from pymc_anneal.evidence import mean_ratio
from pymc_anneal.results.container import dataset
from tests import repetitions
from tests.repetitions import REPETITIONS, coverage, covers, dependent_draws, regression

pytestmark = pytest.mark.slow

MODEL = regression(3)
# `pymc_anneal.posthoc.average` is the function of this name.
AVERAGE = importlib.import_module("pymc_anneal.posthoc.average")
Scores = Callable[[], list[float]]


def independent(values: np.ndarray) -> float:
    """Return the number of draws as their effective sample size: the twin."""
    return float(values.size)


def of_savage_dickey() -> list[float]:
    exact, scores = repetitions.log_evidence(3) - repetitions.log_evidence(2), []
    for seed in range(REPETITIONS):
        draws = dependent_draws(3, [1, seed])
        found = pma.savage_dickey(draws, {"slope2": 0}, model=MODEL, random_seed=seed)
        scores.append((found.log_bayes_factor - exact) / found.mcse)
    return scores


def of_prior_sensitivity() -> list[float]:
    exact, scores = repetitions.log_evidence(3, 0.7) - repetitions.log_evidence(3), []
    for seed in range(REPETITIONS):
        draws = dependent_draws(3, [2, seed])
        row = pma.prior_sensitivity(draws, {"scale": [0.7]}, model=MODEL).iloc[0]
        scores.append((row["log_ratio"] - exact) / row["mcse"])
    return scores


@pytest.mark.parametrize("scores", [of_savage_dickey, of_prior_sensitivity])
def test_ratios(scores: Scores, monkeypatch: pytest.MonkeyPatch) -> None:
    assert covers(scores())
    monkeypatch.setattr(mean_ratio, "draws_ess", independent)
    assert coverage(scores()) < 0.92


class TestModels:
    """Predictions and inclusion probabilities over regressions on one, two and three columns."""

    AT, MCSE = np.array([1.0, -2.0, 3.0]), 0.1
    EXACT = np.array([repetitions.log_evidence(k) for k in (1, 2, 3)])

    def result(self, columns: int, log_evidence: float, seed: int) -> object:
        """Return a container with draws of the prediction and a log evidence."""
        mean, covariance = repetitions.posterior(columns)
        slopes = repetitions.autoregression(mean, covariance, [3, columns, seed], (4, 100))
        scalars = {"log_evidence": log_evidence, "mcse": self.MCSE, "ess": 500.0, "barrier": 1.0}
        scalars |= {"interval_lower": log_evidence, "interval_upper": log_evidence}
        values = {name: np.array(v) for name, v in (scalars | {"pareto_k": 0.1}).items()}
        return container(
            {
                "posterior": dataset({"ahead": slopes @ self.AT[:columns]}, ("chain", "draw")),
                "evidence": dataset(values, (), attrs=pma.Verdict("trust").to_attrs()),
            }
        )

    def results(self, seed: int) -> dict[str, object]:
        noise = self.MCSE * np.random.default_rng([4, seed]).normal(size=3)
        return {str(k): self.result(k, self.EXACT[k - 1] + noise[k - 1], seed) for k in (1, 2, 3)}

    def test_prediction(self, monkeypatch: pytest.MonkeyPatch) -> None:
        weight = softmax(self.EXACT)
        means = [repetitions.posterior(k)[0] @ self.AT[:k] for k in (1, 2, 3)]
        exact, scores, twins = float(weight @ means), [], []
        for seed in range(REPETITIONS):
            results = self.results(seed)
            row = pma.average(results, "ahead").loc["ahead"]
            scores.append((row["mean"] - exact) / row["mcse"])
            with monkeypatch.context() as patch:
                patch.setattr(AVERAGE, "draws_ess", independent)
                row = pma.average(results, "ahead").loc["ahead"]
            twins.append((row["mean"] - exact) / row["mcse"])
        assert covers(scores)
        assert coverage(twins) < 0.92

    def test_inclusion(self) -> None:
        included = {str(k): [f"slope{j}" for j in range(k)] for k in (1, 2, 3)}
        p = softmax(self.EXACT)
        exact, scores, twins = float(np.log(p[2] / (p[0] + p[1])) + np.log(2)), [], []
        for seed in range(REPETITIONS):
            row = pma.inclusion(self.results(seed), included).loc["slope2"]
            error = row["log_bayes_factor"] - exact
            scores.append(error / row["log_bayes_factor_mcse"])
            twins.append(error / self.MCSE)  # the error of one evidence of three
        assert covers(scores)
        assert coverage(twins) < 0.92

"""Imputed data: normal means with missing values in closed form, coverage, a wrong imputation."""

import numpy as np
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.evidence.verdict import Verdict
from tests.repetitions import REPETITIONS

OBSERVED, MISSING = np.array([0.2, 0.9, -0.1, 0.6, 0.5]), 2
SCALE = 1.0
TRUST = Verdict("trust")


def exact(y: np.ndarray) -> float:
    """Log Bayes factor of ``y ~ N(m, 1), m ~ N(0, SCALE)`` against ``m = 0``."""
    covariance = np.eye(len(y)) + SCALE**2
    free = stats.multivariate_normal.logpdf(y, np.zeros(len(y)), covariance)
    return float(free - stats.norm.logpdf(y).sum())


def factor(value: float, verdict: Verdict = TRUST, models=("free", "null")) -> pma.LogBayesFactor:
    return pma.LogBayesFactor(value, 0.01, (value - 0.02, value + 0.02), verdict, models=models)


def pooled(seed: int, mean: float = 0.0, imputations: int = 40) -> pma.LogBayesFactor:
    """Pool data sets whose missing values come from the null, or from another mean."""
    rng = np.random.default_rng(seed)
    drawn = rng.normal(mean, 1.0, size=(imputations, MISSING))
    return pma.pool_imputations([factor(exact(np.append(OBSERVED, u))) for u in drawn])


def test_the_bayes_factor_of_the_observed_data() -> None:
    found = pooled(1, imputations=1000)
    assert found.log_bayes_factor == pytest.approx(exact(OBSERVED), abs=4 * found.mcse)
    assert found.mcse < 0.05
    assert found.models == ("free", "null")
    wrong = pooled(1, mean=1.0, imputations=1000)  # imputed under another model
    assert abs(wrong.log_bayes_factor - exact(OBSERVED)) > 6 * wrong.mcse


def test_coverage() -> None:
    """Of the interval, and too little of one without the correction for skewness."""
    value = np.array([exact(np.append(OBSERVED, u)) for u in np.linspace(-5, 5, 2001)[:, None]])
    inside, symmetric = [], []
    for seed in range(REPETITIONS):
        u = np.random.default_rng(seed).normal(size=20)
        factors = [factor(v) for v in np.interp(u, np.linspace(-5, 5, 2001), value)]
        run = pma.pool_imputations(factors)
        inside.append(run.interval[0] <= exact(OBSERVED) <= run.interval[1])
        error = abs(run.log_bayes_factor - exact(OBSERVED))
        symmetric.append(error < 1.96 * run.mcse)
    assert 0.92 <= np.mean(inside) <= 0.98
    assert np.mean(symmetric) < 0.92


def test_by_hand() -> None:
    found = pma.pool_imputations([factor(np.log(1.0)), factor(np.log(3.0))])
    assert found.log_bayes_factor == pytest.approx(np.log(2.0))
    assert found.mcse == pytest.approx(np.sqrt(np.log1p(0.5 / 2)))
    assert found.verdict.status == "more draws needed"
    assert "impute more data sets" in str(found.verdict)
    doubtful = [factor(0.0)] * 9 + [factor(0.0, Verdict("do not trust", ("k",)))]
    assert str(pma.pool_imputations(doubtful).verdict) == "do not trust: imputation 9: k"


def test_errors() -> None:
    with pytest.raises(ValueError, match="1 Bayes factors of 1 pairs"):
        pma.pool_imputations([factor(0.0)])
    with pytest.raises(ValueError, match="of 2 pairs of models"):
        pma.pool_imputations([factor(0.0), factor(0.0, models=("a", "b"))])

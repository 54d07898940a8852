"""Estimators of one ratio of normalisers from normal log weights, whose scores are standard normal.

Forward log weights ``a ~ N(-S/2, S)`` and reverse ones ``b ~ N(S/2, S)`` are those of a path
between two densities with the same normaliser (Crooks 1999): every estimator has to give zero.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from pymc_anneal.evidence.ais import ais
from pymc_anneal.evidence.bennett import both_directions
from pymc_anneal.evidence.heavy_tail import ais_with_tail
from pymc_anneal.evidence.mean_ratio import mean_ratio
from tests.pooled import Family, family

# So many small runs that 0.2 standard errors in the mean of the scores are seen.
RUNS, PARTICLES, VARIANCE = 300, 1_500, 0.25
Estimator = Callable[[np.ndarray, np.ndarray], tuple[float, float]]


def by_ais(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    found = ais(a)
    return found.log_evidence, found.mcse


def by_ais_with_tail(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    found, _ = ais_with_tail(a)
    return found.log_evidence, found.mcse


def by_reverse(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    found = ais(-b)
    return -found.log_evidence, found.mcse


def by_bennett(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    found = both_directions(a, b)
    return found.log_evidence, found.mcse()


def by_mean_ratio(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    found = mean_ratio(a)
    return found.log_mean, found.mcse


ESTIMATORS: list[Estimator] = [by_ais, by_ais_with_tail, by_reverse, by_bennett, by_mean_ratio]


@cache
def scores() -> dict[str, float]:
    """Return the estimates in units of their errors, by estimator and run."""
    found = {}
    for number, estimator in enumerate(ESTIMATORS):
        for run in range(RUNS):
            rng = np.random.default_rng([number, run])
            a, b = rng.normal(0, VARIANCE**0.5, (2, 4, PARTICLES // 4))
            value, error = estimator(a - VARIANCE / 2, b + VARIANCE / 2)
            found[f"{estimator.__name__} {run}"] = value / error
    return found


def pooled(shift: float = 0.0, share: float = 1.0) -> Family:
    """Return the scores of all estimators, shifted, with errors of a share of the reported ones."""
    rows = {case: (score / share + shift, 0.0, 1.0) for case, score in scores().items()}
    return family("evidence: estimators", rows)


def test_scores_are_standard_normal() -> None:
    pooled().check()
    assert pooled().visible_shift < 0.2


@pytest.mark.parametrize(("shift", "share"), [(0.2, 1.0), (-0.2, 1.0), (0.0, 0.85), (0.0, 1.15)])
def test_twins(shift: float, share: float) -> None:
    """Estimates a fifth of their errors off, and errors 15 % too small or too large."""
    assert not pooled(shift, share).agrees

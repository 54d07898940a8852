"""Estimators of the log evidence from exact draws: biases of all of them, tested at one level.

A row is the mean error of an estimator over independent repetitions. Where an estimator is unbiased
on the scale of ``Z`` or ``1 / Z``, the relative error is taken on it; others have a bias in
``log Z`` that falls as one over the number of draws, far below the errors here.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from pymc_anneal.evidence.ais import ais
from pymc_anneal.evidence.bennett import bar
from pymc_anneal.evidence.bridge_proposals import from_normal
from pymc_anneal.evidence.ladder import mbar, stepping_stone, thermodynamic_integration
from pymc_anneal.nested.nested_sampling import simulate_shrinkage
from tests.cases import log_gamma_draws, log_gamma_evidence, log_gamma_marginal
from tests.evidence.test_ladder import ladder_of
from tests.pooled import Family, family

# Relative error of all estimates that is seen.
ERROR = 0.004
LOG_Z, SPREAD, DRAWS = 1.7, 0.7, 400


def work(rng: np.random.Generator, sign: int, n: int = DRAWS) -> np.ndarray:
    """Draw normal log weights of the forward (-1) or the reverse (1) direction."""
    return rng.normal(LOG_Z + sign * SPREAD**2 / 2, SPREAD, n)


def weights(rng: np.random.Generator) -> float:
    return np.exp(ais(work(rng, -1)).log_evidence - LOG_Z) - 1


def acceptance_ratio(rng: np.random.Generator) -> float:
    return bar(work(rng, -1), work(rng, 1, DRAWS // 2)).log_evidence - LOG_Z


def log_target(x: np.ndarray) -> np.ndarray:
    each = [log_gamma_marginal(1.0, i).logpdf(x[:, i]) for i in (0, 1)]
    return log_gamma_evidence() + sum(each)


def bridge(symmetric: bool, rng: np.random.Generator) -> float:
    x = log_gamma_draws(1.0, 2 * DRAWS, rng).reshape(4, DRAWS // 2, 2)
    halves = x[:, : DRAWS // 4], x[:, DRAWS // 4 :]
    found = bar(*from_normal(log_target, *halves, rng, symmetric))
    return found.log_evidence - log_gamma_evidence()


def normal_bridge(rng: np.random.Generator) -> float:
    return bridge(False, rng)


def warp_bridge(rng: np.random.Generator) -> float:
    return bridge(True, rng)


# A normal prior, and V = -3 (x - 1)^2 / 2: normal densities between, of precision 1 + 3 beta.
BETAS = np.linspace(0, 1, 6) ** 1.5
LADDER_LOG_Z = -0.5 * np.log(4.0) - 3 / 8


def ladder(estimate: Callable, rng: np.random.Generator) -> float:
    precision = 1 + 3 * BETAS
    noise = rng.normal(size=(len(BETAS), DRAWS))
    x = (3 * BETAS / precision)[:, None] + noise / np.sqrt(precision)[:, None]
    return estimate(ladder_of(BETAS, -1.5 * (x - 1) ** 2)) - LADDER_LOG_Z


def forward(rng: np.random.Generator) -> float:
    return np.expm1(ladder(stepping_stone, rng))


def backward(rng: np.random.Generator) -> float:
    return -np.expm1(-ladder(lambda found: stepping_stone(found, backward=True), rng))


def all_temperatures(rng: np.random.Generator) -> float:
    return ladder(lambda found: mbar(BETAS, found), rng)


# log L(X) = -X / 0.1 for the mass X above it.
LIVE, SLOPE = 50, 0.1
NESTED_LOG_Z = np.log(SLOPE) + np.log1p(-np.exp(-1 / SLOPE))


def nested(rng: np.random.Generator) -> float:
    """The dead points of an ideal run: their masses shrink as they are simulated."""
    live = np.r_[np.full(8 * LIVE, LIVE), np.arange(LIVE, 0, -1)]
    mass = np.exp(-np.cumsum(rng.standard_exponential(len(live)) / live))
    return simulate_shrinkage(-mass / SLOPE, live, rng).log_evidence - NESTED_LOG_Z


def integral(rng: np.random.Generator) -> float:
    return ladder(lambda found: thermodynamic_integration(BETAS, found)[0], rng)


# Estimators, and repetitions: as many as take a fraction of a second.
ESTIMATORS: dict[Callable[[np.random.Generator], float], int] = {
    weights: 400,
    acceptance_ratio: 400,
    normal_bridge: 60,
    warp_bridge: 40,
    forward: 400,
    backward: 400,
    all_temperatures: 400,
    integral: 400,
    nested: 60,
}


@cache
def pooled() -> Family:
    rows = {}
    for number, (estimate, repetitions) in enumerate(ESTIMATORS.items()):
        rng = np.random.default_rng([1, number])
        errors = np.array([estimate(rng) for _ in range(repetitions)])
        error = errors.std(ddof=1) / np.sqrt(repetitions)
        rows[estimate.__name__] = float(errors.mean()), 0.0, float(error)
    return family("evidence: estimators", rows)


def test_estimates_are_right() -> None:
    pooled().check()
    assert pooled().visible_shift < ERROR


@pytest.mark.parametrize("sign", [-1, 1])
def test_all_are_off(sign: int) -> None:
    assert not pooled().shifted(sign * ERROR).agrees


@pytest.mark.parametrize("name", [each.__name__ for each in ESTIMATORS if each is not nested])
def test_one_is_off_by_two_percent(name: str) -> None:
    assert not pooled().shifted(0.02 * (np.array(pooled().cases) == name)).agrees

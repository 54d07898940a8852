"""All problems of known evidence with default settings, and the coverage of the interval.

The evidences and posterior draws of a few problems, over several seeds, are tested together at one
level. A single run of the others may be wrong by four standard errors. A normal error exceeds them
once in 16,000 runs, hence once in 500 for the 30 problems; the seeds are fixed.

Coverage is counted over 1000 seeds for each problem: Binomial(1000, 0.95) has a standard deviation
of 0.69 %, so a correct interval falls outside 92 to 98 %, 4.4 deviations on either side, once in
100,000 times. It is counted with the default settings and with few particles and steps, whose error
is far from normal.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import jax
import numpy as np
import pymc as pm
import pytest

from scipy import integrate, stats

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group
from pymc_anneal.base.contracts import Tuning
from pymc_anneal.pipeline import result
from tests import conjugate_blocks
from tests.normal_scores import ScoreRows
from tests.pooled import Family, family
from tests.problems import PROBLEMS, Problem, by_name
from tests.problems.conjugate import NORMAL_DATA
from tests.problems.problem import normal_mean_posterior

TARGET = 0.1
SLOW = {
    "change_point",
    "dirichlet_multinomial",
    "gp_regression",
    "half_cauchy_scale",
    "half_space",
    "half_space_data",
    "imputed_missing",
    "informative_1e3",
    "informative_1e5",
    "initval",
    "ising",
    "lkj_prior_only",
    "mixture_indicators",
    "nig_regression_10",
    "nig_regression_50",
    "no_observed",
    "ordered_transform",
    "outlier_effects",
    "potential_only",
    "several_observed",
    "student_t_conflict",
    "two_modes",
    "uniform_exponential",
    "unknown_trials",
    "von_mises_circular",
    "zero_sum",
}
COVERAGE_SEEDS = 1000
COVERAGE_PROBLEMS = [
    "beta_binomial",
    "gamma_poisson",
    "half_space_data",
    "several_observed",
    "eight_schools",
]


# The other problems, and seeds of each; all runs but the first take a tenth of a second.
QUICK = [problem for problem in PROBLEMS if problem.name not in SLOW]
SEEDS = 6
# Posteriors of those with one parameter.
POSTERIORS = {
    "conjugate_normal": ("mu", stats.norm(*normal_mean_posterior(NORMAL_DATA, 1.5, -1.0, 2.0))),
    "beta_binomial": ("p", stats.beta(2.0 + 29, 5.0 + 10)),
    "gamma_poisson": ("rate", stats.gamma(2.5 + 35, scale=1 / (0.8 + 5))),
}


def assert_default_settings(problem: Problem, found: Any) -> None:
    """A run with default settings is right and trusted."""
    evidence = pma.log_evidence(found)
    assert evidence.mcse <= TARGET, problem.name
    # The absolute tolerance is for models without data: all weights are equal and the error is 0.
    error = abs(evidence.log_evidence - problem.log_evidence)
    assert error <= 4 * evidence.mcse + 1e-6, problem.name
    assert evidence.verdict.trusted, problem.name


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SLOW))
def test_default_settings(name: str) -> None:
    problem = by_name(name)
    found = pma.sample_ais(model=problem.build(), random_seed=2, progressbar=False)
    assert_default_settings(problem, found)


@cache
def default_runs() -> dict[str, list[Any]]:
    """Return runs of every quick problem, of which no two share a seed."""
    runs: dict[str, list[Any]] = {}
    for i, problem in enumerate(QUICK):
        compiled = pma.compile_model(problem.build())
        runs[problem.name] = [
            pma.sample_ais(model=compiled, random_seed=[i, seed], progressbar=False)
            for seed in range(SEEDS)
        ]
    return runs


def evidences(excess: float = 0.0) -> Family:
    """Return the log evidences of the default runs, an excess added for the wrong twin."""
    rows = {}
    for problem in QUICK:
        for seed, found in enumerate(default_runs()[problem.name]):
            evidence = pma.log_evidence(found)
            # Where all is summed out, the error is that of PyMC's 32-bit probabilities.
            error = np.hypot(evidence.mcse, 1e-6)
            row = evidence.log_evidence + excess, problem.log_evidence, error
            rows[f"{problem.name}, seed {seed}"] = row
    return family("evidence: default calls", rows)


def test_default_calls() -> None:
    for problem in QUICK:
        for found in default_runs()[problem.name]:
            assert_default_settings(problem, found)
    found = evidences()
    assert found.visible_shift < 0.01
    found.check()
    assert not evidences(np.log(1.01)).agrees


@cache
def compiled_blocks() -> pma.CompiledModel:
    return pma.compile_model(conjugate_blocks.build())


@cache
def run_blocks() -> Any:
    """Return a run of few steps, whose weights and moves are both needed for its posterior."""
    return pma.sample_ais(
        15_000,
        model=compiled_blocks(),
        steps=12,
        schedule=lambda steps: pma.power_schedule(steps, 2.0),
        reference="prior",
        transition=pma.HMC(0.7, 3, 1.0),
        block_size=15_000,
        random_seed=1,
        progressbar=False,
        warnings=False,
    )


def draws_of_posteriors(blocks: Any, wider: float = 1.0) -> ScoreRows:
    """Return the moments of the draws of the default runs and of the run of few steps."""
    rows = ScoreRows("posterior", wider)
    for problem, (name, law) in POSTERIORS.items():
        x = [group(found, "posterior")[name].values for found in default_runs()[problem]]
        rows.add(problem, np.stack(x), law)
    conjugate_blocks.add_scores(rows, group(blocks, "posterior"))
    return rows


def test_posterior_means() -> None:
    """Family "draws: posterior means"."""
    found = draws_of_posteriors(run_blocks()).means
    assert found.visible_shift < 0.05
    found.check()


def test_posterior_variances() -> None:
    """Family "draws: posterior variances"."""
    found = draws_of_posteriors(run_blocks()).variances
    assert found.visible_shift < 0.02
    found.check()
    assert not draws_of_posteriors(run_blocks(), wider=1.01).variances.agrees


@pytest.mark.slow
def test_posterior_draws_by_the_weights_of_another_chain(monkeypatch) -> None:
    right = result.equal_weights
    monkeypatch.setattr(result, "equal_weights", lambda x, w, *a, **k: right(x, w[::-1], *a, **k))
    wrong = draws_of_posteriors(run_blocks.__wrapped__())
    assert not wrong.means.agrees
    assert not wrong.variances.agrees


SETTINGS = {
    "default": {},
    "few_particles": {"draws": 125, "chains": 2, "steps": 40},
}


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("name", COVERAGE_PROBLEMS)
def test_coverage_of_the_interval(name: str, settings: dict[str, int]) -> None:
    problem = by_name(name)
    compiled = pma.compile_model(problem.build())
    covered, scores, skewness = 0, [], []
    for seed in range(COVERAGE_SEEDS):
        result = pma.sample_ais(model=compiled, random_seed=seed, progressbar=False, **settings)
        evidence = pma.log_evidence(result)
        covered += evidence.interval[0] <= problem.log_evidence <= evidence.interval[1]
        scores.append((evidence.log_evidence - problem.log_evidence) / evidence.mcse)
        log_weight = group(result, "annealing")["log_weight"].to_numpy()
        skewness.append(stats.skew(np.exp(log_weight - log_weight.max()), axis=None))
    assert 0.92 <= covered / COVERAGE_SEEDS <= 0.98
    # The standard error is right if the scores are standard normal, within five standard errors,
    # but for the skewness of the weights: a sample whose mean is too high has few of the small
    # weights, and an error that is too small. To second order in their number n, the mean of a
    # Studentised mean is -skewness / (2 sqrt n) (Hall 1992, section 2.6).
    expected = -np.mean(skewness) / (2 * np.sqrt(log_weight.size))
    assert abs(np.mean(scores) - expected) < 5 / np.sqrt(COVERAGE_SEEDS)
    assert np.std(scores) == pytest.approx(1, abs=5 / np.sqrt(2 * COVERAGE_SEEDS))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TunedByMeanAcceptance(pma.HMC):
    """HMC tuned without a limit on the share of stuck particles."""

    @property
    def tuning(self) -> Tuning:
        return replace(super().tuning, max_stuck_share=np.inf)


def three_points() -> tuple[pm.Model, float]:
    """Return a line through three points, a funnel in the scale, and its log evidence."""
    x, y = np.array([0.5, -1.0, 2.0]), np.array([0.4, 2.0, -1.3])
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 2, shape=2)
        sigma = pm.HalfNormal("sigma", 2)
        pm.Normal("y", mu[0] + mu[1] * x, sigma, observed=y)
    design = np.column_stack([np.ones(3), x])

    def integrand(log_sigma: float) -> float:
        sigma = np.exp(log_sigma)
        covariance = sigma**2 * np.eye(3) + 4 * design @ design.T
        density = stats.multivariate_normal(np.zeros(3), covariance).pdf(y)
        return density * stats.halfnorm(scale=2).pdf(sigma) * sigma

    return model, float(np.log(integrate.quad(integrand, -9, 4, points=[-4, -2, 0, 1])[0]))


@pytest.mark.slow
def test_a_funnel() -> None:
    model, exact = three_points()
    compiled = pma.compile_model(model)

    def scores(kernel: pma.HMC) -> np.ndarray:
        runs = [
            pma.log_evidence(
                pma.sample_ais(
                    model=compiled,
                    transition=kernel,
                    reference="prior",  # a mixture needs no move into the neck
                    random_seed=seed,
                    progressbar=False,
                )
            )
            for seed in range(12)
        ]
        return np.array([(run.log_evidence - exact) / run.mcse for run in runs])

    assert abs(np.median(scores(pma.HMC()))) < 2
    # Without the limit the particles miss the neck of the funnel, and the error is too small.
    assert np.median(scores(TunedByMeanAcceptance())) < -4

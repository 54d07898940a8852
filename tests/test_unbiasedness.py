"""``E[w] = Z`` for any number of steps and any mixing.

With few steps and slow kernels on asymmetric and constrained targets, a wrong order of weights and
moves, or a density from another temperature, gives a bias. The means of ``exp(log_w - log Z)`` of
all cases of a kind are tested together; an error of 1 % in all of them is seen. A minimum effective
sample size ensures that their standard errors are reliable. Programs, which take seconds to
compile, serve all numbers of steps.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest

from jax.tree_util import Partial
from scipy import stats

import pymc_anneal as pma

from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.base.contracts import LogTerms, Path, Transition
from pymc_anneal.evidence.ais import effective_sample_size
from pymc_anneal.transitions import random_walk
from tests.cases import (
    TRANSITIONS,
    USER_TRANSITIONS,
    log_gamma_draws,
    log_gamma_evidence,
    log_gamma_marginal,
    log_gamma_terms,
    start,
)
from tests.path_cases import INNER_PATHS, PATHS
from tests.pooled import Family, family, relative_mean
from tests.problems import Problem, by_name
from tests.schedule_cases import INNER_SCHEDULES, SCHEDULES

PARTICLES = 60_000
# Smallest effective sample size, as a share of the number of particles.
MIN_SHARE = 0.02
# Relative error of all estimates of a kind that is seen.
ERROR = 0.01

Row = tuple[float, float, float]


def row(log_weight: np.ndarray, log_evidence: float) -> Row:
    """Return the mean weight over the evidence, one, and the standard error."""
    assert effective_sample_size(log_weight) > MIN_SHARE * log_weight.size
    return relative_mean(log_weight, log_evidence)


def log_weights(path: Path, kernel: Transition, betas, position, seed: int) -> np.ndarray:
    """Return the log weights of an annealed run, shape ``(2, particles / 2)``."""
    sequence = np.random.SeedSequence(seed)
    return run_block(Block(path, kernel, np.asarray(betas), position, 2, sequence)).log_weight


def agrees(log_weight: np.ndarray, log_evidence: float) -> bool:
    """Return whether a single run agrees with the evidence."""
    return family("evidence: kernels", {"run": row(log_weight, log_evidence)}).agrees


def above_edge(edge: jax.Array, x: jax.Array) -> LogTerms:
    """Return the terms of ``log_gamma_terms``, the likelihood zero below an edge."""
    log_prior, log_likelihood = log_gamma_terms(x)
    return LogTerms(log_prior, jnp.where(x[0] > edge, log_likelihood, -jnp.inf))


# No edge, and one inside of the posterior, which is log-concave.
EDGES = (-np.inf, 0.3)


def edged_path(edge: float) -> pma.GeometricPath:
    """Return the path to the target above an edge; its program serves every edge."""
    return pma.GeometricPath(Partial(above_edge, jnp.asarray(edge)))


def edged_evidence(edge: float) -> float:
    """Return the log evidence above an edge."""
    return log_gamma_evidence() + float(log_gamma_marginal(1.0, 0).logsf(edge))


# With a gradient, with a momentum that persists, without either, by temperature, and two of others;
# all kernels are tested for invariance.
NAMES = ("hmc", "generalized_hmc", "random_walk", "tuned", "blackjax_hmc", "barker")
KERNELS = [case for case in [*TRANSITIONS, *USER_TRANSITIONS] if case.name in NAMES]


@cache
def kernels() -> Family:
    rows = {}
    for number, case in enumerate(KERNELS):
        kernel = case.make()
        for edge in EDGES:
            for steps in (2, 5):
                seed = 1000 * number + 10 * steps + np.isfinite(edge)
                position = log_gamma_draws(0.0, PARTICLES, np.random.default_rng(seed))
                betas = pma.power_schedule(steps, 2.0)
                found = log_weights(edged_path(edge), kernel, betas, position, seed)
                assert np.isneginf(found).any() == np.isfinite(edge)
                rows[f"{case.name} {edge} {steps}"] = row(found, edged_evidence(edge))
    return family("evidence: kernels", rows)


@cache
def schedules() -> Family:
    rows, kernel = {}, KERNELS[0].make()
    for number, case in enumerate([*SCHEDULES, *INNER_SCHEDULES]):
        position = log_gamma_draws(0.0, PARTICLES, np.random.default_rng([7, number]))
        found = log_weights(edged_path(-np.inf), kernel, case.make(4), position, 7 + number)
        rows[case.name] = row(found, log_gamma_evidence())
    return family("evidence: schedules", rows)


# One of each class; the contract of paths compares the densities of all. Kernels and schedules have
# the geometric path from the prior, and the weights of the cooling path are of no interest.
BY_CLASS = {case.exported: case for case in [*INNER_PATHS, *PATHS]}
OTHER_PATHS = [c for c in BY_CLASS.values() if c.name not in ("geometric", "cooling")]


@cache
def paths() -> Family:
    rows = {}
    for number, case in enumerate(OTHER_PATHS):
        path, kernel = case.make(log_gamma_terms), pma.HMC(0.3, 1, 1.0)
        for steps in (1, 2, 5):
            position = case.draw_start(PARTICLES, np.random.default_rng([8, number, steps]))
            betas, seed = pma.linear_schedule(steps), 10 * number + steps
            found = log_weights(path, kernel, betas, position, seed)
            rows[f"{case.name} {steps}"] = row(found, log_gamma_evidence())
    return family("evidence: paths", rows)


def few_counts() -> Problem:
    """A Dirichlet prior and five counts, few enough for annealing in one step."""
    counts, concentration = np.array([3, 0, 2]), np.array([0.8, 1.5, 2.0])

    def build() -> pm.Model:
        with pm.Model() as model:
            pm.Multinomial("y", 5, pm.Dirichlet("p", concentration), observed=counts)
        return model

    log_evidence = stats.dirichlet_multinomial.logpmf(counts, concentration, 5)
    return Problem("few_counts", build, float(log_evidence), "")


def noisy_effects() -> Problem:
    """Effects that sum to zero, with large observation noise."""
    y = np.array([2.1, -0.9, 0.6])

    def build() -> pm.Model:
        with pm.Model() as model:
            pm.Normal("y", pm.ZeroSumNormal("effects", 1.5, shape=3), 1.3, observed=y)
        return model

    covariance = 1.5**2 * (np.eye(3) - 1 / 3) + 1.3**2 * np.eye(3)
    log_evidence = stats.multivariate_normal.logpdf(y, np.zeros(3), covariance)
    return Problem("noisy_effects", build, float(log_evidence), "")


MODELS = [
    by_name("beta_binomial"),
    by_name("half_space_data"),
    by_name("ordered_transform"),
    by_name("potential_only"),
    by_name("uniform_exponential"),
    by_name("von_mises_circular"),
    few_counts(),
    noisy_effects(),
]


@cache
def models() -> Family:
    rows = {}
    for number, problem in enumerate(MODELS):
        compiled = pma.compile_model(problem.build())
        path, kernel = pma.GeometricPath(compiled.log_terms), pma.HMC(0.15, 1, 1.0)
        for steps in (1, 3, 5):
            seed = 10 * number + steps
            position = compiled.sample_prior(np.random.SeedSequence(seed), PARTICLES)
            found = log_weights(path, kernel, pma.power_schedule(steps), position, seed)
            rows[f"{problem.name} {steps}"] = row(found, problem.log_evidence)
    return family("evidence: models", rows)


@pytest.mark.parametrize("kind", [kernels, schedules, paths, models])
class TestEvidence:
    def test_is_unbiased(self, kind: Callable[[], Family]) -> None:
        kind().check()
        assert kind().visible_shift < ERROR

    @pytest.mark.parametrize("factor", [1 - ERROR, 1 + ERROR])
    def test_weights_one_percent_off(self, kind: Callable[[], Family], factor: float) -> None:
        found = kind()
        estimate, error = factor * found.estimate, factor * found.error
        assert not replace(found, estimate=estimate, error=error).agrees


class TestWrongTwins:
    """The check detects the errors for which it is made."""

    steps = 5

    def anneal(self, order: str, steps: int) -> np.ndarray:
        """Return the log weights of a plain loop, ``order`` "right", "after" or "stale"."""
        path, kernel = pma.GeometricPath(log_gamma_terms), pma.HMC(0.8, 3, 0.5)
        betas = pma.linear_schedule(steps)
        with jax.enable_x64(True):
            step = jax.jit(lambda *args: kernel.step(args[0], args[1], path, args[2])[0])
            position = log_gamma_draws(0.0, PARTICLES, np.random.default_rng(11))
            state = start(path, kernel, jax.random.key(11), position)
            log_weight = np.zeros(PARTICLES)
            for k in range(1, steps + 1):
                ratio = path.log_ratio(state.terms, betas[k - 1], betas[k])
                # Stale: the kernel targets the density of the previous step.
                beta = betas[k - 1] if order == "stale" else betas[k]
                state = step(jax.random.key(k), state, beta)
                if order == "after":
                    ratio = path.log_ratio(state.terms, betas[k - 1], betas[k])
                log_weight += np.asarray(ratio)
        return log_weight

    def test_right_order(self) -> None:
        assert agrees(self.anneal("right", self.steps), log_gamma_evidence())

    @pytest.mark.parametrize("order", ["after", "stale"])
    def test_wrong_order(self, order: str) -> None:
        assert not agrees(self.anneal(order, self.steps), log_gamma_evidence())

    def test_initial_particles_that_are_not_prior_draws(self) -> None:
        position = 0.9 * log_gamma_draws(0.0, PARTICLES, np.random.default_rng(12))
        path, kernel = edged_path(-np.inf), KERNELS[0].make()
        log_weight = log_weights(path, kernel, pma.linear_schedule(4), position, 12)
        assert not agrees(log_weight, log_gamma_evidence())

    def test_a_kernel_that_is_not_invariant(self, monkeypatch) -> None:
        def always(uniform, log_accept, proposal, current):
            return proposal, jnp.ones(len(log_accept))

        monkeypatch.setattr(random_walk, "accept_reject", always)
        path = pma.GeometricPath(
            lambda x: log_gamma_terms(x)
        )  # a new function, so that JAX compiles it again
        position = log_gamma_draws(0.0, PARTICLES, np.random.default_rng(13))
        kernel = pma.RandomWalkMetropolis(0.5, 1, 1.0)
        log_weight = log_weights(path, kernel, pma.linear_schedule(4), position, 13)
        assert not agrees(log_weight, log_gamma_evidence())

"""``E[w] = Z`` for any number of steps and any mixing.

With few steps and slow kernels on asymmetric and constrained targets, a wrong order of weights and
moves, or a density from another temperature, gives a bias. The mean of ``exp(log_w - log Z)`` must
be within five standard errors of one. A minimum effective sample size ensures that the standard
error is reliable.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.base.contracts import LogTerms, Path, Transition
from pymc_anneal.evidence.ais import effective_sample_size
from pymc_anneal.transitions import random_walk
from tests.cases import (
    PATHS,
    SCHEDULES,
    TRANSITIONS,
    Case,
    PathCase,
    log_gamma_draws,
    log_gamma_evidence,
    log_gamma_terms,
    parametrize,
    start,
)
from tests.problems import Problem, by_name

PARTICLES = 20_000
# Smallest effective sample size, as a share of the number of particles.
MIN_SHARE = 0.02
STANDARD_ERRORS = 5.0


def unbiased(log_weight: np.ndarray, log_evidence: float) -> bool:
    """Return whether the mean of the weights agrees with the evidence."""
    assert effective_sample_size(log_weight) > MIN_SHARE * log_weight.size
    weight = np.exp(np.ravel(log_weight) - log_evidence)
    return abs(weight.mean() - 1) < STANDARD_ERRORS * weight.std() / np.sqrt(weight.size)


def log_weights(path: Path, kernel: Transition, betas, position, seed: int) -> np.ndarray:
    """Return the log weights of an annealed run, shape ``(2, particles / 2)``."""
    sequence = np.random.SeedSequence(seed)
    return run_block(Block(path, kernel, np.asarray(betas), position, 2, sequence)).log_weight


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5])
@parametrize("case", TRANSITIONS)
def test_every_transition(case: Case, steps: int) -> None:
    path = pma.GeometricPath(log_gamma_terms)
    position = log_gamma_draws(0.0, PARTICLES, np.random.default_rng(steps))
    betas = pma.power_schedule(steps, 2.0)
    log_weight = log_weights(path, case.make(), betas, position, steps)
    assert unbiased(log_weight, log_gamma_evidence())


@parametrize("case", SCHEDULES)
def test_every_schedule(case: Case) -> None:
    path, kernel = pma.GeometricPath(log_gamma_terms), pma.HMC(0.3, 1, 1.0)
    position = log_gamma_draws(0.0, PARTICLES, np.random.default_rng(7))
    log_weight = log_weights(path, kernel, case.make(4), position, 7)
    assert unbiased(log_weight, log_gamma_evidence())


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5])
@parametrize("case", PATHS)
def test_every_path(case: PathCase, steps: int) -> None:
    position = case.draw_start(PARTICLES, np.random.default_rng([8, steps]))
    path, kernel = case.make(log_gamma_terms), pma.HMC(0.3, 1, 1.0)
    log_weight = log_weights(path, kernel, pma.linear_schedule(steps), position, steps)
    assert unbiased(log_weight, log_gamma_evidence())


# A normal likelihood restricted to a half-line, on a normal prior.
EDGE, CENTRE, WIDTH = 0.2, -0.6, 0.7


def half_line_terms(x: jax.Array) -> LogTerms:
    """Prior N(0, 1), likelihood N(CENTRE; x, WIDTH) restricted to x > EDGE."""
    log_prior = -0.5 * x[0] ** 2 - 0.5 * np.log(2 * np.pi)
    log_normal = -0.5 * ((x[0] - CENTRE) / WIDTH) ** 2 - np.log(WIDTH * np.sqrt(2 * np.pi))
    return LogTerms(log_prior, jnp.where(x[0] > EDGE, log_normal, -jnp.inf))


def half_line_evidence() -> float:
    """Return the log evidence of ``half_line_terms`` in closed form."""
    precision = 1 + WIDTH**-2
    mean, sd = CENTRE / WIDTH**2 / precision, precision**-0.5
    marginal = stats.norm.logpdf(CENTRE, 0.0, np.hypot(1, WIDTH))
    return float(marginal + stats.norm.logsf(EDGE, mean, sd))


@pytest.mark.parametrize("steps", [1, 2, 5])
@parametrize("case", [c for c in TRANSITIONS if c.exported != "BlackJAXKernel"])
def test_zero_likelihood_in_a_half_space(case: Case, steps: int) -> None:
    path = pma.GeometricPath(half_line_terms)
    position = np.random.default_rng(steps).normal(size=(PARTICLES, 1))
    kernel = case.make()
    kernel = getattr(kernel, "kernel", kernel)
    log_weight = log_weights(path, on_a_line(kernel), pma.linear_schedule(steps), position, steps)
    assert np.isneginf(log_weight).any()
    assert unbiased(log_weight, half_line_evidence())


def on_a_line(kernel: Transition) -> Transition:
    """Return a slow kernel of the same kind in one dimension."""
    if isinstance(kernel, pma.IndependenceMetropolis):
        return pma.IndependenceMetropolis(pma.GaussianReference(np.zeros(1), np.ones(1)))
    return type(kernel)(step_size=0.4, n_steps=1, scale=0.5)


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


@pytest.mark.parametrize("problem", MODELS, ids=lambda problem: problem.name)
def test_models(problem: Problem) -> None:
    compiled = pma.compile_model(problem.build())
    path, kernel = pma.GeometricPath(compiled.log_terms), pma.HMC(0.15, 1, 1.0)
    for steps in range(1, 6):
        position = compiled.sample_prior(np.random.SeedSequence(steps), PARTICLES)
        log_weight = log_weights(path, kernel, pma.power_schedule(steps), position, steps)
        assert unbiased(log_weight, problem.log_evidence)


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
        assert unbiased(self.anneal("right", self.steps), log_gamma_evidence())

    @pytest.mark.parametrize("order", ["after", "stale"])
    def test_wrong_order(self, order: str) -> None:
        assert not unbiased(self.anneal(order, self.steps), log_gamma_evidence())

    def test_initial_particles_that_are_not_prior_draws(self) -> None:
        path, kernel = pma.GeometricPath(log_gamma_terms), pma.HMC(0.3, 1, 1.0)
        position = 0.9 * log_gamma_draws(0.0, PARTICLES, np.random.default_rng(12))
        log_weight = log_weights(path, kernel, pma.linear_schedule(4), position, 12)
        assert not unbiased(log_weight, log_gamma_evidence())

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
        assert not unbiased(log_weight, log_gamma_evidence())

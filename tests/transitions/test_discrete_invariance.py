"""Kernels of discrete variables: invariance, reversal and unbiasedness on the mixed target.

The states are few enough to be counted: a chi-square test compares them with exact probabilities,
and the pairs before and after a move with those of the reversed kernel. Broken kernels fail.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.base.contracts import KernelState, Transition
from pymc_anneal.transitions import discrete_walk, gibbs, joint_flip
from tests.cases import (
    DISCRETE_TRANSITIONS,
    FLIP,
    GIBBS,
    MIXED_COUNT,
    MIXED_RATE,
    MIXED_SHAPE,
    MIXED_STATES,
    ON_RATE,
    WALK,
    Case,
    compiled_take,
    mixed_draws,
    mixed_evidence,
    mixed_log_mass,
    mixed_terms,
    parametrize,
    start,
    take,
)
from tests.pooled import family, whitened_rows

PARTICLES = 20_000
LEVEL = 1e-7  # as in test_invariance
BETA = 0.6
PATH = pma.GeometricPath(mixed_terms)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def exact_start(kernel: Transition, beta: float, seed: int = 0) -> KernelState:
    """Return exact draws of ``f_beta``."""
    position = mixed_draws(beta, PARTICLES, np.random.default_rng(seed))
    return start(PATH, kernel, jax.random.key(seed), position)


def move(
    kernel: Transition, beta: float, moves: int, step=compiled_take, seed: int = 0
) -> KernelState:
    """Move exact draws of ``f_beta``."""
    state, key = exact_start(kernel, beta, seed), jax.random.key(100 + seed)
    for i in range(moves):
        state, _ = step(kernel, jax.random.fold_in(key, i), state, PATH, jnp.asarray(beta))
    return state


def compile_and_move(kernel: Transition, beta: float, moves: int) -> KernelState:
    """Move by a kernel that was broken after others of its class were compiled."""
    return move(kernel, beta, moves, jax.jit(lambda *args: take(*args)))


def codes(position: jax.Array) -> np.ndarray:
    """Return the index of each state in ``MIXED_STATES``; raise if a value is not whole."""
    a, c, _, k, b = np.asarray(position).T
    index = ((a * 3 + c - 3) * 40 + k) * 2 + b
    whole = index.astype(int)
    np.testing.assert_array_equal(MIXED_STATES[whole], np.column_stack([a, c, k, b]))
    return whole


def is_invariant(state: KernelState, beta: float) -> bool:
    """Return whether the particles are draws of ``f_beta``."""
    index = codes(state.position)
    expected = np.exp(mixed_log_mass(beta) - mixed_evidence(beta)) * PARTICLES
    observed = np.bincount(index, minlength=len(expected))
    rare = expected < 10
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    a, _, log_rate, k, _ = np.asarray(state.position).T
    rate = MIXED_RATE + beta * (0.6 + 0.8 * a + 0.15 * k)
    uniform = stats.gamma(MIXED_SHAPE + beta * MIXED_COUNT, scale=1 / rate).cdf(np.exp(log_rate))
    levels = [
        stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue,
        stats.kstest(uniform, "uniform").pvalue,
        *(stats.spearmanr(uniform, column).pvalue for column in (a, k)),
    ]
    return min(levels) > LEVEL


@parametrize("case", DISCRETE_TRANSITIONS)
def test_invariance(case: Case) -> None:
    assert is_invariant(move(case.make(), BETA, 3), BETA)


def features(states: np.ndarray) -> np.ndarray:
    """Return moments of states ``(a, c, k, b)``, shape ``(n, 6)``."""
    a, c, k, b = states.T
    return np.column_stack([a, b, c, k, a * b, k * a])


def test_moments() -> None:
    rows, seeds = {}, itertools.count(1)  # scores are independent: other draws for every case
    for case in DISCRETE_TRANSITIONS:
        for beta in (0.0, 0.05, BETA, 1.0):
            state = move(case.make(), beta, 3, seed=next(seeds))
            moved = features(np.asarray(state.position)[:, [0, 1, 3, 4]])
            probability = np.exp(mixed_log_mass(beta) - mixed_evidence(beta))
            name = f"{case.name}, beta = {beta}"
            rows |= whitened_rows(name, moved, features(MIXED_STATES), probability)
    found = family("invariance: discrete", rows)
    found.check()
    assert found.visible_shift < 0.01  # standard deviations of a moment
    assert not found.shifted(0.01).agrees


@pytest.mark.slow
def test_many_moves_lead_from_the_prior_to_the_target() -> None:
    kernel = pma.Composition([ON_RATE, GIBBS, WALK])
    state = exact_start(kernel, 0.0)
    assert not is_invariant(state, 1.0)
    for i in range(40):
        state, _ = compiled_take(kernel, jax.random.key(i), state, PATH, jnp.asarray(1.0))
    assert is_invariant(state, 1.0)


def wrapped(value, low, size, shift):
    """Return values in a circle that takes in those outside of it, as `gibbs.cycled` does not."""
    return low + jnp.mod(value - low + shift, size)


class TestBrokenKernels:
    """The check of invariance can fail."""

    def test_gibbs_that_draws_at_another_temperature(self) -> None:
        class Cold(pma.GeometricPath):
            def log_density(self, terms, beta):
                return terms.log_prior + jnp.where(beta == 0, 0.0, 1.4 * beta) * terms[1]

        def step(kernel, key, state, path, beta):
            return kernel.step(key, state, Cold(path.log_terms), beta)

        jax.tree_util.register_dataclass(Cold, [], ["log_terms"])
        assert not is_invariant(move(GIBBS, BETA, 3, jax.jit(step)), BETA)

    def test_gibbs_that_takes_values_in(self, monkeypatch) -> None:
        monkeypatch.setattr(gibbs, "cycled", wrapped)
        assert not is_invariant(compile_and_move(pma.Gibbs([1], [(3, 4)]), BETA, 1), BETA)

    def test_gibbs_with_the_terms_of_the_old_value(self, monkeypatch) -> None:
        # The next coordinate is then drawn given a value that this one no longer has.
        def stale(move, key, state, *args):
            def wrong(key, state, i):
                new, info = move(key, state, i)
                return new._replace(terms=state.terms), info

            return correct_sweep(wrong, key, state, *args)

        correct_sweep = gibbs.sweep
        monkeypatch.setattr(gibbs, "sweep", stale)
        assert not is_invariant(compile_and_move(GIBBS, BETA, 3), BETA)

    @pytest.mark.parametrize("sign", [0.0, -1.0])
    def test_walk_that_accepts_wrongly(self, sign: float, monkeypatch) -> None:
        def wrong(uniform, log_accept, proposal, current):
            log_accept = jnp.where(jnp.isfinite(log_accept), sign * log_accept, log_accept)
            return accept_reject(uniform, log_accept, proposal, current)

        accept_reject = discrete_walk.accept_reject
        monkeypatch.setattr(discrete_walk, "accept_reject", wrong)
        assert not is_invariant(compile_and_move(WALK, BETA, 2), BETA)

    def test_walk_that_is_not_symmetric(self, monkeypatch) -> None:
        class Drifting:
            def __getattr__(self, name):
                return getattr(jnp, name)

            def ceil(self, z):
                return jnp.ceil(z - 0.3) + 1.0

            def sign(self, z):
                return jnp.where(z > 0.2, 1.0, -1.0)

        monkeypatch.setattr(discrete_walk, "jnp", Drifting())
        assert not is_invariant(compile_and_move(WALK, BETA, 3), BETA)

    @pytest.mark.slow
    @pytest.mark.parametrize("wrong", ["way_there_alone", "half_a_newton_step", "no_determinant"])
    def test_flip_with_a_wrong_proposal_density(self, wrong: str, monkeypatch) -> None:
        correct = joint_flip._Normal.log_density

        def log_density(normal, point):
            if wrong == "no_determinant":
                return correct(normal, point) - correct(normal, normal.mean)
            if wrong == "half_a_newton_step":
                return correct(normal, 0.5 * (point + normal.mean))
            return 0.0 * correct(normal, point)

        monkeypatch.setattr(joint_flip._Normal, "log_density", log_density)
        assert not is_invariant(compile_and_move(FLIP, BETA, 3), BETA)

    @pytest.mark.slow
    def test_flip_that_prefers_some_values(self, monkeypatch) -> None:
        def to_larger(kernel, key, position):
            changed = flipped(kernel, key, position)
            return jnp.where(changed < position, position, changed)

        flipped = pma.JointFlip._flipped
        monkeypatch.setattr(pma.JointFlip, "_flipped", to_larger)
        assert not is_invariant(compile_and_move(FLIP, BETA, 3), BETA)

    @pytest.mark.slow
    def test_composition_at_another_temperature(self, monkeypatch) -> None:
        def stale(composition, key, state, path, beta):
            return step_by_part(composition, key, state, path, 0.7 * beta)

        step_by_part = pma.Composition.step_by_part
        monkeypatch.setattr(pma.Composition, "step_by_part", stale)
        assert not is_invariant(compile_and_move(pma.Composition([GIBBS, WALK]), BETA, 3), BETA)


def pairs(kernel: Transition, seed: int) -> np.ndarray:
    """Draw ``(before, after)`` of one move in equilibrium, as indices of the small states."""
    state = exact_start(kernel, BETA, seed)
    new, _ = compiled_take(kernel, jax.random.key(seed), state, PATH, jnp.asarray(BETA))
    # The 12 states of a, c and b: 144 pairs.
    small = [c // 80 * 2 + c % 2 for c in (codes(state.position), codes(new.position))]
    return np.stack(small)


def is_reversal(kernel: Transition, other: Transition) -> bool:
    """Return whether pairs of a kernel in equilibrium are those of the other one, swapped."""
    forward, backward = pairs(kernel, 1), pairs(other, 2)[::-1]
    table = np.stack([np.bincount(12 * x + y, minlength=144) for x, y in (forward, backward)])
    table = table[:, table.sum(axis=0) >= 20]
    return stats.chi2_contingency(table).pvalue > LEVEL


@parametrize("case", [c for c in DISCRETE_TRANSITIONS if c.name != "on_coordinates"])
def test_reversal(case: Case) -> None:
    kernel = case.make()
    assert is_reversal(kernel, kernel.reversal())


@pytest.mark.parametrize("kernel", [GIBBS, pma.Composition([ON_RATE, GIBBS])], ids=["one", "two"])
def test_sweeps_are_not_their_own_reversal(kernel: Transition) -> None:
    assert not is_reversal(kernel, kernel)


def is_unbiased(path: pma.GeometricPath, kernel: Transition, steps: int) -> bool:
    """Return whether the mean of the weights of a run agrees with the evidence."""
    position = mixed_draws(0.0, PARTICLES, np.random.default_rng(steps))
    betas, seed = pma.power_schedule(steps, 2.0), np.random.SeedSequence(steps)
    log_weight = run_block(Block(path, kernel, betas, position, 2, seed)).log_weight
    weight = np.exp(log_weight.ravel() - mixed_evidence())
    assert weight.sum() ** 2 / (weight**2).sum() > 0.02 * PARTICLES
    return abs(weight.mean() - 1) < 5 * weight.std() / np.sqrt(PARTICLES)


@pytest.mark.quick_cases("composition", "flip_alone", "discrete_walk", "on_coordinates")
@parametrize("case", DISCRETE_TRANSITIONS)
def test_unbiased(case: Case) -> None:
    for steps in (1, 4):
        assert is_unbiased(PATH, case.make(), steps)


@pytest.mark.slow
def test_a_walk_that_always_accepts_is_biased(monkeypatch) -> None:
    def always(uniform, log_accept, proposal, current):
        allowed = jnp.where(jnp.isfinite(log_accept), 0.0, log_accept)
        return accept_reject(uniform, allowed, proposal, current)

    accept_reject = discrete_walk.accept_reject
    monkeypatch.setattr(discrete_walk, "accept_reject", always)
    fresh = pma.GeometricPath(lambda x: mixed_terms(x))  # so that JAX compiles it again
    assert not is_unbiased(fresh, pma.DiscreteRandomWalk([3], 1.0, 3, 1.5), 4)


def test_a_sweep_that_takes_values_in_is_biased(monkeypatch) -> None:
    monkeypatch.setattr(gibbs, "cycled", wrapped)
    fresh = pma.GeometricPath(lambda x: mixed_terms(x))  # so that JAX compiles it again
    assert not is_unbiased(fresh, pma.Gibbs([1], [(3, 4)]), 4)

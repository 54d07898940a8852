"""Every random number of a transition serves one purpose.

A number that shapes a proposal and decides about it too, or a key that two generators consume,
makes a kernel that leaves another density invariant; at the acceptance at which kernels run the
bias is too small for tests of their output. So it is the numbers that are tested here.
"""

import importlib

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jax.errors import KeyReuseError
from jax.experimental.key_reuse._core import check_key_reuse
from scipy import stats

import pymc_anneal as pma

from pymc_anneal.base.contracts import KernelState, StepInfo, Transition
from pymc_anneal.transitions import hmc
from pymc_anneal.transitions.metropolis import normal_and_uniform
from tests.cases import (
    DISCRETE_TRANSITIONS,
    LOG_GAMMA,
    TRANSITIONS,
    USER_TRANSITIONS,
    Case,
    parametrize,
    start,
    target_of,
)

KERNELS = [*TRANSITIONS, *USER_TRANSITIONS, *DISCRETE_TRANSITIONS]
BETA = 0.6
NUMBERS = 400_000
# About fifty p-values: a correct package fails one in 1e4 choices of the seeds.
LEVEL = 2e-6


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def consume_keys(kernel: Transition, path: pma.GeometricPath, position: np.ndarray) -> None:
    """Trace a step, which raises an error if a key is consumed twice."""

    def step(key: jax.Array, state: KernelState) -> KernelState:
        return kernel.at(BETA).step(key, state, path, BETA)[0]

    state = start(path, kernel, jax.random.key(1), position)
    check_key_reuse(step, jax.random.key(2), state)


@parametrize("case", KERNELS)
def test_no_key_is_consumed_twice(case: Case) -> None:
    target = target_of(case)
    consume_keys(case.make(), target.path, target.draw(BETA, 4, np.random.default_rng(1)))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class OneKey(pma.Transition):
    """A kernel whose proposals and decisions come from one key: the twin."""

    size: float = 1.0

    def step(self, key, state, path, beta):
        noise = jax.random.normal(key, state.position.shape)
        accepted = jax.random.uniform(key, (len(noise),)) < 0.5
        position = jnp.where(accepted[:, None], state.position + self.size * noise, state.position)
        info = StepInfo(accepted.astype(float), jnp.zeros(len(noise), dtype=bool), position)
        return KernelState(position, path.evaluate(position), ()), info


def test_a_key_that_is_consumed_twice() -> None:
    with pytest.raises(KeyReuseError):
        consume_keys(OneKey(), LOG_GAMMA.path, np.zeros((4, 2)))


def decisions(kernel: Transition, monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """Return the uniform numbers of a step and the moves that they decide about."""
    module, found = importlib.import_module(type(kernel).__module__), []
    correct = module.accept_reject

    def recorded(uniform, log_accept, proposal, current):
        jax.debug.callback(
            lambda u, moved: found.append((np.asarray(u), np.asarray(moved))),
            uniform,
            proposal.position - current.position,
        )
        return correct(uniform, log_accept, proposal, current)

    monkeypatch.setattr(module, "accept_reject", recorded)
    path, here = LOG_GAMMA.path, np.tile([0.2, 0.5], (20_000, 1))
    state = start(path, kernel, jax.random.key(3), here)
    jax.block_until_ready(kernel.at(BETA).step(jax.random.key(4), state, path, BETA))
    jax.effects_barrier()
    return found


def are_independent(uniform: np.ndarray, moved: np.ndarray) -> bool:
    """Whether numbers do not tell where a proposal goes, nor how far."""
    against = [*moved.T, np.linalg.norm(moved, axis=1)]
    return min(stats.spearmanr(uniform, column).pvalue for column in against) > LEVEL


DECIDING = [c for c in TRANSITIONS if c.name not in ("blackjax_hmc", "tuned")] + USER_TRANSITIONS


@parametrize("case", DECIDING)
def test_decisions_are_independent_of_proposals(case: Case, monkeypatch) -> None:
    found = decisions(case.make(), monkeypatch)
    assert found
    uniform, moved = found[0]
    assert are_independent(uniform, moved)


def test_decisions_by_the_numbers_of_the_proposal(monkeypatch) -> None:
    """The twin: the step size and the decision share a number."""

    def shared(key, position, count):
        normal, uniform = normal_and_uniform(key, position, 1)
        return normal, jnp.tile(uniform, (1, count))

    monkeypatch.setattr(hmc, "normal_and_uniform", shared)
    uniform, moved = decisions(pma.HMC(0.8, 3, 0.5), monkeypatch)[0]
    assert not are_independent(uniform, moved)


class TestNumbers:
    """The normal and uniform numbers from one generator."""

    @pytest.fixture(scope="class")
    @classmethod
    def numbers(cls) -> tuple[np.ndarray, np.ndarray]:
        with jax.enable_x64(True):
            found = normal_and_uniform(jax.random.key(5), jnp.zeros((NUMBERS, 2)), 2)
        return tuple(map(np.asarray, found))

    def test_normal(self, numbers) -> None:
        for column in numbers[0].T:
            assert stats.kstest(column, "norm").pvalue > LEVEL
            # 1 % of a standard deviation is nine standard errors.
            assert abs(column.std() - 1) < 5 / np.sqrt(2 * NUMBERS)
            assert abs(stats.kurtosis(column)) < 5 * np.sqrt(24 / NUMBERS)

    def test_uniform(self, numbers) -> None:
        for column in numbers[1].T:
            assert stats.kstest(column, "uniform").pvalue > LEVEL

    def test_independent(self, numbers) -> None:
        columns = [*numbers[0].T, *numbers[1].T]
        for i, first in enumerate(columns):
            for second in columns[:i]:
                assert stats.spearmanr(first, second).pvalue > LEVEL
                assert stats.spearmanr(np.abs(first), np.abs(second)).pvalue > LEVEL

    def test_single_precision_stays_inside(self) -> None:
        found = normal_and_uniform(jax.random.key(6), jnp.zeros((NUMBERS, 2), jnp.float32), 1)
        normal, uniform = map(np.asarray, found)
        assert normal.dtype == uniform.dtype == np.float32
        assert np.isfinite(normal).all()
        assert ((uniform >= 0) & (uniform <= 1)).all()

"""Kernels of continuous variables and their reversals: pairs in equilibrium, swapped.

With ``x ~ f_beta`` and ``y ~ T(. | x)``, the pairs ``(y, x)`` are those of the reversed kernel,
which Grosse, Ghahramani & Adams (2015) run from the target to the start. Auxiliary variables
belong to the state. Products of the coordinates before and after a move are compared, whitened by
their covariance; kernels of discrete variables are counted in `test_discrete_invariance.py`.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.base.contracts import KernelState, StepInfo, Transition
from tests.cases import (
    LOG_GAMMA,
    TRANSITIONS,
    USER_TRANSITIONS,
    compiled_take,
    log_gamma_draws,
    log_gamma_marginal,
    start,
)
from tests.normal_scores import normal_scores
from tests.pooled import Family, family

# As in the tests of invariance, so that each kernel is compiled once.
PARTICLES, BETA = 20_000, 0.6
KERNELS = [*TRANSITIONS, *USER_TRANSITIONS]


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def scores(state: KernelState) -> np.ndarray:
    """Return the state as standard normal variables, shape ``(n, width)``."""
    columns = enumerate(np.asarray(state.position).T)
    position = [normal_scores(column, log_gamma_marginal(BETA, j)) for j, column in columns]
    return np.column_stack([*position, *jax.tree.leaves(state.auxiliary)])


def exact_start(kernel: Transition, seed: int) -> KernelState:
    """Return exact draws of ``f_beta``."""
    position = log_gamma_draws(BETA, PARTICLES, np.random.default_rng(seed))
    return start(LOG_GAMMA.path, kernel, jax.random.key(seed), position)


def step(kernel: Transition, state: KernelState, seed: int) -> tuple[KernelState, StepInfo]:
    key = jax.random.key(seed)
    return compiled_take(kernel, key, state, LOG_GAMMA.path, jnp.asarray(BETA))


def products(kernel: Transition, seed: int, swapped: bool) -> np.ndarray:
    """Return products of the coordinates before and after a move, shape ``(n, width^2)``."""
    state = exact_start(kernel, seed)
    new, _ = step(kernel, state, 1000 + seed)
    pair = [scores(s) for s in (state, new)]
    before, after = reversed(pair) if swapped else pair
    return (before[:, :, None] * after[:, None, :]).reshape(PARTICLES, -1)


def rows(name: str, kernel: Transition, reversal: Transition, seed: int) -> dict[str, tuple]:
    """Return whitened differences between a kernel and the swapped pairs of another one."""
    first, second = products(kernel, seed, False), products(reversal, seed + 1, True)
    covariance = (np.cov(first.T) + np.cov(second.T)) / PARTICLES
    z = np.linalg.solve(np.linalg.cholesky(covariance), first.mean(axis=0) - second.mean(axis=0))
    return {f"{name} {i}": (float(x), 0.0, 1.0) for i, x in enumerate(z)}


def reversals() -> Family:
    found = {}
    for number, case in enumerate(KERNELS):
        kernel = case.make()
        found |= rows(case.name, kernel, kernel.reversal(), 2 * number)
    return family("invariance: reversals", found)


def test_pairs_are_swapped() -> None:
    found = reversals()
    found.check()
    assert found.visible_shift < 1.0  # standard errors of a mean product: one hundredth
    assert not found.shifted(1.0).agrees


def test_momentum_is_not_its_own_reversal() -> None:
    kernel = pma.GeneralizedHMC(1.3, 2, 0.6, momentum_persistence=0.7)
    twin = family("invariance: reversals", rows("same", kernel, kernel, 1))
    assert not twin.agrees


def test_momentum_goes_on_where_proposals_are_accepted() -> None:
    """Without the flip after a move, trajectories turn back, and nothing else tells."""
    kernel = pma.GeneralizedHMC(0.05, 1, 0.6, momentum_persistence=0.99)
    start = exact_start(kernel, 1)
    middle, _ = step(kernel, start, 2)
    end, _ = step(kernel, middle, 3)
    first, second = middle.position - start.position, end.position - middle.position
    assert np.corrcoef(first.ravel(), second.ravel())[0, 1] > 0.8


@pytest.mark.parametrize("kernel", [pma.HMC, pma.GeneralizedHMC, pma.MALA])
def test_rejections_vanish_faster_than_the_step(kernel: type[Transition]) -> None:
    """As ``eps^3`` for MALA, ``eps^4`` for HMC; as ``eps^1`` with a drift of another density."""
    kernels = [kernel(size, 1, 0.6) for size in (0.2, 0.4)]
    short, long = (1 - float(step(k, exact_start(k, 1), 2)[1].accept_rate.mean()) for k in kernels)
    assert long > 2**2.5 * short

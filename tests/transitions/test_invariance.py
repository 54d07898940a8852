"""Kernels of continuous variables leave the density invariant at every temperature.

Exact draws are moved a few times; every coordinate must keep its exact distribution. Broken
kernels go through the same check and must fail it.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.base.contracts import KernelState, Transition
from pymc_anneal.transitions import generalized_hmc, hmc, independence, mala, random_walk
from tests.cases import (
    SCALE,
    TRANSITIONS,
    USER_TRANSITIONS,
    Case,
    compiled_take,
    log_gamma_draws,
    log_gamma_marginal,
    log_gamma_terms,
    parametrize,
    start,
    take,
)
from tests.transitions import barker

SEED = 0
# The same number everywhere, so that each kernel is compiled once.
PARTICLES = 20_000
# About a hundred tests in all: a correct package fails one in 1e5 choices of the seeds.
LEVEL = 1e-7
PATH = pma.GeometricPath(log_gamma_terms)
KERNELS = [*TRANSITIONS, *USER_TRANSITIONS]


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def move(kernel: Transition, beta: float, moves: int, step=compiled_take) -> KernelState:
    """Move exact draws of ``f_beta``."""
    position = log_gamma_draws(beta, PARTICLES, np.random.default_rng(SEED))
    key_start, key = jax.random.split(jax.random.key(SEED))
    state = start(PATH, kernel, key_start, position)
    for i in range(moves):
        state, _ = step(kernel, jax.random.fold_in(key, i), state, PATH, jnp.asarray(beta))
    return state


def compile_and_move(kernel: Transition, beta: float, moves: int) -> KernelState:
    """Move exact draws by a kernel that was broken after others of its class were compiled."""
    return move(kernel, beta, moves, jax.jit(lambda *args: take(*args)))


def is_invariant(state: KernelState, beta: float) -> bool:
    """Return whether the particles are draws of ``f_beta``, and the momenta of N(0, I)."""
    position = np.asarray(state.position)
    marginals = [log_gamma_marginal(beta, i) for i in range(2)]
    uniform = np.column_stack([m.cdf(x) for m, x in zip(marginals, position.T, strict=True)])
    columns = [*uniform.T]
    columns += [stats.norm.cdf(p) for p in np.reshape(state.auxiliary, (PARTICLES, -1)).T]
    levels = [stats.kstest(u, "uniform").pvalue for u in columns]
    # Dependence between positions and momenta, by the rank correlations of all pairs.
    levels += [
        stats.spearmanr(columns[i], columns[j]).pvalue
        for i in range(len(columns))
        for j in range(i)
    ]
    return min(levels) > LEVEL


@pytest.mark.parametrize("beta", [0.0, 0.6])
@parametrize("case", KERNELS)
def test_invariance(case: Case, beta: float) -> None:
    """Of whole distributions; `test_moments.py` tests moments in other dimensions."""
    moves = 1 if case.exported == "BlackJAXKernel" else 4
    assert is_invariant(move(case.make(), beta, moves), beta)


@pytest.mark.quick_cases("hmc")
@parametrize("case", KERNELS)
def test_many_moves_lead_from_the_posterior_to_the_prior(case: Case) -> None:
    kernel, rng = case.make(), np.random.default_rng(SEED)
    state = start(PATH, kernel, jax.random.key(SEED), log_gamma_draws(1.0, PARTICLES, rng))
    assert stats.kstest(state.position[:, 0], log_gamma_marginal(0.0, 0).cdf).pvalue < 1e-8
    for i in range(80):
        state, _ = compiled_take(kernel, jax.random.key(i), state, PATH, jnp.asarray(0.0))
    for i in range(2):
        assert stats.kstest(state.position[:, i], log_gamma_marginal(0.0, i).cdf).pvalue > LEVEL


accept_reject = hmc.accept_reject


def accept_always(uniform, log_accept, proposal, current):
    return proposal, jnp.ones(len(log_accept))


def accept_the_inverse_ratio(uniform, log_accept, proposal, current):
    return accept_reject(uniform, -log_accept, proposal, current)


def independence_kernel(ratio: float = 1.0) -> pma.IndependenceMetropolis:
    """Return proposals whose density is raised to a power in the ratio of acceptance."""

    @jax.tree_util.register_dataclass
    @dataclass(frozen=True)
    class Wrong(pma.GaussianReference):
        def log_density(self, position):
            return ratio * super().log_density(position)

    return pma.IndependenceMetropolis(Wrong(np.array([0.5, 1.0]), 1.5 * SCALE))


@pytest.mark.parametrize(
    ("module", "kernel"),
    [
        (hmc, pma.HMC(0.5, 3, SCALE)),
        (generalized_hmc, pma.GeneralizedHMC(0.8, 2, SCALE)),
        (mala, pma.MALA(0.9, 2, SCALE)),
    ],
    ids=["hmc", "generalized_hmc", "mala"],
)
def test_any_force_will_do(module, kernel, monkeypatch) -> None:
    """Gradients may be rounded, here to halves of a unit, since densities are not."""
    correct = module.gradient

    def rounded(*args, **options):
        return jnp.round(2 * correct(*args, **options)) / 2

    monkeypatch.setattr(module, "gradient", rounded)
    assert is_invariant(compile_and_move(kernel, 0.6, 4), 0.6)


class TestBrokenKernels:
    """The check of invariance can fail."""

    def test_a_rounded_density(self, monkeypatch) -> None:
        """Unlike a rounded force."""
        correct = pma.GeometricPath.log_density

        def rounded(path, terms, beta):
            return jnp.round(correct(path, terms, beta))

        monkeypatch.setattr(pma.GeometricPath, "log_density", rounded)
        monkeypatch.setattr(hmc, "gradient", lambda path, x, **options: jnp.zeros_like(x))
        assert not is_invariant(compile_and_move(pma.HMC(1.0, 1, SCALE), 0.6, 4), 0.6)

    @pytest.mark.parametrize("broken", [accept_always, accept_the_inverse_ratio])
    @pytest.mark.parametrize(
        ("module", "kernel"),
        [
            (hmc, pma.HMC(2.5, 2, SCALE)),
            (generalized_hmc, pma.GeneralizedHMC(2.5, 2, SCALE)),
            (mala, pma.MALA(1.3, 1, SCALE)),
            (random_walk, pma.RandomWalkMetropolis(1.5, 1, SCALE)),
            (barker, barker.Barker(1.6, SCALE)),
            (independence, independence_kernel()),
        ],
        ids=["hmc", "generalized_hmc", "mala", "random_walk", "barker", "independence"],
    )
    def test_wrong_acceptance(self, module, kernel, broken, monkeypatch) -> None:
        monkeypatch.setattr(module, "accept_reject", broken)
        assert not is_invariant(compile_and_move(kernel, 0.6, 2), 0.6)

    @pytest.mark.slow
    def test_independence_without_the_density_of_the_proposals(self) -> None:
        assert is_invariant(compile_and_move(independence_kernel(), 0.6, 2), 0.6)
        assert not is_invariant(compile_and_move(independence_kernel(0.0), 0.6, 2), 0.6)

    def test_mala_with_the_wrong_sign_of_one_drift(self, monkeypatch) -> None:
        # The drift goes downhill on the way there and uphill on the way back.
        signs = iter([-1.0, 1.0])
        correct = mala.gradient
        monkeypatch.setattr(mala, "gradient", lambda *a: next(signs) * correct(*a))
        assert not is_invariant(compile_and_move(pma.MALA(0.9, 1, SCALE), 0.6, 1), 0.6)

    def test_momentum_that_is_not_reversed_on_rejection(self, monkeypatch) -> None:
        def keep_direction(uniform, log_accept, proposal, current):
            current = current._replace(auxiliary=-current.auxiliary)
            return accept_reject(uniform, log_accept, proposal, current)

        monkeypatch.setattr(generalized_hmc, "accept_reject", keep_direction)
        kernel = pma.GeneralizedHMC(2.2, 1, SCALE, momentum_persistence=0.99, jitter=0.1)
        assert not is_invariant(compile_and_move(kernel, 0.6, 12), 0.6)

    def test_density_of_another_temperature(self) -> None:
        @jax.tree_util.register_dataclass
        @dataclass(frozen=True)
        class Stale(pma.Transition):
            kernel: Any

            def step(self, key, state, path, beta):
                return self.kernel.step(key, state, path, beta - 0.1)

        kernel = Stale(pma.HMC(0.8, 3, SCALE))
        assert not is_invariant(compile_and_move(kernel, 0.6, 4), 0.6)

"""Markov kernels leave the density of the path invariant, at every temperature.

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

from pymc_anneal.base.contracts import KernelState, LogTerms, StepInfo, Transition
from pymc_anneal.transitions import generalized_hmc, hmc, mala, random_walk
from pymc_anneal.transitions.by_temperature import TunedTransition
from tests.cases import (
    BETAS,
    SCALE,
    TRANSITIONS,
    Case,
    compiled_take,
    log_gamma_draws,
    log_gamma_marginal,
    log_gamma_terms,
    parametrize,
    start,
    take,
)

SEED = 0
PARTICLES = 20_000  # everywhere, so that each kernel is compiled once
# About a hundred tests in all: a correct package fails one in 1e5 choices of the seeds.
LEVEL = 1e-7
PATH = pma.GeometricPath(log_gamma_terms)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def moved(kernel: Transition, beta: float, moves: int, step=compiled_take) -> KernelState:
    """Move exact draws of ``f_beta``."""
    position = log_gamma_draws(beta, PARTICLES, np.random.default_rng(SEED))
    key_start, key = jax.random.split(jax.random.key(SEED))
    state = start(PATH, kernel, key_start, position)
    for i in range(moves):
        state, _ = step(kernel, jax.random.fold_in(key, i), state, PATH, jnp.asarray(beta))
    return state


def moved_afresh(kernel: Transition, beta: float, moves: int) -> KernelState:
    """Move exact draws by a kernel that was broken after others of its kind were compiled."""
    return moved(kernel, beta, moves, jax.jit(lambda *args: take(*args)))


def invariant(state: KernelState, beta: float) -> bool:
    """Whether the particles are draws of ``f_beta``, and the momenta of N(0, I)."""
    position = np.asarray(state.position)
    marginals = [log_gamma_marginal(beta, i) for i in range(2)]
    uniform = np.column_stack([m.cdf(x) for m, x in zip(marginals, position.T, strict=True)])
    columns = [*uniform.T]
    columns += [stats.norm.cdf(p) for p in np.reshape(state.auxiliary, (PARTICLES, -1)).T]
    levels = [stats.kstest(u, "uniform").pvalue for u in columns]
    # Dependences, of positions and momenta, by the rank correlations of all pairs.
    levels += [
        stats.spearmanr(columns[i], columns[j]).pvalue
        for i in range(len(columns))
        for j in range(i)
    ]
    return min(levels) > LEVEL


@pytest.mark.parametrize("beta", [0.0, 0.05, 0.6, 1.0])
@parametrize("case", TRANSITIONS)
def test_invariance(case: Case, beta: float) -> None:
    moves = 1 if case.exported == "BlackJAXKernel" else 4
    assert invariant(moved(case.make(), beta, moves), beta)


@parametrize("case", TRANSITIONS)
def test_moves_towards_the_density(case: Case) -> None:
    # From the posterior, many moves at beta = 0 end at the prior: the kernel does move.
    kernel, rng = case.make(), np.random.default_rng(SEED)
    state = start(PATH, kernel, jax.random.key(SEED), log_gamma_draws(1.0, PARTICLES, rng))
    assert stats.kstest(state.position[:, 0], log_gamma_marginal(0.0, 0).cdf).pvalue < 1e-8
    for i in range(80):
        state, _ = compiled_take(kernel, jax.random.key(i), state, PATH, jnp.asarray(0.0))
    for i in range(2):
        assert stats.kstest(state.position[:, i], log_gamma_marginal(0.0, i).cdf).pvalue > LEVEL


def always(key, log_accept, proposal, current):
    return proposal, jnp.ones(len(log_accept))


def inverted(key, log_accept, proposal, current):
    return original_accept_reject(key, -log_accept, proposal, current)


original_accept_reject = hmc.accept_reject


class TestBrokenTwins:
    """The check of invariance is able to fail."""

    @pytest.mark.parametrize("broken", [always, inverted])
    @pytest.mark.parametrize(
        ("module", "kernel"),
        [
            (hmc, pma.HMC(2.5, 2, SCALE)),
            (generalized_hmc, pma.GeneralizedHMC(2.5, 2, SCALE)),
            (mala, pma.MALA(1.3, 1, SCALE)),
            (random_walk, pma.RandomWalkMetropolis(1.5, 1, SCALE)),
        ],
        ids=["hmc", "generalized_hmc", "mala", "random_walk"],
    )
    def test_acceptance(self, module, kernel, broken, monkeypatch) -> None:
        monkeypatch.setattr(module, "accept_reject", broken)
        assert not invariant(moved_afresh(kernel, 0.6, 2), 0.6)

    def test_mala_with_the_wrong_sign(self, monkeypatch) -> None:
        # A drift downhill on the way there and uphill on the way back.
        signs = iter([-1.0, 1.0])
        correct = mala.gradient
        monkeypatch.setattr(mala, "gradient", lambda *a: next(signs) * correct(*a))
        assert not invariant(moved_afresh(pma.MALA(0.9, 1, SCALE), 0.6, 1), 0.6)

    def test_momentum_that_is_not_reversed(self, monkeypatch) -> None:
        def forgetful(key, log_accept, proposal, current):
            current = current._replace(auxiliary=-current.auxiliary)
            return original_accept_reject(key, log_accept, proposal, current)

        monkeypatch.setattr(generalized_hmc, "accept_reject", forgetful)
        kernel = pma.GeneralizedHMC(2.2, 1, SCALE, momentum_persistence=0.99, jitter=0.1)
        assert not invariant(moved_afresh(kernel, 0.6, 12), 0.6)

    def test_the_density_of_another_temperature(self) -> None:
        @jax.tree_util.register_dataclass
        @dataclass(frozen=True)
        class Stale:
            kernel: Any

            def init(self, key, position):
                return ()

            def at(self, beta):
                return self

            def step(self, key, state, path, beta):
                return self.kernel.step(key, state, path, beta - 0.1)

        assert not invariant(moved_afresh(Stale(pma.HMC(0.8, 3, SCALE)), 0.6, 4), 0.6)


@parametrize("case", TRANSITIONS)
class TestContract:
    def state(self, kernel: Transition) -> KernelState:
        position = log_gamma_draws(0.5, PARTICLES, np.random.default_rng(5))
        return start(PATH, kernel, jax.random.key(5), position)

    def test_step(self, case: Case) -> None:
        kernel = case.make()
        state = self.state(kernel)
        beta = jnp.asarray(0.5)
        new, info = compiled_take(kernel, jax.random.key(6), state, PATH, beta)
        assert isinstance(new, KernelState)
        assert isinstance(info, StepInfo)
        assert jax.tree.structure(new) == jax.tree.structure(state)
        shapes = jax.tree.map(lambda a, b: a.shape == b.shape and a.dtype == b.dtype, new, state)
        assert all(jax.tree.leaves(shapes))
        assert info.accept_rate.shape == (PARTICLES,)
        assert ((info.accept_rate >= 0) & (info.accept_rate <= 1 + 1e-12)).all()
        assert info.nan.shape == (PARTICLES,)
        assert not info.nan.any()
        assert info.nan_position.shape == (PARTICLES, 2)

    def test_terms_belong_to_the_position(self, case: Case) -> None:
        kernel = case.make()
        new, _ = compiled_take(
            kernel, jax.random.key(7), self.state(kernel), PATH, jnp.asarray(0.5)
        )
        for left, right in zip(new.terms, PATH.evaluate(new.position), strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-12)

    def test_a_key_is_a_result(self, case: Case) -> None:
        kernel = case.make()
        state, beta = self.state(kernel), jnp.asarray(0.5)
        first, again, other = (
            compiled_take(kernel, jax.random.key(k), state, PATH, beta)[0].position
            for k in (8, 8, 9)
        )
        assert (first == again).all()
        assert (first != other).any()

    def test_is_a_pytree_of_numbers(self, case: Case) -> None:
        kernel = case.make()
        leaves, structure = jax.tree.flatten(kernel)
        assert all(hasattr(leaf, "dtype") or isinstance(leaf, int | float) for leaf in leaves)
        again = jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in leaves])
        state, beta = self.state(kernel), jnp.asarray(0.5)
        first, second = (
            compiled_take(k, jax.random.key(10), state, PATH, beta)[0].position
            for k in (kernel, again)
        )
        np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-9)

    def test_particles_are_independent(self, case: Case) -> None:
        # What one particle does depends on no other particle's position.
        kernel = case.make()
        state = self.state(kernel)
        position = state.position.at[0].add(1.0)
        other = KernelState(position, PATH.evaluate(position), state.auxiliary)
        beta = jnp.asarray(0.5)
        first, second = (
            compiled_take(kernel, jax.random.key(11), s, PATH, beta)[0].position
            for s in (state, other)
        )
        np.testing.assert_array_equal(first[1:], second[1:])


class TestTunedTransition:
    kernel = TunedTransition(
        jnp.asarray(BETAS[1:]),
        pma.HMC(step_size=jnp.array([0.2, 0.8]), n_steps=jnp.array([3, 7]), scale=jnp.ones((2, 4))),
    )

    @pytest.mark.parametrize(
        ("beta", "step_size", "n_steps"),
        [(0.0, 0.2, 3), (0.4, 0.2, 3), (0.55, 0.35, 3), (0.7, 0.5, 3), (1.0, 0.8, 7)],
    )
    def test_interpolation(self, beta: float, step_size: float, n_steps: int) -> None:
        at = self.kernel.at(jnp.asarray(beta))
        assert float(at.step_size) == pytest.approx(step_size, rel=1e-6)
        assert int(at.n_steps) == n_steps
        assert at.scale.shape == (4,)

    def test_evaluations(self) -> None:
        betas = np.linspace(0, 1, 41)
        taken = [2 * int(self.kernel.at(jnp.asarray(b)).n_steps) + 1 for b in betas]
        np.testing.assert_array_equal(self.kernel.cost(betas), taken)

    def test_evaluations_of_a_composition(self) -> None:
        # One part costs the same at every temperature, the other does not.
        gibbs, betas = pma.Gibbs([4], [(0, 3)]), np.array([0.0, 0.5, 1.0])
        both = TunedTransition(self.kernel.betas, pma.Composition([gibbs, self.kernel.kernel]))
        np.testing.assert_array_equal(both.cost(betas), 3 + self.kernel.cost(betas))

    def test_one_temperature(self) -> None:
        kernels = pma.HMC(step_size=jnp.array([0.3]), n_steps=jnp.array([2]), scale=jnp.ones(1))
        single = TunedTransition(jnp.array([1.0]), kernels)
        for beta in (0.0, 0.5, 1.0):
            assert float(single.at(jnp.asarray(beta)).step_size) == pytest.approx(0.3, rel=1e-6)


@pytest.mark.parametrize(
    ("kernel", "cost"),
    [
        (pma.HMC(0.3, 4, 1.0), 9),
        (pma.RandomWalkMetropolis(0.3, 4, 1.0), 4),
        (pma.BlockTransition(pma.HMC(0.3, 4, 1.0), [0, 2]), 9),
        (
            pma.Composition(
                [
                    pma.BlockTransition(pma.HMC(0.3, 4, 1.0), [0]),
                    pma.Gibbs([1, 2], [(0, 1), (3, 5)]),
                ]
            ),
            9 + 2 * 2,
        ),
    ],
)
def test_evaluations_of_a_fixed_transition(kernel, cost: int) -> None:
    np.testing.assert_array_equal(kernel.cost(np.array([0.3, 1.0])), [cost, cost])


def terms_that_end(x: jax.Array) -> LogTerms:
    """A normal prior, zero likelihood beyond 0.5 in the first coordinate, NaN in the second."""
    log_likelihood = jnp.where(x[0] > 0.5, -jnp.inf, 0.0)
    return LogTerms(-0.5 * (x**2).sum(), jnp.where(x[1] > 0.5, jnp.nan, log_likelihood))


@parametrize("case", [c for c in TRANSITIONS if c.exported != "BlackJAXKernel"])
def test_zero_likelihood_rejects_and_nan_is_reported(case: Case) -> None:
    path, kernel = pma.GeometricPath(terms_that_end), case.make()
    position = np.random.default_rng(12).normal(0.0, 0.2, size=(500, 2)).clip(-0.5, 0.5)
    state = start(path, kernel, jax.random.key(12), position)
    new, info = compiled_take(kernel, jax.random.key(13), state, path, jnp.asarray(1.0))
    assert (new.position <= 0.5).all()
    assert (new.position != position).any()
    assert info.nan.any()
    assert not info.nan.all()
    assert (info.nan_position[info.nan][:, 1] > 0.5).all()


def test_a_divergence_is_a_rejection() -> None:
    # The quartic sends long steps to infinity, where the density is NaN: nobody's fault.
    def terms(x: jax.Array) -> LogTerms:
        return LogTerms(-0.5 * (x**2).sum(), -(x**4).sum() * (x.sum() + 10) / (x.sum() + 10))

    path, kernel = pma.GeometricPath(terms), pma.HMC(50.0, 20, 1.0)
    position = np.random.default_rng(14).normal(size=(100, 2))
    state = start(path, kernel, jax.random.key(14), position)
    new, info = compiled_take(kernel, jax.random.key(15), state, path, jnp.asarray(1.0))
    assert not info.nan.any()
    np.testing.assert_array_equal(new.position, position)
    assert (info.accept_rate == 0).all()

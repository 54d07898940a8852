"""Coordinates moved at once, by class: exact on models whose states can be counted."""

from dataclasses import replace
from functools import cache
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from scipy import special, stats

import pymc_anneal as pma

from pymc_anneal.base.contracts import KernelState
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.separate_terms import SeparateTerms, separate_terms
from pymc_anneal.transitions.by_class import can_move_by_class
from tests.cases import compiled_take, start, take

PARTICLES, BETA, LEVEL = 20_000, 0.7, 1e-6


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


@cache
def chain() -> tuple[CompiledModel, SeparateTerms]:
    """A chain of six states of 2 and 3 values in turn, each of which is seen."""
    with pm.Model() as model:
        up = pm.Bernoulli("up", 0.4, shape=3)
        c = pm.Categorical("c", [0.2, 0.5, 0.3], shape=3)
        pm.Potential("link", (1.1 * up * c).sum() - (0.8 * c[:-1] * up[1:]).sum())
        pm.Normal("y", up - 0.5 * c, 0.9, observed=[0.4, -1.0, 0.7])
    compiled = pma.compile_model(model)
    found = separate_terms(compiled)
    assert found is not None
    return compiled, found


CHAIN = np.array([(*u, *c) for u in product((0, 1), repeat=3) for c in product(range(3), repeat=3)])


@cache
def counts() -> tuple[CompiledModel, SeparateTerms]:
    """Six counts that share nothing."""
    with pm.Model() as model:
        n = pm.Poisson("n", [0.7, 1.5, 2.0, 1.0, 0.4, 2.5], shape=6)
        pm.Binomial("y", n, 0.4, observed=[0, 1, 1, 0, 0, 2])
    compiled = pma.compile_model(model)
    found = separate_terms(compiled)
    assert found is not None
    return compiled, found


def chain_kernel(separate: SeparateTerms, **settings) -> pma.Gibbs:
    support = [(0, 1)] * 3 + [(0, 2)] * 3
    return pma.Gibbs(range(6), support, separate=separate, **settings)


def counts_kernel(separate: SeparateTerms, **settings) -> pma.DiscreteRandomWalk:
    return pma.DiscreteRandomWalk(range(6), 0.8, 2, 1.0, separate=separate, **settings)


def move(kernel, compiled: CompiledModel, position: np.ndarray, step=compiled_take) -> KernelState:
    path = pma.GeometricPath(compiled.log_terms)
    state = start(path, kernel, jax.random.key(0), position)
    for i in range(3):
        state, info = step(kernel, jax.random.key(i), state, path, jnp.asarray(BETA))
        assert not info.nan.any()
    return state


def chain_is_invariant(kernel, step=compiled_take) -> bool:
    compiled, _ = chain()
    terms = jax.vmap(compiled.log_terms)(jnp.asarray(CHAIN, float))
    mass = special.softmax(terms.log_prior + BETA * terms.log_likelihood)
    rng = np.random.default_rng(3)
    position = CHAIN[rng.choice(len(mass), size=PARTICLES, p=mass)].astype(float)
    moved = np.asarray(move(kernel, compiled, position, step).position).astype(int)
    code = np.ravel_multi_index(moved.T, (2, 2, 2, 3, 3, 3))
    observed, expected = np.bincount(code, minlength=len(mass)), mass * PARTICLES
    often = expected > 5
    observed = np.append(observed[often], observed[~often].sum())
    expected = np.append(expected[often], expected[~often].sum())
    return stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > LEVEL


def counts_are_invariant(kernel, step=compiled_take) -> bool:
    compiled, _ = counts()
    mean, y = np.array([0.7, 1.5, 2.0, 1.0, 0.4, 2.5]), np.array([0, 1, 1, 0, 0, 2])
    n, rng = np.arange(30)[:, None], np.random.default_rng(4)
    log_mass = stats.poisson(mean).logpmf(n) + BETA * stats.binom(n, 0.4).logpmf(y)
    mass = special.softmax(log_mass, axis=0)
    position = np.stack([rng.choice(30, size=PARTICLES, p=p) for p in mass.T], axis=1)
    moved = np.asarray(move(kernel, compiled, position.astype(float), step).position)
    for column, p in zip(moved.T.astype(int), mass.T, strict=True):
        expected = p * PARTICLES
        often = expected > 5
        observed = np.bincount(column, minlength=30)
        observed = np.append(observed[often], observed[~often].sum())
        expected = np.append(expected[often], expected[~often].sum() + 1e-9)
        if stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue < LEVEL:
            return False
    return True


@pytest.mark.quick_cases("False")
@pytest.mark.parametrize("backward", [False, True])
def test_a_sweep_by_class_is_invariant(backward: bool) -> None:
    assert chain()[1].colour.max() == 1
    assert chain_is_invariant(chain_kernel(chain()[1], backward=backward))


def test_a_sweep_of_some_values_is_invariant() -> None:
    assert chain_is_invariant(replace(chain_kernel(chain()[1]), support=[(0, 1)] * 6))


def test_a_walk_by_class_is_invariant() -> None:
    assert counts()[1].colour.max() == 0
    assert counts_are_invariant(counts_kernel(counts()[1]))


@pytest.mark.slow
def test_terms_belong_to_the_position() -> None:
    for compiled, kernel in (
        (chain()[0], chain_kernel(chain()[1])),
        (counts()[0], counts_kernel(counts()[1])),
    ):
        position = compiled.sample_prior(np.random.SeedSequence(2), 50)
        state = move(kernel, compiled, position)
        expected = jax.vmap(compiled.log_terms)(state.position)
        np.testing.assert_allclose(state.terms.log_likelihood, expected.log_likelihood)
        assert (state.position != position).any(axis=0).all()


def test_the_cost_is_that_of_the_classes() -> None:
    np.testing.assert_array_equal(chain_kernel(chain()[1]).cost(np.zeros(2)), [6, 6])
    np.testing.assert_array_equal(counts_kernel(counts()[1]).cost(np.zeros(2)), [4, 4])


def test_paths_that_are_no_sums_of_terms_move_one_after_the_other() -> None:
    compiled, separate = chain()

    class Other(pma.GeometricPath):
        separable = False

    jax.tree_util.register_dataclass(Other, ["log_terms"], [])
    path, kernel = Other(compiled.log_terms), chain_kernel(separate)
    position = compiled.sample_prior(np.random.SeedSequence(2), 50)
    found, expected = (
        take(k, jax.random.key(1), start(path, k, jax.random.key(0), position), path, 0.5)[0]
        for k in (kernel, replace(kernel, separate=None))
    )
    np.testing.assert_array_equal(found.position, expected.position)


class TestBroken:
    """Moving coordinates at once that are not independent is seen."""

    def step(self):
        return jax.jit(lambda *args: take(*args))

    @pytest.mark.slow
    def test_neighbours_in_one_class(self) -> None:
        compiled, found = chain()
        owner = np.where(found.owner[0] < 6, found.owner[0], found.owner[1])[None]
        wrong = replace(found, colour=np.zeros(6, int), owner=owner)
        assert not chain_is_invariant(chain_kernel(wrong), self.step())

    def test_a_term_that_is_left_out(self) -> None:
        _, found = counts()
        likelihood = np.flatnonzero(found.tempered & (found.owner[0] == 5))
        owner = found.owner.copy()
        owner[0, likelihood] = 6
        assert not counts_are_invariant(counts_kernel(replace(found, owner=owner)), self.step())


def test_a_position_outside_is_not_reached() -> None:
    with pm.Model() as model:
        k = pm.Poisson("k", 1.0, shape=6)
        pm.Normal("y", pt.log(k + 1.0), 1.0, observed=np.zeros(6))  # NaN below -1
    compiled = pma.compile_model(model)
    kernel = pma.DiscreteRandomWalk(range(6), 3.0, 2, 1.0, separate=separate_terms(compiled))
    position = compiled.sample_prior(np.random.SeedSequence(2), 200)
    assert (np.asarray(move(kernel, compiled, position).position) >= 0).all()


def test_terms_with_rejected_nan_are_moved_one_by_one() -> None:
    compiled, found = chain()
    kernel, position = chain_kernel(found), np.zeros((2, 6))
    for one, expected in ((compiled, True), (compiled.rejecting_nan, False)):
        path = pma.GeometricPath(one.log_terms)
        state = start(path, kernel, jax.random.key(0), position)
        assert can_move_by_class(path, state) == expected

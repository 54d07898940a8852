"""Gibbs sweeps and perfect transitions of RBMs: exact at every temperature of both paths."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pymc_anneal.base.contracts import KernelState
from pymc_anneal.rbm.transitions import BlockedGibbs, PerfectTransition, gibbs_sweep
from tests.pooled import family, whitened_rows
from tests.rbm.lagging_path import LaggingPath
from tests.rbm.small_paths import (
    GEOMETRIC,
    KERNELS,
    PARTICLES,
    PATHS,
    SHAPE,
    TARGET,
    call,
    each_kernel,
    each_path,
    expected_rbm_at,
    step,
    sweep_probabilities,
)
from tests.rbm_cases import enumerate_states, exact_draws, frequencies_agree, states


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


BETAS = [0.0, 0.2, 0.35, 0.7, 1.0]


def is_invariant(path, kernel, beta: float) -> bool:
    model = expected_rbm_at(getattr(path, "path", path), beta)
    position = exact_draws(model, PARTICLES, np.random.default_rng(1))
    assert frequencies_agree(position, enumerate_states(model).probability)
    new = step(path, kernel, beta, position)[0].position
    return frequencies_agree(new, enumerate_states(model).probability)


@each_path
@each_kernel
@pytest.mark.parametrize("beta", BETAS)
def test_invariance(path, kernel, beta: float) -> None:
    assert is_invariant(path, kernel, beta)


def test_layers_are_drawn_with_numbers_of_their_own() -> None:
    """Layers of equal size that do not depend on each other."""
    seen, field = [], jnp.zeros((20_000, 3))

    def visible_field(hidden: jax.Array) -> jax.Array:
        seen.append(hidden)
        return field

    visible = gibbs_sweep(jax.random.key(1, impl="threefry2x32"), field, visible_field)
    together = (np.asarray(seen[0]) * np.asarray(visible)).mean(axis=0)
    np.testing.assert_allclose(together, 0.25, atol=5 * np.sqrt(3 / 16 / 20_000))


def moments_of(visible: np.ndarray) -> np.ndarray:
    """Return the units and the products of two of them, shape ``(n, 10)``."""
    i, j = np.triu_indices(visible.shape[1], k=1)
    return np.concatenate([visible, visible[:, i] * visible[:, j]], axis=1)


def test_moments() -> None:
    cases, rows = itertools.product(PATHS, KERNELS, BETAS), {}
    for seed, (path, kernel, beta) in enumerate(cases, start=10):  # independent: other draws
        model = expected_rbm_at(PATHS[path], beta)
        position = exact_draws(model, PARTICLES, np.random.default_rng(seed))
        moved = np.asarray(step(PATHS[path], KERNELS[kernel], beta, position, seed)[0].position)
        table, probability = moments_of(states(SHAPE[0])), enumerate_states(model).probability
        name = f"{path}, {kernel}, beta = {beta}"
        rows |= whitened_rows(name, moments_of(moved), table, probability)
    found = family("invariance: machines", rows)
    found.check()
    assert found.visible_shift < 0.01  # standard deviations of a moment
    assert not found.shifted(0.01).agrees


@pytest.mark.parametrize("beta", [0.35, 1.0])
def test_hidden_units_of_another_temperature_are_detected(beta: float) -> None:
    assert not is_invariant(LaggingPath(GEOMETRIC), BlockedGibbs(), beta)


@each_path
@pytest.mark.parametrize("beta", BETAS)
def test_gibbs_moves_by_the_conditionals(path, beta: float) -> None:
    start = states(SHAPE[0])[11]
    new = step(path, BlockedGibbs(), beta, np.tile(start, (PARTICLES, 1)), 2)[0].position
    assert frequencies_agree(new, sweep_probabilities(expected_rbm_at(path, beta), start))


@each_path
def test_perfect_transitions_are_independent_draws(path) -> None:
    start = np.tile(states(SHAPE[0])[11], (PARTICLES, 1))
    new = step(path, PerfectTransition(), 0.7, start, seed=3)[0].position
    assert frequencies_agree(new, enumerate_states(expected_rbm_at(path, 0.7)).probability)
    assert not frequencies_agree(new, enumerate_states(expected_rbm_at(path, 0.5)).probability)


@each_path
@each_kernel
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shapes_and_types_stay_the_same(path, kernel, dtype: type) -> None:
    path = jax.tree.map(lambda x: jnp.asarray(x, dtype), path)
    assert kernel.init(jax.random.key(0), states(SHAPE[0])) == ()
    assert kernel.at(0.3) is kernel

    def start(position) -> KernelState:
        return KernelState(position, path.evaluate(position), ())

    position = states(SHAPE[0]).astype(dtype)
    state = jax.eval_shape(start, position)
    key, beta = jax.random.key(1), jnp.asarray(0.7)
    new, info = jax.eval_shape(lambda s: kernel.step(key, s, path, beta), state)
    assert jax.tree.structure(new) == jax.tree.structure(state)
    for left, right in zip(jax.tree.leaves(new), jax.tree.leaves(state), strict=True):
        assert (left.shape, left.dtype) == (right.shape, right.dtype)
    assert info.accept_rate.shape == info.nan.shape == (16,)
    assert info.nan_position.shape == position.shape


@each_path
@each_kernel
def test_terms_belong_to_the_new_position(path, kernel) -> None:
    position = exact_draws(TARGET, PARTICLES, np.random.default_rng(2))
    new, info = step(path, kernel, 0.7, position)
    expected = call("evaluate_at", path, new.position, 0.7)
    for left, right in zip(jax.tree.leaves(new.terms), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-13)
    assert (info.accept_rate == 1).all()
    assert not info.nan.any()


@each_kernel
class TestContract:
    def test_fixed_kernels_that_are_their_own_reversal(self, kernel) -> None:
        assert kernel.reversal() is kernel
        assert not kernel.tuning.free
        assert np.isnan(kernel.step_sizes(np.linspace(0, 1, 3))).all()

    def test_cost_by_temperature(self, kernel) -> None:
        cost = kernel.cost(np.linspace(0, 1, 5))
        assert cost.shape == (5,)
        assert (cost >= 1).all()
        assert np.issubdtype(cost.dtype, np.integer)

    def test_name(self, kernel) -> None:
        assert kernel.name == type(kernel).__name__

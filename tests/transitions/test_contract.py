"""The contract of transitions, for every kernel, and the defaults that a new kernel inherits."""

from dataclasses import dataclass
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.base.arguments import resolve
from pymc_anneal.base.contracts import KernelState, LogTerms, StepInfo, Transition
from pymc_anneal.pipeline.choose_transition import TRANSITIONS as NAMED
from tests.cases import (
    DISCRETE_TRANSITIONS,
    LOG_GAMMA,
    TRANSITIONS,
    USER_TRANSITIONS,
    Case,
    compiled_take,
    log_gamma_terms,
    parametrize,
    start,
    target_of,
)

# As in the tests of invariance, so that each kernel is compiled once.
PARTICLES = 20_000
BETA = 0.6
BETAS = np.array([0.0, 0.25, 1.0])


CONTINUOUS = [*TRANSITIONS, *USER_TRANSITIONS]
KERNELS = [*CONTINUOUS, *DISCRETE_TRANSITIONS]


@cache
def initial_state(case: Case) -> KernelState:
    position = target_of(case).draw(BETA, PARTICLES, np.random.default_rng(5))
    return start(target_of(case).path, case.make(), jax.random.key(5), position)


def step(
    case: Case, kernel: Transition, state: KernelState, seed: int = 6
) -> tuple[KernelState, StepInfo]:
    path = target_of(case).path
    return compiled_take(kernel, jax.random.key(seed), state, path, jnp.asarray(BETA))


def assert_equal(first: object, second: object) -> None:
    """Two pytrees agree in structure and in every bit."""
    assert jax.tree.structure(first) == jax.tree.structure(second)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


@parametrize("case", KERNELS)
class TestStep:
    @pytest.mark.quick_cases(
        "hmc",
        "generalized_hmc",
        "random_walk",
        "mala",
        "barker",
        "blackjax_hmc",
        "independence",
        "gibbs",
        "joint_flip",
        "discrete_walk",
        "composition",
    )
    def test_shapes_and_types_stay_the_same(self, case: Case) -> None:
        kernel = case.make()
        state = initial_state(case)
        new, info = step(case, kernel, state)
        assert isinstance(new, KernelState)
        assert isinstance(info, StepInfo)
        assert jax.tree.structure(new) == jax.tree.structure(state)
        for a, b in zip(jax.tree.leaves(new), jax.tree.leaves(state), strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert info.accept_rate.shape == info.nan.shape == (PARTICLES,)
        assert info.nan_position.shape == state.position.shape

    def test_acceptance_is_a_probability(self, case: Case) -> None:
        kernel = case.make()
        state = initial_state(case)
        new, info = step(case, kernel, state)
        assert ((info.accept_rate >= 0) & (info.accept_rate <= 1 + 1e-12)).all()
        assert not info.nan.any()
        assert (new.position != state.position).any()

    def test_terms_belong_to_the_position(self, case: Case) -> None:
        kernel = case.make()
        new, _ = step(case, kernel, initial_state(case))
        expected = target_of(case).path.evaluate(new.position)
        for a, b in zip(new.terms, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)

    def test_the_key_determines_the_result(self, case: Case) -> None:
        kernel = case.make()
        state = initial_state(case)
        first, again, other = (step(case, kernel, state, seed)[0].position for seed in (8, 8, 9))
        assert (first == again).all()
        assert (first != other).any()

    def test_particles_are_independent(self, case: Case) -> None:
        kernel, target = case.make(), target_of(case)
        state = initial_state(case)
        elsewhere = target.draw(BETA, 1, np.random.default_rng(1))[0]
        position = state.position.at[0].set(elsewhere)
        other = KernelState(position, target.path.evaluate(position), state.auxiliary)
        first, second = (step(case, kernel, s, 11)[0].position for s in (state, other))
        np.testing.assert_array_equal(first[1:], second[1:])

    def test_other_coordinates_do_not_move(self, case: Case) -> None:
        kernel = case.make()
        state = initial_state(case)
        new = step(case, kernel, state)[0]
        moves = [part.moved_coordinates for part in kernel.parts]
        moved = {j for m in moves for j in (range(state.position.shape[1]) if m is None else m)}
        changed = np.flatnonzero((new.position != state.position).any(axis=0))
        assert set(changed.tolist()) == moved

    def test_whole_numbers_stay_whole(self, case: Case) -> None:
        kernel, before = case.make(), np.asarray(initial_state(case).position)
        position = np.asarray(step(case, kernel, initial_state(case))[0].position)
        whole = np.flatnonzero((before == before.round()).all(axis=0))
        for part in kernel.parts:
            if part.moves_integers:
                moved = np.intersect1d(whole, part.moved_coordinates)
                assert moved.size
                np.testing.assert_array_equal(position[:, moved], position[:, moved].round())


@parametrize("case", KERNELS)
class TestMethods:
    def test_name(self, case: Case) -> None:
        assert case.make().name

    def test_cost_is_a_whole_number_by_temperature(self, case: Case) -> None:
        cost = case.make().cost(BETAS)
        assert cost.shape == BETAS.shape
        assert np.issubdtype(cost.dtype, np.integer)
        assert (cost >= 1).all()
        assert case.make().cost(np.zeros(0)).shape == (0,)

    def test_step_sizes_by_temperature(self, case: Case) -> None:
        sizes = case.make().step_sizes(BETAS)
        assert sizes.shape == BETAS.shape
        assert np.isnan(sizes).all() or (sizes > 0).all()

    def test_the_reversal_of_the_reversal_is_the_kernel(self, case: Case) -> None:
        kernel = case.make()
        reversal = kernel.reversal()
        assert_equal(reversal.reversal(), kernel)
        np.testing.assert_array_equal(reversal.cost(BETAS), kernel.cost(BETAS))

    def test_with_parameters_replaces_one(self, case: Case) -> None:
        for part in case.make().parts:
            old = part.tuning.parameters
            for name in old:
                new = part.with_parameters({name: 3}).tuning.parameters
                assert new[name] == 3
                assert new.keys() == old.keys()
                for other in old.keys() - {name}:
                    np.testing.assert_array_equal(new[other], old[other])

    def test_given_parameters_are_not_free(self, case: Case) -> None:
        for part in case.make().parts:
            assert not part.tuning.free
            for name in part.tuning.parameters:
                assert part.with_parameters({name: None}).tuning.free == {name}

    def test_with_parts_puts_the_parts_together(self, case: Case) -> None:
        kernel = case.make()
        assert_equal(kernel.with_parts(kernel.parts), kernel)

    def test_at_gives_the_kernel_of_a_temperature(self, case: Case) -> None:
        kernel = case.make()
        at = kernel.at(BETA)
        assert_equal(at.at(BETA), at)
        state = initial_state(case)
        assert_equal(step(case, at, state)[0], step(case, kernel, state)[0])

    def test_step_by_part_is_the_same_move(self, case: Case) -> None:
        kernel, path = case.make().at(BETA), target_of(case).path
        if type(kernel).step_by_part is Transition.step_by_part:
            return  # the default is the step itself
        state, key = initial_state(case), jax.random.key(6)

        @jax.jit
        def by_part(kernel: Transition, key: jax.Array, state: KernelState):
            return kernel.step_by_part(key, state, path, BETA)

        new, infos = by_part(kernel, key, state)
        assert len(infos) == len(kernel.parts)
        expected, info = step(case, kernel, state)
        np.testing.assert_allclose(new.position, expected.position, rtol=1e-9, atol=1e-9)
        mean = np.mean([i.accept_rate for i in infos], axis=0)
        np.testing.assert_allclose(info.accept_rate, mean, rtol=1e-9, atol=1e-9)

    def test_the_kernel_is_a_pytree_of_numbers(self, case: Case) -> None:
        kernel = case.make()
        leaves, structure = jax.tree.flatten(kernel)
        assert all(hasattr(leaf, "dtype") or isinstance(leaf, int | float) for leaf in leaves)
        again = jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in leaves])
        state = initial_state(case)
        first, second = (step(case, k, state, 10)[0].position for k in (kernel, again))
        np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-9)


def three_terms(x: jax.Array) -> LogTerms:
    """The log-gamma target in the outer coordinates, a normal distribution in the middle one."""
    terms = log_gamma_terms(x[jnp.array([0, 2])])
    return terms._replace(log_prior=terms.log_prior - 0.5 * x[1] ** 2)


@pytest.mark.quick_cases("hmc", "generalized_hmc", "random_walk", "mala_scalar", "barker")
@parametrize("case", CONTINUOUS)
def test_restrictable_kernels_move_a_block(case: Case) -> None:
    kernel = case.make()
    if not kernel.restrictable:
        pytest.skip("the kernel moves all coordinates or none")
    block, path = pma.BlockTransition(kernel, [0, 2]), pma.GeometricPath(three_terms)
    position = np.random.default_rng(3).normal(size=(50, 3))
    state = start(path, block, jax.random.key(3), position)
    new, _ = compiled_take(block, jax.random.key(4), state, path, jnp.asarray(BETA))
    np.testing.assert_array_equal(new.position[:, 1], position[:, 1])
    assert (new.position[:, [0, 2]] != position[:, [0, 2]]).any(axis=0).all()
    np.testing.assert_array_equal(block.cost(BETAS), kernel.cost(BETAS))
    assert block.tuning.parameters.keys() == kernel.tuning.parameters.keys()


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Still(pma.Transition):
    """A kernel that leaves every particle in place; only ``step`` is written."""

    number: float = 1.0

    def step(self, key, state, path, beta):
        n = len(state.position)
        return state, StepInfo(jnp.ones(n), jnp.zeros(n, dtype=bool), state.position)


class TestDefaults:
    kernel = Still()

    def test_no_auxiliary_variables(self) -> None:
        assert self.kernel.init(jax.random.key(0), np.zeros((3, 2))) == ()

    def test_the_same_kernel_at_every_temperature_and_in_reverse(self) -> None:
        assert self.kernel.at(0.3) is self.kernel
        assert self.kernel.reversal() is self.kernel

    def test_one_evaluation(self) -> None:
        np.testing.assert_array_equal(self.kernel.cost(BETAS), [1, 1, 1])

    def test_all_coordinates_as_real_numbers(self) -> None:
        assert self.kernel.name == "Still"
        assert self.kernel.moved_coordinates is None
        assert not self.kernel.moves_integers
        assert self.kernel.restrictable

    def test_nothing_to_tune(self) -> None:
        assert self.kernel.tuning == pma.Tuning()
        assert not self.kernel.tuning.free
        assert np.isnan(self.kernel.step_sizes(BETAS)).all()

    def test_fields_are_the_parameters(self) -> None:
        assert self.kernel.with_parameters({"number": 2.0}) == Still(2.0)

    def test_effort_grows_by_level(self) -> None:
        sizes, numbers = zip(*(self.kernel.effort(level, 0.7) for level in range(24)), strict=True)
        assert set(sizes) == {0.7}
        assert numbers[0] == 1
        assert (np.diff(numbers) >= 1).all()

    def test_one_part(self) -> None:
        assert self.kernel.parts == (self.kernel,)
        assert self.kernel.with_parts([Still(2.0)]) == Still(2.0)
        state = KernelState(jnp.zeros((3, 2)), (), ())
        new, infos = self.kernel.step_by_part(jax.random.key(0), state, LOG_GAMMA.path, 0.5)
        assert new is state
        assert len(infos) == 1


class TestWithoutStep:
    def test_a_class_without_step_cannot_be_made(self) -> None:
        class Unfinished(pma.Transition):
            def cost(self, betas: np.ndarray) -> np.ndarray:
                return np.ones(len(betas), dtype=int)

        with pytest.raises(TypeError, match="abstract class Unfinished.*step"):
            Unfinished()

    def test_an_object_of_another_class_lacks_the_methods(self) -> None:
        class Unrelated:
            def step(self, key, state, path, beta):
                return state, None

        with pytest.raises(TypeError, match=r"is a Unrelated without the methods \['init'.*'cost'"):
            resolve(Unrelated(), NAMED, "transition", Transition)

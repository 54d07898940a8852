"""Paths and transitions between machines, and the partition functions that they lead to."""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from scipy.special import expit

import pymc_anneal as pma

from pymc_anneal import rbm
from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.base.arviz_compat import group, has_group
from pymc_anneal.base.contracts import KernelState, StepInfo
from pymc_anneal.evidence.ais import effective_sample_size
from pymc_anneal.rbm.exact import MAX_UNITS, log_partition_function, sample_exact
from pymc_anneal.rbm.model import RBM, reference_log_partition_function
from pymc_anneal.rbm.paths import GeometricRBMPath, softplus_increment
from pymc_anneal.rbm.spline_path import SplineRBMPath
from pymc_anneal.rbm.transitions import BlockedGibbs, PerfectTransition
from tests.rbm_cases import (
    enumerate_states,
    exact_draws,
    frequencies_agree,
    independent_units,
    mean_agrees,
    random_rbm,
    states,
)

SHAPE = 4, 3
TARGET = random_rbm(*SHAPE, scale=1.8)
REFERENCE = independent_units(*SHAPE)
MIDDLE = random_rbm(*SHAPE, seed=5, scale=0.7)
KNOTS = np.array([0.0, 0.35, 1.0])

GEOMETRIC = GeometricRBMPath(REFERENCE.visible_bias, TARGET)
with jax.enable_x64(True):
    SPLINE = SplineRBMPath.through(KNOTS, [REFERENCE, MIDDLE, TARGET])
PATHS = {"geometric": GEOMETRIC, "spline": SPLINE}
KERNELS = {"gibbs": BlockedGibbs(), "perfect": PerfectTransition()}

each_path = pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def machine_at(path: Any, beta: float) -> RBM:
    """The machine that a path should be at."""
    if isinstance(path, GeometricRBMPath):
        ends, share = (REFERENCE, TARGET), beta
    else:
        j = min(int(np.searchsorted(KNOTS, beta, side="right")) - 1, 1)
        ends = [(REFERENCE, MIDDLE), (MIDDLE, TARGET)][j]
        share = (beta - KNOTS[j]) / (KNOTS[j + 1] - KNOTS[j])
    return jax.tree.map(lambda a, b: (1 - share) * a + share * b, *ends)


@partial(jax.jit, static_argnames="name")
def call(name: str, path: Any, *arguments) -> Any:
    """A method of a path, compiled once for all temperatures."""
    return getattr(path, name)(*arguments)


class TestPaths:
    visible = states(SHAPE[0])

    @each_path
    @pytest.mark.parametrize("beta", [0.0, 0.2, 0.35, 0.6, 1.0])
    def test_density_and_machine(self, path, beta: float) -> None:
        model = machine_at(path, beta)
        found = call("model_at", path, beta)
        for left, right in zip(jax.tree.leaves(found), jax.tree.leaves(model), strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-13, atol=1e-15)
        elsewhere = call("evaluate", path, self.visible)
        for terms in (elsewhere, call("evaluate_at", path, self.visible, beta)):
            density = call("log_density", path, terms, beta)
            np.testing.assert_allclose(
                density, model.log_density(self.visible), rtol=1e-12, atol=1e-13
            )
            field = call("hidden_field", path, call("at", path, terms, beta), beta)
            np.testing.assert_allclose(
                expit(field), model.hidden_probability(self.visible), rtol=1e-12
            )
        hidden = states(SHAPE[1])
        field = call("visible_field", path, hidden, beta)
        np.testing.assert_allclose(expit(field), model.visible_probability(hidden), rtol=1e-12)

    @each_path
    @pytest.mark.parametrize(
        ("start", "stop"),
        [
            (0.0, 1.0),
            (0.1, 0.2),
            (0.2, 0.7),
            (0.1, 0.35),
            (0.35, 0.9),
            (0.5, 0.5),
            (0.7, 0.2),
            (1.0, 0.0),
            (0.35, 0.1),
            (0.9, 0.35),
        ],
    )
    def test_ratio(self, path, start: float, stop: float) -> None:
        upper, lower = (machine_at(path, b).log_density(self.visible) for b in (stop, start))
        for at in (0.0, start, stop):
            terms = call("evaluate_at", path, self.visible, at)
            found = call("log_ratio", path, terms, start, stop)
            np.testing.assert_allclose(found, upper - lower, rtol=1e-11, atol=1e-13)

    @each_path
    @pytest.mark.parametrize("width", [1e-7, 1e-10])
    def test_small_steps_lose_nothing(self, path, width: float) -> None:
        terms = call("evaluate_at", path, self.visible, 0.6)
        stop = 0.6 + width
        ratio = np.asarray(call("log_ratio", path, terms, 0.6, stop))
        midpoint = np.asarray(call("velocity", path, terms, 0.6 + width / 2)) * (stop - 0.6)
        np.testing.assert_allclose(ratio, midpoint, rtol=1e-9)
        upper, lower = (call("log_density", path, terms, beta) for beta in (stop, 0.6))
        assert not np.allclose(upper - lower, midpoint, rtol=1e-9, atol=0)

    def test_many_knots_in_one_step(self) -> None:
        knots = np.linspace(0, 1, 6)
        machines = [REFERENCE, *(random_rbm(*SHAPE, seed=i) for i in range(4)), TARGET]
        path = SplineRBMPath.through(knots, machines)
        terms = call("evaluate", path, self.visible)
        expected = TARGET.log_density(self.visible) - REFERENCE.log_density(self.visible)
        found = call("log_ratio", path, terms, 0.0, 1.0)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        for knot, model in zip(knots, machines, strict=True):
            density = call("log_density", path, terms, knot)
            np.testing.assert_allclose(density, model.log_density(self.visible), rtol=1e-12)

    @each_path
    @pytest.mark.parametrize("beta", [0.0, 0.2, 0.6, 0.999])
    def test_velocity(self, path, beta: float) -> None:
        terms = call("evaluate", path, self.visible)
        slope = self.slope(path, terms, beta)
        for at in (terms, call("evaluate_at", path, self.visible, beta)):
            np.testing.assert_allclose(call("velocity", path, at, beta), slope, rtol=1e-10)
        h = 1e-6
        upper, lower = (machine_at(path, b).log_density(self.visible) for b in (beta + h, beta))
        np.testing.assert_allclose(slope, (upper - lower) / h, atol=1e-4)

    @staticmethod
    @jax.jit
    def slope(path, terms, beta):
        return jax.jvp(lambda b: path.log_density(terms, b), (beta,), (jnp.ones_like(beta),))[1]

    def test_two_knots_are_a_geometric_path(self) -> None:
        spline = SplineRBMPath.through(np.array([0.0, 1.0]), [REFERENCE, TARGET])
        left, right = (call("evaluate", p, self.visible) for p in (spline, GEOMETRIC))
        for beta in (0.0, 0.3, 1.0):
            for name in ("log_density", "velocity", "hidden_field"):
                pair = call(name, spline, left, beta), call(name, GEOMETRIC, right, beta)
                np.testing.assert_allclose(*pair, rtol=1e-12, atol=1e-13)
        for start, stop in [(0.0, 0.3), (0.3, 1.0), (0.8, 0.1)]:
            pair = (
                call("log_ratio", spline, left, start, stop),
                call("log_ratio", GEOMETRIC, right, start, stop),
            )
            np.testing.assert_allclose(*pair, rtol=1e-12)
        three = call("log_density", SPLINE, call("evaluate", SPLINE, self.visible), 0.3)
        assert not np.allclose(three, call("log_density", GEOMETRIC, right, 0.3))

    @pytest.mark.parametrize(
        ("knots", "models", "message"),
        [
            ([0.0, 1.0], [REFERENCE, MIDDLE, TARGET], "Found 3 RBMs .* for 2 knots"),
            ([0.0, 0.5, 1.0], [REFERENCE, TARGET], "Found 2 RBMs .* for 3 knots"),
            ([0.0, 1.0], [REFERENCE, random_rbm(4, 2)], r"shapes \[\(4, 2\), \(4, 3\)\]"),
            ([0.0, 0.7, 0.5, 1.0], [REFERENCE] * 4, "not increasing"),
            ([0.1, 1.0], [REFERENCE, TARGET], "starts at 0.1"),
        ],
    )
    def test_bad_splines(self, knots, models, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            SplineRBMPath.through(np.array(knots), models)

    @pytest.mark.parametrize("setting", [True, False])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_the_type_of_a_spline_is_that_of_its_machines(self, dtype: type, setting: bool) -> None:
        with jax.enable_x64(setting):
            models = [m.astype(dtype) for m in (REFERENCE, MIDDLE, TARGET)]
            path = SplineRBMPath.through(KNOTS, models)
        assert {x.dtype for x in jax.tree.leaves((path.start, path.change))} == {np.dtype(dtype)}

    @each_path
    def test_single_machines_stay_single(self, path) -> None:
        def everything(path, visible, hidden, beta):
            terms = path.evaluate_at(visible, beta)
            return (
                path.log_ratio(terms, beta, beta + 0.1),
                path.velocity(terms, beta),
                path.hidden_field(terms, beta),
                path.visible_field(hidden, beta),
                path.model_at(beta),
            )

        single = jax.tree.map(lambda x: np.asarray(x, np.float32), path)
        layers = (np.asarray(states(n), np.float32) for n in SHAPE)
        found = jax.eval_shape(everything, single, *layers, jnp.float64(0.6))
        assert {x.dtype for x in jax.tree.leaves(found)} == {np.dtype(np.float32)}


class TestSoftplusIncrement:
    @staticmethod
    def exactly(x: float, d: float) -> float:
        with localcontext() as context:
            context.prec = 80
            one, x, d = Decimal(1), Decimal(float(x)), Decimal(float(d))
            return float((one + (x + d).exp()).ln() - (one + x.exp()).ln())

    FIELDS = [-60.0, -20.0, -3.0, -0.1, 0.0, 0.4, 5.0, 15.0, 25.0, 40.0]

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("sign", [1, -1])
    @pytest.mark.parametrize("size", [1e-12, 1e-9, 1e-6, 1e-3, 0.1, 1.0, 8.0, 17.0, 30.0])
    def test_relative_precision(self, size: float, sign: int, dtype: type) -> None:
        x, d = np.array(self.FIELDS, dtype), np.full(len(self.FIELDS), sign * size, dtype)
        expected = np.array([self.exactly(*pair) for pair in zip(x, d, strict=True)])
        found = np.asarray(softplus_increment(x, d))
        assert found.dtype == dtype
        # Single precision underflows on its own below 1e-38, and loses some 20 eps in exp(-60).
        np.testing.assert_allclose(found, expected, rtol=60 * np.finfo(dtype).eps, atol=1e-37)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize(("x", "d"), [(0.0, 1000.0), (-1500.0, 2000.0), (500.0, -1000.0)])
    def test_fields_of_large_machines_in_few_steps(self, x: float, d: float, dtype: type) -> None:
        found = softplus_increment(np.array(x, dtype), np.array(d, dtype))
        assert float(found) == pytest.approx(self.exactly(x, d), rel=1e-6)

    def test_a_difference_is_a_wrong_twin(self) -> None:
        x, d = np.float32(5.0), np.float32(1e-6)
        naive = np.logaddexp(0, x + d) - np.logaddexp(0, x)
        assert abs(naive / self.exactly(x, d) - 1) > 0.01


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Lagging:
    """A path whose hidden units are those of a smaller beta."""

    path: Any

    def __getattr__(self, name: str) -> Any:
        if name == "path":
            raise AttributeError(name)
        return getattr(self.path, name)

    def hidden_field(self, terms, beta):
        return self.path.hidden_field(terms, 0.1 * beta)


def swept(model: RBM, start: np.ndarray) -> np.ndarray:
    """Probabilities of the visible states one sweep after a state."""
    h, v = states(model.n_hidden), states(model.n_visible)
    hidden = model.hidden_probability(start)
    p_hidden = np.where(h > 0, hidden, 1 - hidden).prod(axis=1)
    visible = model.visible_probability(h)[:, None]
    return p_hidden @ np.where(v[None] > 0, visible, 1 - visible).prod(axis=2)


PARTICLES = 20_000


@partial(jax.jit, static_argnames="kernel_type")
def compiled_step(key, position, path, beta, kernel_type) -> tuple[KernelState, StepInfo]:
    # The terms may come from another temperature, as in the engine.
    state = KernelState(position, path.evaluate(position), ())
    return kernel_type().step(key, state, path, beta)


def step(path: Any, kernel: Any, beta: float, position: np.ndarray, seed: int = 0):
    key = jax.random.key(seed, impl="threefry2x32")
    return compiled_step(key, position, path, jnp.asarray(beta), type(kernel))


BETAS = [0.0, 0.2, 0.35, 0.7, 1.0]


class TestTransitions:
    def invariant(self, path, kernel, beta: float) -> bool:
        model = machine_at(getattr(path, "path", path), beta)
        position = exact_draws(model, PARTICLES, np.random.default_rng(1))
        assert frequencies_agree(position, enumerate_states(model).probability)
        moved = step(path, kernel, beta, position)[0].position
        return frequencies_agree(moved, enumerate_states(model).probability)

    @each_path
    @each_kernel
    @pytest.mark.parametrize("beta", BETAS)
    def test_invariance(self, path, kernel, beta: float) -> None:
        assert self.invariant(path, kernel, beta)

    @pytest.mark.parametrize("beta", [0.35, 1.0])
    def test_hidden_units_of_another_temperature(self, beta: float) -> None:
        assert not self.invariant(Lagging(GEOMETRIC), BlockedGibbs(), beta)

    @each_path
    @pytest.mark.parametrize("beta", BETAS)
    def test_gibbs_moves_by_the_conditionals(self, path, beta: float) -> None:
        start = states(SHAPE[0])[11]
        moved = step(path, BlockedGibbs(), beta, np.tile(start, (PARTICLES, 1)), 2)[0].position
        assert frequencies_agree(moved, swept(machine_at(path, beta), start))

    @each_path
    def test_perfect_moves_anywhere(self, path) -> None:
        start = np.tile(states(SHAPE[0])[11], (PARTICLES, 1))
        moved = step(path, PerfectTransition(), 0.7, start, seed=3)[0].position
        assert frequencies_agree(moved, enumerate_states(machine_at(path, 0.7)).probability)
        assert not frequencies_agree(moved, enumerate_states(machine_at(path, 0.5)).probability)

    @each_path
    @each_kernel
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_shapes_and_types_stay(self, path, kernel, dtype: type) -> None:
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
    def test_terms_are_those_of_the_new_position(self, path, kernel) -> None:
        position = exact_draws(TARGET, PARTICLES, np.random.default_rng(2))
        new, info = step(path, kernel, 0.7, position)
        expected = call("evaluate_at", path, new.position, 0.7)
        for left, right in zip(jax.tree.leaves(new.terms), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-13)
        assert (info.accept_rate == 1).all()
        assert not info.nan.any()


# Strong enough for a wrong order to show, weak enough for one step to do.
LOG_RATIO = enumerate_states(TARGET).log_z - reference_log_partition_function(REFERENCE)
MIN_SHARE = 0.02


def unbiased(log_weight: np.ndarray, log_ratio: float) -> bool:
    """Whether the mean of the weights agrees with the ratio of normalisers."""
    assert effective_sample_size(log_weight) > MIN_SHARE * log_weight.size
    return mean_agrees(np.exp(np.ravel(log_weight) - log_ratio), 1.0)


def annealed(path, kernel, betas, position, seed: int):
    """Run by the engine."""
    sequence = np.random.SeedSequence(seed)
    return run_block(Block(path, kernel, np.asarray(betas), np.asarray(position), 2, sequence))


def bad_schedule(steps: int) -> np.ndarray:
    return np.linspace(0, 1, steps + 1) ** 2


def by_hand(path, kernel, betas, position, order: str) -> np.ndarray:
    """Anneal in a loop of its own, rightly or wrongly; downwards if the betas decrease."""
    log_weight = np.zeros(len(position))
    backward = betas[0] > betas[-1]
    for k, (start, stop) in enumerate(zip(betas[:-1], betas[1:], strict=True)):
        moved = np.asarray(
            step(path, kernel, start if backward and order == "right" else stop, position, k)[
                0
            ].position
        )
        first = backward or order == "after"
        terms = call("evaluate", path, moved if first else position)
        log_weight += np.asarray(call("log_ratio", path, terms, start, stop))
        position = moved
    return log_weight


class TestUnbiasedness:
    @pytest.mark.parametrize(
        ("path", "kernel"),
        [
            (GEOMETRIC, BlockedGibbs()),
            (SPLINE, BlockedGibbs()),
            (SPLINE, PerfectTransition()),
        ],
        ids=["geometric-gibbs", "spline-gibbs", "spline-perfect"],
    )
    @pytest.mark.parametrize("steps", [1, 2, 3, 4, 5])
    def test_upwards(self, path, kernel, steps: int) -> None:
        position = exact_draws(REFERENCE, PARTICLES, np.random.default_rng(steps))
        result = annealed(path, kernel, bad_schedule(steps), position, steps)
        assert unbiased(result.log_weight, LOG_RATIO)

    @each_path
    @pytest.mark.parametrize("steps", [1, 2, 3, 5])
    def test_downwards(self, path, steps: int) -> None:
        position = sample_exact(TARGET, PARTICLES, random_seed=steps)
        result = annealed(path, BlockedGibbs(), np.linspace(1, 0, steps + 1), position, steps)
        assert unbiased(result.log_weight, -LOG_RATIO)

    def test_hidden_biases_in_the_reference(self) -> None:
        reference = independent_units(*SHAPE, seed=3, hidden=True)
        path = SplineRBMPath.through(KNOTS, [reference, MIDDLE, TARGET])
        log_ratio = enumerate_states(TARGET).log_z - reference_log_partition_function(reference)
        position = exact_draws(reference, PARTICLES, np.random.default_rng(3))
        result = annealed(path, BlockedGibbs(), bad_schedule(3), position, 3)
        assert unbiased(result.log_weight, log_ratio)

    @pytest.mark.parametrize("order", ["right", "after"])
    def test_weighing_after_the_move_is_found(self, order: str) -> None:
        position = exact_draws(REFERENCE, PARTICLES, np.random.default_rng(4))
        log_weight = by_hand(GEOMETRIC, BlockedGibbs(), bad_schedule(4), position, order)
        assert unbiased(log_weight, LOG_RATIO) is (order == "right")

    @pytest.mark.parametrize("order", ["right", "new temperature"])
    def test_moving_at_the_new_temperature_on_the_way_down_is_found(self, order: str) -> None:
        position = sample_exact(TARGET, PARTICLES, random_seed=5)
        log_weight = by_hand(GEOMETRIC, BlockedGibbs(), np.linspace(1, 0, 4), position, order)
        assert unbiased(log_weight, -LOG_RATIO) is (order == "right")

    def test_the_hidden_units_of_another_temperature_are_found(self) -> None:
        position = exact_draws(REFERENCE, PARTICLES, np.random.default_rng(6))
        path, betas = Lagging(GEOMETRIC), bad_schedule(8)
        assert not unbiased(by_hand(path, BlockedGibbs(), betas, position, "right"), LOG_RATIO)


class TestDirection:
    @each_path
    def test_upwards_weighs_before_it_moves(self, path) -> None:
        position = np.tile(states(SHAPE[0]), (PARTICLES // 16, 1))
        result = annealed(path, BlockedGibbs(), [0.0, 1.0], position, 1)
        ratio = TARGET.log_density(position) - REFERENCE.log_density(position)
        np.testing.assert_allclose(result.log_weight.ravel(), ratio, rtol=1e-12)
        assert (result.position.reshape(-1, SHAPE[0]) != position).any()

    @each_path
    def test_downwards_moves_before_it_weighs(self, path) -> None:
        position = np.tile(states(SHAPE[0]), (PARTICLES // 16, 1))
        result = annealed(path, BlockedGibbs(), [1.0, 0.0], position, 1)
        end = result.position.reshape(-1, SHAPE[0])
        ratio = REFERENCE.log_density(end) - TARGET.log_density(end)
        np.testing.assert_allclose(result.log_weight.ravel(), ratio, rtol=1e-12)
        assert (end != position).any()

    @each_path
    def test_the_first_move_downwards_is_at_the_target(self, path) -> None:
        # From a single state: sum over h of p(h | v) p(v' | h) of the target.
        start = states(SHAPE[0])[11]
        result = annealed(path, BlockedGibbs(), [1.0, 0.0], np.tile(start, (PARTICLES, 1)), 2)
        end = result.position.reshape(-1, SHAPE[0])
        assert frequencies_agree(end, swept(TARGET, start))
        assert not frequencies_agree(end, swept(REFERENCE, start))

    def test_both_directions_are_one_process(self) -> None:
        # Crooks: the mean of any phi(log w) weighted by w upwards is that of phi(-log w) downwards.
        up = annealed(
            GEOMETRIC,
            BlockedGibbs(),
            np.linspace(0, 1, 3),
            exact_draws(REFERENCE, PARTICLES, np.random.default_rng(7)),
            7,
        ).log_weight.ravel()
        down = annealed(
            GEOMETRIC, BlockedGibbs(), np.linspace(1, 0, 3), sample_exact(TARGET, PARTICLES, 8), 8
        ).log_weight.ravel()
        for phi in (np.tanh, np.square, np.abs):
            weighted = np.exp(up - LOG_RATIO) * phi(up - LOG_RATIO)
            mirrored = phi(-down - LOG_RATIO)
            error = np.hypot(weighted.std(), mirrored.std()) / np.sqrt(PARTICLES)
            assert abs(weighted.mean() - mirrored.mean()) < 5 * error


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Twin:
    """A single-precision path that moves; weights by itself, by doubles, or by differences."""

    single: GeometricRBMPath
    double: GeometricRBMPath
    weigh: Any  # 0, 1 or 2: in single precision, in double, by a difference

    def evaluate(self, position):
        return self.single.evaluate(position), self.double.evaluate(position.astype(jnp.float64))

    def evaluate_at(self, position, beta):
        return self.evaluate(position)

    def at(self, terms, beta):
        return terms

    def log_density(self, terms, beta):
        return self.single.log_density(terms[0], beta)

    def log_ratio(self, terms, start, stop):
        upper, lower = (self.single.log_density(terms[0], beta) for beta in (stop, start))
        ways = (
            self.single.log_ratio(terms[0], start, stop),
            self.double.log_ratio(terms[1], start, stop),
            upper - lower,
        )
        return jnp.stack([way.astype(jnp.float64) for way in ways])[self.weigh]

    def velocity(self, terms, beta):
        return self.single.velocity(terms[0], beta)

    def hidden_field(self, terms, beta):
        return self.single.hidden_field(terms[0], beta)

    def visible_field(self, hidden, beta):
        return self.single.visible_field(hidden, beta)


class TestPrecision:
    """Log weights of a machine in single precision, along the same trajectory."""

    STEPS = 3000

    @pytest.fixture(scope="class")
    @classmethod
    def log_weight(cls) -> dict[str, np.ndarray]:
        target = random_rbm(30, 20, scale=0.5, dtype=np.float32)
        reference = independent_units(30, 20).astype(np.float32)
        single = GeometricRBMPath(reference.visible_bias, target)
        double = jax.tree.map(lambda x: x.astype(np.float64), single)
        position = reference.sample(40, steps=1, random_seed=1)
        betas, results = np.linspace(0, 1, cls.STEPS + 1), {}
        with jax.enable_x64(True):
            for i, weigh in enumerate(("single", "double", "differences")):
                path = Twin(single, double, np.array(i))
                results[weigh] = annealed(path, BlockedGibbs(), betas, position, 1)
        for weigh in results:
            np.testing.assert_array_equal(results[weigh].position, results["double"].position)
        return {name: result.log_weight for name, result in results.items()}

    def error(self, log_weight: dict[str, np.ndarray], weigh: str) -> float:
        return float(np.abs(log_weight[weigh] / log_weight["double"] - 1).max())

    def test_nothing_is_lost(self, log_weight: dict[str, np.ndarray]) -> None:
        assert log_weight["single"].dtype == np.float64
        assert self.error(log_weight, "single") < 1e-6

    def test_differences_of_densities_are_worse(self, log_weight: dict[str, np.ndarray]) -> None:
        assert self.error(log_weight, "differences") > 10 * self.error(log_weight, "single")
        assert self.error(log_weight, "differences") > 1e-6


# The whole of it: one machine, one size of block, so that little is compiled.
MODEL = random_rbm(8, 6, seed=4, scale=1.3, dtype=np.float32)
LOG_Z = log_partition_function(MODEL)
BASE = rbm.base_rate_reference(sample_exact(MODEL, 100, random_seed=1), 6)
QUICK: dict[str, Any] = {
    "draws": 100,
    "chains": 2,
    "steps": 200,
    "schedule": "linear",
    "random_seed": 1,
    "block_size": 100,
    "progressbar": False,
}
MAX_STEP = 0.006


def estimate(**arguments) -> pma.LogEvidence:
    return pma.log_evidence(rbm.sample_ais(MODEL, **QUICK | arguments))


def close(found: pma.LogEvidence, log_z: float = LOG_Z) -> bool:
    assert found.ess > 50
    assert 0 < found.mcse < 0.2
    return abs(found.log_evidence - log_z) < 4 * found.mcse


def betas_of(result: Any) -> np.ndarray:
    return group(result, "annealing")["beta"].values[0]


@pytest.fixture(scope="module")
def result() -> Any:
    return rbm.sample_ais(MODEL, **QUICK)


def assert_same(first: Any, second: Any) -> None:
    for name in ("posterior", "sample_stats", "annealing", "evidence"):
        left, right = group(first, name), group(second, name)
        assert set(left.variables) == set(right.variables)
        for variable in set(left.variables) - {"seconds"}:
            np.testing.assert_array_equal(left[variable].values, right[variable].values)


class TestSampleAis:
    @pytest.mark.parametrize(
        "schedule",
        [
            *("variational", "optimal_binned"),
            *("linear", "salakhutdinov_murray", "power", "geometric", "sigmoid"),
        ],
    )
    def test_every_schedule(self, schedule: str) -> None:
        assert close(estimate(schedule=schedule))

    def test_schedules_of_ones_own(self) -> None:
        assert close(estimate(schedule=partial(pma.power_schedule, power=2.0)))
        result = rbm.sample_ais(MODEL, **QUICK | {"schedule": np.linspace(0, 1, 151)})
        assert close(pma.log_evidence(result))
        assert group(result, "annealing").sizes["step"] == 150

    def test_largest_step(self) -> None:
        arguments = QUICK | {"schedule": "variational"}
        free, bound = (
            rbm.sample_ais(MODEL, **arguments, max_step=m, reference=BASE) for m in (None, MAX_STEP)
        )
        assert np.diff(betas_of(free)).max() > MAX_STEP
        assert np.diff(betas_of(bound)).max() <= MAX_STEP * (1 + 1e-9)
        assert close(pma.log_evidence(bound))

    @pytest.mark.parametrize("reference", ["uniform", BASE], ids=["uniform", "base_rates"])
    @pytest.mark.parametrize("transition", ["gibbs", "perfect"])
    def test_references_and_transitions(self, reference, transition) -> None:
        assert close(estimate(reference=reference, transition=transition))

    @pytest.mark.parametrize(
        ("dtype", "transition"), [(np.float32, "gibbs"), (np.float64, "perfect")]
    )
    def test_hidden_biases_in_the_reference(self, dtype: type, transition: str) -> None:
        reference = independent_units(8, 6, seed=3, hidden=True)
        arguments = QUICK | {"reference": reference, "transition": transition}
        with jax.enable_x64(False):
            result = rbm.sample_ais(MODEL.astype(dtype), **arguments)
        assert close(pma.log_evidence(result))
        assert group(result, "evidence").attrs["path"] == "SplineRBMPath"

    def test_a_spline(self) -> None:
        reference = BASE.astype(np.float32)
        middle = random_rbm(8, 6, seed=4, scale=0.4, dtype=np.float32)
        path = SplineRBMPath.through(KNOTS, [reference, middle, MODEL])
        assert close(estimate(path=path, reference=reference))

    @pytest.mark.parametrize(
        "path",
        [
            GeometricRBMPath(np.zeros(8, np.float32), MODEL),
            GeometricRBMPath(
                BASE.visible_bias.astype(np.float32), random_rbm(8, 6, seed=9, dtype=np.float32)
            ),
        ],
        ids=["other_reference", "other_model"],
    )
    def test_a_path_between_other_machines_is_refused(self, path) -> None:
        # Its weights would be those of another ratio of partition functions.
        with pytest.raises(ValueError, match="path"):
            rbm.sample_ais(MODEL, **QUICK, path=path, reference=BASE)

    def test_equal_machines_have_no_error(self) -> None:
        reference = independent_units(8, 6)
        result = rbm.sample_ais(reference, **QUICK, reference=reference)
        found = pma.log_evidence(result)
        assert found.mcse == pytest.approx(0, abs=1e-9)
        assert found.log_evidence == pytest.approx(enumerate_states(reference).log_z, rel=1e-12)

    def test_sizes(self) -> None:
        # Even blocks, so that there are no more particles than asked for.
        arguments = {"chains": 3, "draws": 50, "block_size": 120, "steps": 20}
        data = rbm.sample_ais(MODEL, **QUICK | arguments)
        assert group(data, "annealing")["log_weight"].shape == (3, 50)
        assert group(data, "posterior")["visible"].shape == (3, 50, 8)
        assert group(data, "evidence")["particles"] == 150
        assert len(np.unique(group(data, "annealing")["log_weight"])) > 100


class TestReverse:
    ARGUMENTS = QUICK | {"direction": "reverse", "reference": BASE}

    @pytest.fixture(scope="class")
    @classmethod
    def result(cls) -> Any:
        return rbm.sample_ais(MODEL, **cls.ARGUMENTS)

    def test_log_partition_function(self, result) -> None:
        assert close(pma.log_evidence(result))

    @pytest.mark.parametrize(
        "arguments",
        [{"schedule": "variational"}, {"reference": "uniform"}],
        ids=str,
    )
    def test_other_arguments(self, arguments: dict[str, Any]) -> None:
        found = rbm.sample_ais(MODEL, **self.ARGUMENTS | arguments)
        assert close(pma.log_evidence(found))

    def test_the_other_sign_is_found(self, result) -> None:
        log_weight = group(result, "annealing")["log_weight"].values
        log_z0 = reference_log_partition_function(BASE)
        mean = np.logaddexp.reduce(log_weight, axis=None) - np.log(log_weight.size)
        assert log_z0 - mean == pytest.approx(pma.log_evidence(result).log_evidence)
        assert abs(log_z0 + mean - LOG_Z) > 5 * pma.log_evidence(result).mcse

    def test_temperatures_fall_to_the_reference(self, result) -> None:
        np.testing.assert_allclose(betas_of(result), 1 - np.arange(1, 201) / 200, atol=1e-15)
        assert has_group(result, "prior")
        assert not has_group(result, "posterior")
        visible = group(result, "prior")["visible"].values.reshape(-1, 8)
        assert mean_agrees(visible, enumerate_states(BASE).moments.visible)
        assert not mean_agrees(visible, np.full(8, 0.5))

    def test_estimates_by_step(self, result) -> None:
        # log Z of the machine at each temperature, as of a forward run.
        path = GeometricRBMPath(BASE.visible_bias, MODEL.astype(np.float64))
        log_z = group(result, "annealing")["log_z"].values.mean(axis=0)
        for k in (0, 80, 150, 199):
            model = jax.tree.map(np.asarray, path.model_at(betas_of(result)[k]))
            assert log_z[k] == pytest.approx(enumerate_states(model).log_z, abs=0.3)

    def test_large_machines_are_refused(self) -> None:
        large = rbm.uniform_reference(MAX_UNITS + 1, MAX_UNITS + 2)
        with pytest.raises(ValueError, match="smaller layer has 26 units.* at most 25"):
            rbm.sample_ais(large, **QUICK, direction="reverse")

    def test_unknown_directions(self) -> None:
        with pytest.raises(ValueError, match="`direction` is 'down', expected \"forward\" or"):
            rbm.sample_ais(MODEL, **QUICK, direction="down")


class TestBits:
    def test_cores(self) -> None:
        first, second = (rbm.sample_ais(MODEL, **QUICK, cores=cores) for cores in (1, 2))
        assert_same(first, second)

    def test_seeds(self, result) -> None:
        assert_same(result, rbm.sample_ais(MODEL, **QUICK))
        other = rbm.sample_ais(MODEL, **QUICK | {"random_seed": 2})
        assert pma.log_evidence(other).log_evidence != pma.log_evidence(result).log_evidence

    def test_kinds_of_seeds(self, result) -> None:
        again = rbm.sample_ais(MODEL, **QUICK | {"random_seed": np.random.SeedSequence(1)})
        assert_same(result, again)

    def test_precision_of_the_caller(self, result) -> None:
        with jax.enable_x64(False):
            assert_same(result, rbm.sample_ais(MODEL, **QUICK))


class TestContainer:
    def test_groups(self, result) -> None:
        assert all(
            has_group(result, name)
            for name in ("posterior", "sample_stats", "annealing", "evidence")
        )
        posterior = group(result, "posterior")["visible"]
        assert posterior.dims == ("chain", "draw", "visible_dim_0")
        assert posterior.shape == (2, 100, 8)
        assert posterior.dtype == np.int8
        assert set(np.unique(posterior)) <= {0, 1}

    def test_draws_are_those_of_the_machine(self, result) -> None:
        mean = group(result, "posterior")["visible"].values.mean(axis=(0, 1))
        p = enumerate_states(MODEL).moments.visible
        deviation = np.abs(mean - p) / np.sqrt(p * (1 - p) / 200)
        assert deviation.max() < 5.5
        assert (np.abs(mean - 0.5) / np.sqrt(0.25 / 200)).max() > 5.5

    def test_evidence(self, result) -> None:
        data, found = group(result, "evidence"), pma.log_evidence(result)
        assert found.log_evidence == float(data["log_evidence"])
        assert found.interval[0] < found.log_evidence < found.interval[1]
        assert data["steps"] == 200
        assert data["particles"] == 200
        assert data["seconds"] > 0
        assert data["log_weight_variance"] > 0
        assert data["perfect_mixing_variance"] > 0
        assert data.attrs["path"] == "GeometricRBMPath"
        assert data.attrs["transition"] == "BlockedGibbs"
        assert data.attrs["schedule"] == "linear"
        assert data.attrs["reference"] == "uniform"
        assert data.attrs["unit"] == "nats"

    def test_weights_and_steps(self, result) -> None:
        data = group(result, "annealing")
        log_z0 = 14 * np.log(2)
        mean = np.logaddexp.reduce(data["log_weight"].values, axis=1) - np.log(100) + log_z0
        per_chain = group(result, "sample_stats")["log_marginal_likelihood"].values
        np.testing.assert_allclose(per_chain, mean, rtol=1e-12)
        np.testing.assert_allclose(data["log_z"].values[:, -1], mean, rtol=1e-12)
        assert data.sizes["step"] == 200
        assert np.isnan(data["step_size"]).all()
        assert (data["accept_rate"] == 1).all()
        # Estimates by step against exact partition functions along the path.
        path = GeometricRBMPath(np.zeros(8), MODEL.astype(np.float64))
        for k in (50, 120):
            model = path.model_at(betas_of(result)[k - 1])
            found = data["log_z"].values[:, k - 1].mean()
            assert found == pytest.approx(
                enumerate_states(jax.tree.map(np.asarray, model)).log_z, abs=0.3
            )

    def test_verdict(self, result) -> None:
        assert pma.log_evidence(result).verdict.trusted
        bad = estimate(steps=2, draws=100, target_mcse=0.01)
        assert not bad.verdict.trusted

    def test_netcdf(self, result, tmp_path) -> None:
        pytest.importorskip("netCDF4")
        import arviz as az

        path = str(tmp_path / "result.nc")
        result.to_netcdf(path)
        tree = isinstance(result, xr.DataTree)
        loaded = xr.open_datatree(path) if tree else az.from_netcdf(path)
        assert pma.log_evidence(loaded) == pma.log_evidence(result)
        assert_same(loaded, result)


class TestBadInput:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"draws": 0}, "`draws` is 0, expected a positive whole number"),
            ({"chains": 1.5}, "`chains` is 1.5, expected a positive whole number"),
            ({"steps": -1}, "`steps` is -1, expected a positive whole number"),
            ({"block_size": 0}, "`block_size` is 0, expected a positive whole number"),
            ({"block_size": -5}, "`block_size` is -5, expected a positive whole number"),
            ({"cores": 0}, "`cores` is 0, expected a positive whole number"),
            ({"target_mcse": -1.0}, "`target_mcse` is -1.0, expected a positive number"),
            ({"random_seed": "a"}, "`random_seed` is 'a', expected"),
            ({"schedule": "wrong"}, "Unknown `schedule` 'wrong'; expected one of .*variational"),
            ({"schedule": [0.0, 0.5]}, "starts at 0.0 and ends at 0.5, expected exactly 0 and 1"),
            ({"schedule": lambda k: np.ones(k)}, "expected exactly 0 and 1"),
            ({"path": "wrong"}, "Unknown `path` 'wrong'; expected \"geometric\""),
            ({"reference": "wrong"}, "Unknown `reference` 'wrong'; expected \"uniform\""),
            ({"reference": MODEL}, "48 of them not zero; expected .* without weights"),
            ({"reference": rbm.uniform_reference(8, 5)}, r"shape \(8, 5\).* of shape \(8, 6\)"),
            ({"transition": "wrong"}, "Unknown `transition` 'wrong'; expected one of .*perfect"),
            ({"schedule": "variational", "max_step": 1e-3}, "`max_step` is 0.001"),
        ],
    )
    def test_values(self, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            rbm.sample_ais(MODEL, **QUICK | arguments)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"transition": 3}, "`transition` is a int without the methods"),
            ({"path": 3}, "`path`"),
            ({"reference": np.zeros((8, 6))}, "`reference`"),
        ],
    )
    def test_kinds(self, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(TypeError, match=message):
            rbm.sample_ais(MODEL, **QUICK | arguments)

    def test_perfect_transitions_of_a_large_machine(self) -> None:
        large = rbm.uniform_reference(MAX_UNITS + 1, MAX_UNITS + 2)
        with pytest.raises(ValueError, match="smaller layer has 26 units.* at most 25"):
            rbm.sample_ais(large, **QUICK | {"transition": "perfect"})

"""Weights of annealed RBMs: unbiased upwards and downwards, in the right order, precise."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.evidence.ais import effective_sample_size
from pymc_anneal.rbm.exact import sample_exact
from pymc_anneal.rbm.model import reference_log_partition_function
from pymc_anneal.rbm.paths import GeometricRBMPath
from pymc_anneal.rbm.spline_path import SplineRBMPath
from pymc_anneal.rbm.transitions import BlockedGibbs, PerfectTransition
from tests.rbm.lagging_path import LaggingPath
from tests.rbm.small_paths import (
    GEOMETRIC,
    KNOTS,
    MIDDLE,
    PARTICLES,
    REFERENCE,
    SHAPE,
    SPLINE,
    TARGET,
    call,
    each_path,
    step,
    sweep_probabilities,
)
from tests.rbm_cases import (
    enumerate_states,
    exact_draws,
    frequencies_agree,
    independent_units,
    mean_agrees,
    random_rbm,
    states,
)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


# Far enough apart for a wrong order to show, near enough for even weights after one step.
LOG_RATIO = enumerate_states(TARGET).log_z - reference_log_partition_function(REFERENCE)
MIN_SHARE = 0.02


def unbiased(log_weight: np.ndarray, log_ratio: float) -> bool:
    """Return whether the mean of the weights agrees with the ratio of normalisers."""
    assert effective_sample_size(log_weight) > MIN_SHARE * log_weight.size
    return mean_agrees(np.exp(np.ravel(log_weight) - log_ratio), 1.0)


def run(path, kernel, betas, position, seed: int):
    """Run one block."""
    sequence = np.random.SeedSequence(seed)
    return run_block(Block(path, kernel, np.asarray(betas), np.asarray(position), 2, sequence))


def quadratic_schedule(steps: int) -> np.ndarray:
    return np.linspace(0, 1, steps + 1) ** 2


def by_hand(path, kernel, betas, position, order: str) -> np.ndarray:
    """Anneal in a plain loop, in the right order or another; downwards if the betas decrease."""
    log_weight = np.zeros(len(position))
    backward = betas[0] > betas[-1]
    for k, (start, stop) in enumerate(zip(betas[:-1], betas[1:], strict=True)):
        beta = start if backward and order == "right" else stop
        new = np.asarray(step(path, kernel, beta, position, k)[0].position)
        move_first = backward or order == "after"
        terms = call("evaluate", path, new if move_first else position)
        log_weight += np.asarray(call("log_ratio", path, terms, start, stop))
        position = new
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
        result = run(path, kernel, quadratic_schedule(steps), position, steps)
        assert unbiased(result.log_weight, LOG_RATIO)

    @each_path
    @pytest.mark.parametrize("steps", [1, 2, 3, 5])
    def test_downwards(self, path, steps: int) -> None:
        position = sample_exact(TARGET, PARTICLES, random_seed=steps)
        result = run(path, BlockedGibbs(), np.linspace(1, 0, steps + 1), position, steps)
        assert unbiased(result.log_weight, -LOG_RATIO)

    def test_hidden_biases_in_the_reference(self) -> None:
        reference = independent_units(*SHAPE, seed=3, hidden=True)
        path = SplineRBMPath.through(KNOTS, [reference, MIDDLE, TARGET])
        log_ratio = enumerate_states(TARGET).log_z - reference_log_partition_function(reference)
        position = exact_draws(reference, PARTICLES, np.random.default_rng(3))
        result = run(path, BlockedGibbs(), quadratic_schedule(3), position, 3)
        assert unbiased(result.log_weight, log_ratio)

    @pytest.mark.parametrize("order", ["right", "after"])
    def test_weights_after_the_move_are_detected(self, order: str) -> None:
        position = exact_draws(REFERENCE, PARTICLES, np.random.default_rng(4))
        log_weight = by_hand(GEOMETRIC, BlockedGibbs(), quadratic_schedule(4), position, order)
        assert unbiased(log_weight, LOG_RATIO) is (order == "right")

    @pytest.mark.parametrize("order", ["right", "new temperature"])
    def test_moves_at_the_new_temperature_on_the_way_down_are_detected(self, order: str) -> None:
        position = sample_exact(TARGET, PARTICLES, random_seed=5)
        log_weight = by_hand(GEOMETRIC, BlockedGibbs(), np.linspace(1, 0, 4), position, order)
        assert unbiased(log_weight, -LOG_RATIO) is (order == "right")

    def test_hidden_units_of_another_temperature_are_detected(self) -> None:
        position = exact_draws(REFERENCE, PARTICLES, np.random.default_rng(6))
        path, betas = LaggingPath(GEOMETRIC), quadratic_schedule(8)
        assert not unbiased(by_hand(path, BlockedGibbs(), betas, position, "right"), LOG_RATIO)


class TestDirection:
    @each_path
    def test_upwards_weighs_before_it_moves(self, path) -> None:
        position = np.tile(states(SHAPE[0]), (PARTICLES // 16, 1))
        result = run(path, BlockedGibbs(), [0.0, 1.0], position, 1)
        ratio = TARGET.log_density(position) - REFERENCE.log_density(position)
        np.testing.assert_allclose(result.log_weight.ravel(), ratio, rtol=1e-12)
        assert (result.position.reshape(-1, SHAPE[0]) != position).any()

    @each_path
    def test_downwards_moves_before_it_weighs(self, path) -> None:
        position = np.tile(states(SHAPE[0]), (PARTICLES // 16, 1))
        result = run(path, BlockedGibbs(), [1.0, 0.0], position, 1)
        end = result.position.reshape(-1, SHAPE[0])
        ratio = REFERENCE.log_density(end) - TARGET.log_density(end)
        np.testing.assert_allclose(result.log_weight.ravel(), ratio, rtol=1e-12)
        assert (end != position).any()

    @each_path
    def test_the_first_move_downwards_is_at_the_target(self, path) -> None:
        # From a single state: sum over h of p(h | v) p(v' | h) of the target.
        start = states(SHAPE[0])[11]
        result = run(path, BlockedGibbs(), [1.0, 0.0], np.tile(start, (PARTICLES, 1)), 2)
        end = result.position.reshape(-1, SHAPE[0])
        assert frequencies_agree(end, sweep_probabilities(TARGET, start))
        assert not frequencies_agree(end, sweep_probabilities(REFERENCE, start))

    def test_both_directions_are_one_process(self) -> None:
        # Crooks: the mean of any phi(log w) weighted by w upwards is that of phi(-log w) downwards.
        up = run(
            GEOMETRIC,
            BlockedGibbs(),
            np.linspace(0, 1, 3),
            exact_draws(REFERENCE, PARTICLES, np.random.default_rng(7)),
            7,
        ).log_weight.ravel()
        down = run(
            GEOMETRIC, BlockedGibbs(), np.linspace(1, 0, 3), sample_exact(TARGET, PARTICLES, 8), 8
        ).log_weight.ravel()
        for phi in (np.tanh, np.square, np.abs):
            weighted = np.exp(up - LOG_RATIO) * phi(up - LOG_RATIO)
            mirrored = phi(-down - LOG_RATIO)
            error = np.hypot(weighted.std(), mirrored.std()) / np.sqrt(PARTICLES)
            assert abs(weighted.mean() - mirrored.mean()) < 5 * error


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class TwinPath:
    """A single-precision path with weights in single or double precision, or by differences."""

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
    """Log weights of an RBM in single precision, along the same trajectory."""

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
                path = TwinPath(single, double, np.array(i))
                results[weigh] = run(path, BlockedGibbs(), betas, position, 1)
        for weigh in results:
            np.testing.assert_array_equal(results[weigh].position, results["double"].position)
        return {name: result.log_weight for name, result in results.items()}

    def error(self, log_weight: dict[str, np.ndarray], weigh: str) -> float:
        return float(np.abs(log_weight[weigh] / log_weight["double"] - 1).max())

    def test_single_precision_loses_nothing(self, log_weight: dict[str, np.ndarray]) -> None:
        assert log_weight["single"].dtype == np.float64
        assert self.error(log_weight, "single") < 1e-6

    def test_differences_of_densities_are_worse(self, log_weight: dict[str, np.ndarray]) -> None:
        assert self.error(log_weight, "differences") > 10 * self.error(log_weight, "single")
        assert self.error(log_weight, "differences") > 1e-6

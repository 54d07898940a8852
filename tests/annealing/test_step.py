"""One annealing step by hand, and the record of the particles at the rungs."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.annealing import step
from pymc_anneal.annealing.block import Ladder
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.annealing.step_statistics import Stats
from tests.annealing.log_gamma_blocks import CHAINS, PARTICLES, PATH, make_blocks
from tests.cases import log_gamma_terms

RUNGS = np.array([0, 2, 6])


def test_shapes() -> None:
    result = run_block(make_blocks(1)[0])
    assert result.position.shape == (CHAINS, PARTICLES, 2)
    assert result.log_weight.shape == (CHAINS, PARTICLES)
    assert result.seconds > 0
    assert all(s.shape == (6, CHAINS) for s in result.stats)
    assert all(len(values) == 0 for values in result.ladder)


def test_one_step_by_hand() -> None:
    (block,) = make_blocks(1, steps=1)
    result = run_block(block)
    with jax.enable_x64(True):
        log_u = np.asarray(jax.vmap(log_gamma_terms)(block.position).log_likelihood)
    log_u = log_u.reshape(CHAINS, PARTICLES)
    np.testing.assert_allclose(result.log_weight, log_u, rtol=1e-12)
    share = np.exp(log_u) / np.exp(log_u).sum(axis=1, keepdims=True)
    stats = Stats(*(s[0] for s in result.stats))
    np.testing.assert_allclose(stats.log_w, np.log(np.exp(log_u).sum(axis=1)), rtol=1e-12)
    twice = np.log(np.exp(2 * log_u).sum(axis=1))
    np.testing.assert_allclose(stats.log_w_squared, twice, rtol=1e-12)
    np.testing.assert_allclose(stats.log_wu_squared, twice, rtol=1e-12)
    np.testing.assert_allclose(stats.velocity, (share * log_u).sum(axis=1), rtol=1e-12)
    square = (share * log_u**2).sum(axis=1)
    np.testing.assert_allclose(stats.velocity_squared, square, rtol=1e-12)
    assert ((stats.accept_rate > 0) & (stats.accept_rate <= 1)).all()
    assert (stats.nan == 0).all()


class TestLadder:
    def ladder(self, record_positions: bool) -> Ladder[np.ndarray]:
        (block,) = make_blocks(1)
        return run_block(replace(block, rungs=RUNGS, record_positions=record_positions)).ladder

    def test_positions_are_left_out(self) -> None:
        ladder = self.ladder(False)
        assert ladder.log_weight.shape == (3, CHAINS, PARTICLES)
        assert ladder.position.shape == (3, CHAINS, PARTICLES, 0)

    def test_positions_do_not_change_the_others(self) -> None:
        for name, values in self.ladder(False)._asdict().items():
            if name != "position":
                np.testing.assert_array_equal(values, getattr(self.ladder(True), name))

    def test_positions(self) -> None:
        (block,), ladder = make_blocks(1), self.ladder(True)
        result = run_block(block)
        assert ladder.position.shape == (3, CHAINS, PARTICLES, 2)
        np.testing.assert_array_equal(ladder.position[0].reshape(-1, 2), block.position)
        np.testing.assert_array_equal(ladder.position[-1], result.position)
        np.testing.assert_array_equal(ladder.log_weight[-1], result.log_weight)
        assert (ladder.position[1] != ladder.position[2]).any()

    def test_log_ratios_are_those_at_the_positions(self) -> None:
        ladder, betas = self.ladder(True), pma.power_schedule(6, 2.0)[RUNGS]
        with jax.enable_x64(True):
            for i in range(3):
                terms = PATH.evaluate(ladder.position[i].reshape(-1, 2))
                up = PATH.log_ratio(terms, betas[i], betas[min(i + 1, 2)])
                down = PATH.log_ratio(terms, betas[max(i - 1, 0)], betas[i])
                np.testing.assert_allclose(ladder.log_ratio_up[i].ravel(), up, rtol=1e-12)
                np.testing.assert_allclose(ladder.log_ratio_down[i].ravel(), down, rtol=1e-12)
        assert (ladder.log_ratio_up[-1] == 0).all()
        assert (ladder.log_ratio_down[0] == 0).all()

    def test_every_column_is_at_its_temperature(self) -> None:
        """On a path whose ratio and velocity are those temperatures."""
        (block,) = make_blocks(1)
        with jax.enable_x64(True):
            key = jax.random.key(1)
            carry, _ = step.start_carry(PATH, block.transition, key, block.position, CHAINS)
            rung = jax.device_get(
                step.record_rung(_Temperatures(), carry, np.array([0.25, 0.5, 0.75]), False)
            )
        assert rung.log_ratio_down[0] == 0.25 + 100 * 0.5
        assert rung.velocity[0] == 0.5
        assert rung.log_ratio_up[0] == 0.5 + 100 * 0.75


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Temperatures:
    """What `record_rung` asks of a path, answered by the temperatures of the question."""

    def log_ratio(self, terms, start, stop):
        return jnp.full(CHAINS * PARTICLES, start + 100 * stop)

    def velocity(self, terms, beta):
        return jnp.full(CHAINS * PARTICLES, beta)


@pytest.mark.parametrize("backward", [False, True])
def test_no_key_is_consumed_twice(backward: bool) -> None:
    """Moves and resampling have keys of their own; JAX raises an error for one consumed twice."""
    (block,) = make_blocks(1)
    betas = np.linspace(0, 1, step.CHUNK + 1)
    with jax.enable_x64(True), jax.debug_key_reuse(True):
        key, state = jax.random.key(1), block.position
        carry, _ = step.start_carry(PATH, block.transition, key, state, CHAINS)
        step.advance(
            PATH, block.transition, carry, jax.random.key(2), betas, 0, 2, 0.5,
            chains=CHAINS, backward=backward, resampling=not backward,
        )  # fmt: skip

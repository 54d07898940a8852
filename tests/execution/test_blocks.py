"""Runs cut into blocks, and merged from their results."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import jax
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.annealing.loop import run_block
from pymc_anneal.execution.blocks import (
    AnnealedRun,
    StartDraws,
    _merge,
    anneal,
    even_block,
    make_blocks,
    recorded_steps,
)
from pymc_anneal.execution.progress import ProgressDisplay
from tests.annealing.log_gamma_blocks import KERNEL, PATH
from tests.cases import log_gamma_draws

BETAS = pma.power_schedule(6, 2.0)
CHAINS, PARTICLES, BLOCK = 2, 12, 4
RUNGS = np.array([0, 3, 6])


def draw(seed: np.random.SeedSequence, count: int) -> np.ndarray:
    return log_gamma_draws(0.0, count, np.random.default_rng(seed))


def states(seeds) -> list[tuple[int, ...]]:
    return [tuple(seed.generate_state(2)) for seed in seeds]


@pytest.mark.parametrize(
    ("draws", "chains", "block_size", "expected"),
    [(500, 4, None, 125), (100, 4, None, 100), (250, 2, 100, 50), (7, 2, 4, 2), (10, 8, 4, 1)],
)
def test_even_block(draws: int, chains: int, block_size: int | None, expected: int) -> None:
    assert even_block(draws, chains, block_size) == expected


class TestMakeBlocks:
    def test_given_positions(self) -> None:
        start = np.arange(CHAINS * PARTICLES * 3.0).reshape(CHAINS, PARTICLES, 3)
        blocks = make_blocks(PATH, KERNEL, BETAS, start, BLOCK, np.random.SeedSequence(1))
        parts = [block.position.reshape(CHAINS, BLOCK, 3) for block in blocks]
        np.testing.assert_array_equal(np.concatenate(parts, axis=1), start)
        expected = np.random.SeedSequence(1).spawn(3)
        assert states(block.seed for block in blocks) == states(expected)

    def test_drawn_positions(self) -> None:
        start = StartDraws(draw, CHAINS, 23)  # less than three blocks
        blocks = make_blocks(PATH, KERNEL, BETAS, start, BLOCK, np.random.SeedSequence(1))
        assert len(blocks) == 3
        for block, child in zip(blocks, np.random.SeedSequence(1).spawn(3), strict=True):
            seed_start, seed_run = child.spawn(2)
            np.testing.assert_array_equal(block.position, draw(seed_start, CHAINS * BLOCK))
            assert states([block.seed]) == states([seed_run])

    def test_uneven_blocks_are_refused(self) -> None:
        with pytest.raises(ValueError, match="reshape"):
            make_blocks(PATH, KERNEL, BETAS, np.zeros((2, 5, 1)), 2, np.random.SeedSequence(1))

    def test_settings(self) -> None:
        start = StartDraws(draw, CHAINS, 8)
        settings = {"rungs": RUNGS, "resample": 0.5, "record_positions": True}
        (block,) = make_blocks(
            PATH, KERNEL, BETAS, start, BLOCK, np.random.SeedSequence(1), **settings
        )
        assert (block.chains, block.resample, block.record_positions) == (CHAINS, 0.5, True)
        assert block.rungs is RUNGS


class TestAnneal:
    def run(self, block_draws: int, record_positions: bool) -> AnnealedRun:
        start = draw(np.random.SeedSequence(2), CHAINS * PARTICLES).reshape(CHAINS, PARTICLES, 2)
        blocks = make_blocks(
            PATH,
            KERNEL,
            BETAS,
            start,
            block_draws,
            np.random.SeedSequence(3),
            rungs=RUNGS,
            record_positions=record_positions,
        )
        with ThreadPoolExecutor(2) as executor:
            return anneal(blocks, ProgressDisplay(False), "", executor=executor)

    @pytest.mark.parametrize("block_draws", [PARTICLES, BLOCK])
    def test_the_ladder_has_all_particles_in_order(self, block_draws: int) -> None:
        run = self.run(block_draws, True)
        assert run.ladder.position.shape == (3, CHAINS, PARTICLES, 2)
        start = draw(np.random.SeedSequence(2), CHAINS * PARTICLES).reshape(CHAINS, PARTICLES, 2)
        np.testing.assert_array_equal(run.ladder.position[0], start)
        np.testing.assert_array_equal(run.ladder.position[-1], run.position)
        np.testing.assert_array_equal(run.ladder.log_weight[-1], run.log_weight)

    def test_positions_are_left_out(self) -> None:
        run = self.run(BLOCK, False)
        assert run.ladder.position.shape == (3, CHAINS, PARTICLES, 0)
        assert run.ladder.velocity.shape == (3, CHAINS, PARTICLES)
        np.testing.assert_array_equal(run.log_weight, self.run(BLOCK, True).log_weight)

    def test_particles_are_those_of_the_blocks(self) -> None:
        start = StartDraws(draw, CHAINS, CHAINS * PARTICLES)
        blocks = make_blocks(PATH, KERNEL, BETAS, start, BLOCK, np.random.SeedSequence(1))
        run = anneal(blocks, ProgressDisplay(False), "")
        weights = np.concatenate([run_block(block).log_weight for block in blocks], axis=1)
        np.testing.assert_array_equal(run.log_weight, weights)
        assert (run.steps, run.particles) == (6, CHAINS * PARTICLES)
        assert run.evaluations == CHAINS * PARTICLES * KERNEL.cost(BETAS[1:]).sum()
        assert not run.interrupted


@pytest.mark.parametrize(
    ("steps", "barrier", "count"),
    [(1000, np.nan, 13), (1000, 3.0, 13), (1000, 10.2, 22), (1000, 80.0, 49), (5, 80.0, 6)],
)
def test_recorded_steps(steps: int, barrier: float, count: int) -> None:
    rungs = recorded_steps(steps, barrier)
    assert (rungs[0], rungs[-1], len(rungs)) == (0, steps, count)
    assert (np.diff(rungs) > 0).all()


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Costly(pma.RandomWalkMetropolis):
    """Takes more evaluations at higher temperatures."""

    def cost(self, betas: np.ndarray) -> np.ndarray:
        return 1 + (10 * np.asarray(betas)).astype(int)


class TestMerge:
    @staticmethod
    def merged(betas: np.ndarray, finished: int = 3, resample: float = 0.0) -> AnnealedRun:
        blocks = make_blocks(
            PATH, Costly(0.5, 1, 0.6), betas, StartDraws(draw, CHAINS, CHAINS * PARTICLES), BLOCK,
            np.random.SeedSequence(1), resample=resample,
        )  # fmt: skip
        return _merge(blocks, [run_block(block) for block in blocks[:finished]], 1)

    def test_evaluations_at_the_temperatures_of_the_moves(self) -> None:
        betas = np.array([0.0, 0.25, 1.0])
        assert self.merged(betas).evaluations == CHAINS * PARTICLES * (3 + 11)
        assert self.merged(betas[::-1].copy()).evaluations == CHAINS * PARTICLES * (11 + 3)

    def test_blocks_that_are_missing(self) -> None:
        betas = np.array([0.0, 1.0])
        whole, part = self.merged(betas), self.merged(betas, finished=2)
        assert (whole.interrupted, part.interrupted) == (False, True)
        assert part.planned == whole.planned == CHAINS * PARTICLES
        assert part.log_weight.shape == (CHAINS, 2 * BLOCK)

    def test_populations_are_the_particles_of_a_chain_in_a_block(self) -> None:
        betas = np.array([0.0, 1.0])
        assert self.merged(betas).population_size == 1
        assert self.merged(betas, resample=0.5).population_size == BLOCK

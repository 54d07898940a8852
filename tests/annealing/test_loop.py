"""The annealing loop: the same bits however it is chunked or resumed; reports, stops, errors."""

import time

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.annealing import loop, step
from pymc_anneal.annealing.block import Block, BlockStopped, Snapshot
from pymc_anneal.annealing.loop import Monitor, final_progress, run_block
from pymc_anneal.base.contracts import LogTerms, NanDensityError
from pymc_anneal.base.progress import BlockProgress
from tests.annealing.log_gamma_blocks import (
    CHAINS,
    KERNEL,
    PARTICLES,
    Reporter,
    SnapshotTaker,
    assert_same,
    make_blocks,
)

RUNGS = np.array([0, 20, 60])


def test_one_compilation(monkeypatch) -> None:
    """Chunks of any length, with rungs or without, run through the same compiled program."""
    monkeypatch.setattr(loop, "_INTERVAL", 100.0)
    kernel = pma.HMC(0.25, 3, 0.6)
    step.advance.clear_cache()
    for rungs in ([], [0, 4, 6]):
        (block,) = make_blocks(1)
        run_block(replace(block, transition=kernel, rungs=np.array(rungs, dtype=int)))
    assert step.advance._cache_size() == 1


class TestIdenticalBits:
    def test_slow_reports_and_thus_shorter_chunks(self) -> None:
        (block,) = make_blocks(1, steps=12)
        seen = []

        def slowly(progress: BlockProgress) -> None:
            seen.append(progress.step)
            time.sleep(0.11)

        assert_same(run_block(block, Reporter(slowly)), run_block(block))
        assert len(seen) >= 11  # the chunks did stay short

    def test_chunk_boundaries(self, monkeypatch) -> None:
        (block,) = make_blocks(1, steps=40)
        expected = run_block(block)
        for module in (loop, step):
            monkeypatch.setattr(module, "CHUNK", 7)
        jax.clear_caches()
        shorter = run_block(block)
        jax.clear_caches()
        assert_same(expected, shorter)

    def test_more_steps_than_a_chunk(self) -> None:
        (block,) = make_blocks(1, steps=1100)
        seen: list[int] = []
        result = run_block(block, Reporter(lambda progress: seen.append(progress.step)))
        assert seen[-1] == 1100
        assert result.stats.log_w.shape == (1100, CHAINS)
        assert np.isfinite(result.stats.log_w).all()

    def test_another_seed_is_another_result(self) -> None:
        (first,), (second,) = make_blocks(1), make_blocks(1, seed=2)
        assert (run_block(first).log_weight != run_block(second).log_weight).any()

    def test_float32_is_not_used(self) -> None:
        with jax.enable_x64(False):
            result = run_block(make_blocks(1)[0])
            assert not jax.config.jax_enable_x64  # the user's setting is unchanged
        assert result.log_weight.dtype == np.float64
        assert result.position.dtype == np.float64


@pytest.mark.parametrize("record_positions", [False, True])
class TestSnapshot:
    def block(self, record_positions: bool) -> Block:
        (block,) = make_blocks(1, steps=60)
        return replace(block, rungs=RUNGS, record_positions=record_positions)

    def snapshots(self, block: Block) -> list[Snapshot]:
        taker = SnapshotTaker()
        run_block(block, taker)
        return taker.snapshots

    @pytest.mark.parametrize("at", [0, 3, -1])
    def test_a_block_resumes_to_the_same_bits(self, record_positions: bool, at: int) -> None:
        block = self.block(record_positions)
        snapshots = self.snapshots(block)
        assert snapshots[-1].done == 60
        expected = run_block(block)
        assert expected.ladder.position.shape[-1] == (2 if record_positions else 0)
        for _ in range(2):  # a snapshot can be used twice
            assert_same(run_block(block, resume=snapshots[at]), expected)

    def test_a_changed_snapshot_is_found_out(self, record_positions: bool) -> None:
        block = self.block(record_positions)
        wrong = self.snapshots(block)[2]
        wrong = wrong._replace(carry=wrong.carry._replace(log_weight=wrong.carry.log_weight + 1))
        with pytest.raises(AssertionError):
            assert_same(run_block(block, resume=wrong), run_block(block))

    def test_time_adds_up(self, record_positions: bool) -> None:
        block = self.block(record_positions)
        late = self.snapshots(block)[-1]._replace(seconds=100.0)
        assert run_block(block, resume=late).seconds >= 100.0


class TestMonitor:
    def test_progress(self) -> None:
        (block,) = make_blocks(1, steps=30)
        seen: list[BlockProgress] = []
        result = run_block(block, Reporter(seen.append))
        steps = [progress.step for progress in seen]
        assert steps == sorted(set(steps))
        last = seen[-1]
        assert last == final_progress(block, result)
        assert (last.step, last.steps, last.beta) == (30, 30, 1.0)
        log_z = np.logaddexp.reduce(result.log_weight, axis=None) - np.log(CHAINS * PARTICLES)
        assert last.log_z == pytest.approx(log_z, rel=1e-12)
        assert all(0 < progress.relative_ess <= 1 + 1e-12 for progress in seen)

    def test_stop(self) -> None:
        class Stopping(Monitor):
            reports = 0

            def report(self, progress: BlockProgress) -> None:
                self.reports += 1

            def should_stop(self) -> bool:
                return self.reports == 2

        monitor = Stopping()
        with pytest.raises(BlockStopped):
            run_block(make_blocks(1, steps=50)[0], monitor)
        assert monitor.reports == 2


class TestNan:
    @staticmethod
    def terms_beyond_three(x: jax.Array) -> LogTerms:
        return LogTerms(-0.5 * (x**2).sum(), jnp.where(x[0] > 3, jnp.nan, 2 * x[0]))

    def block(self, position: np.ndarray) -> Block:
        path = pma.GeometricPath(self.terms_beyond_three)
        seed = np.random.SeedSequence(4)
        return Block(path, KERNEL, pma.linear_schedule(200), position, 1, seed)

    def test_at_a_start_position(self) -> None:
        position = np.array([[0.0, 1.0], [3.5, -1.0], [0.0, 2.0]])
        with pytest.raises(NanDensityError, match="NaN at x") as caught:
            run_block(self.block(position))
        np.testing.assert_array_equal(caught.value.position, [3.5, -1.0])

    def test_at_a_proposal(self) -> None:
        position = np.random.default_rng(5).normal(size=(50, 2)).clip(-2, 2)
        with pytest.raises(NanDensityError) as caught:
            run_block(self.block(position))
        assert caught.value.position.shape == (2,)
        assert caught.value.position[0] > 3


def test_zero_likelihood_is_legal() -> None:
    def terms(x: jax.Array) -> LogTerms:
        return LogTerms(-0.5 * (x**2).sum(), jnp.where(x[0] > 0, 0.0, -jnp.inf))

    position = np.array([[-1.0, 0.0], [-2.0, 0.0], [-1.0, 0.0], [1.0, 0.0]])
    seed = np.random.SeedSequence(7)
    betas = pma.linear_schedule(3)
    result = run_block(Block(pma.GeometricPath(terms), KERNEL, betas, position, 2, seed))
    np.testing.assert_array_equal(result.log_weight, [[-np.inf, -np.inf], [-np.inf, 0.0]])
    np.testing.assert_array_equal(result.stats.log_w, [[-np.inf, 0.0]] * 3)
    assert (result.stats.velocity == 0).all()


def test_no_particle_of_positive_weight() -> None:
    path = pma.GeometricPath(lambda x: LogTerms(-0.5 * (x**2).sum(), -jnp.inf))
    seen: list[BlockProgress] = []
    block = Block(
        path, KERNEL, pma.linear_schedule(3), np.ones((4, 1)), 2, np.random.SeedSequence(1)
    )
    run_block(block, Reporter(seen.append))
    assert np.isneginf(seen[-1].log_z)
    assert seen[-1].relative_ess == 0


def test_no_dimensions() -> None:
    def terms(x: jax.Array) -> LogTerms:
        return LogTerms(jnp.asarray(0.0), jnp.asarray(-1.5))

    seed, betas = np.random.SeedSequence(8), pma.linear_schedule(4)
    block = Block(pma.GeometricPath(terms), KERNEL, betas, np.empty((6, 0)), 2, seed)
    result = run_block(replace(block, rungs=np.array([0, 4]), record_positions=True))
    assert result.position.shape == (2, 3, 0)
    assert result.ladder.position.shape == (2, 2, 3, 0)
    np.testing.assert_allclose(result.log_weight, -1.5)

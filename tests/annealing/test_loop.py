"""The annealing loop: the same bits however the work is shared out; what it leaves; how it ends."""

import threading
import time

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.annealing import loop, step
from pymc_anneal.annealing.block import Block, BlockResult, BlockStopped
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.annealing.step_statistics import Stats, merge_stats
from pymc_anneal.base.contracts import LogTerms, NanDensityError
from pymc_anneal.base.progress import BlockProgress
from pymc_anneal.execution.workers import run_blocks
from tests.cases import log_gamma_draws, log_gamma_evidence, log_gamma_terms

PATH = pma.GeometricPath(log_gamma_terms)
KERNEL = pma.HMC(0.5, 2, 0.6)
CHAINS, PARTICLES = 3, 20


def blocks(count: int, steps: int = 6, seed: int = 1, path=PATH) -> list[Block]:
    """Blocks of three chains of twenty particles each."""
    result = []
    for child in np.random.SeedSequence(seed).spawn(count):
        rng = np.random.default_rng(child.spawn(1)[0])
        position = log_gamma_draws(0.0, CHAINS * PARTICLES, rng)
        betas = pma.power_schedule(steps, 2.0)
        result.append(Block(path, KERNEL, betas, position, CHAINS, child))
    return result


def run(work: list[Block], workers: int, **kwargs) -> list[BlockResult]:
    with ThreadPoolExecutor(workers) as executor:
        return run_blocks(work, executor, **kwargs)


def test_one_compilation(monkeypatch) -> None:
    """Chunks of any length, ended by rungs or not, run through the same compiled program."""
    monkeypatch.setattr(loop, "_INTERVAL", 100.0)
    kernel = pma.HMC(0.25, 3, 0.6)
    before = step.advance._cache_size()
    for rungs in ([], [0, 4, 6]):
        (block,) = blocks(1)
        run_block(replace(block, transition=kernel, rungs=np.array(rungs, dtype=int)))
    assert step.advance._cache_size() == before + 1


def assert_same(first: BlockResult, second: BlockResult) -> None:
    """Every bit of two results agrees; the time they took does not matter."""
    np.testing.assert_array_equal(first.position, second.position)
    np.testing.assert_array_equal(first.log_weight, second.log_weight)
    for left, right in zip(first.stats, second.stats, strict=True):
        np.testing.assert_array_equal(left, right)


class TestIdenticalBits:
    @pytest.mark.parametrize("workers", [2, 4])
    def test_any_number_of_workers(self, workers: int) -> None:
        for first, second in zip(run(blocks(5), 1), run(blocks(5), workers), strict=True):
            assert_same(first, second)

    def test_a_block_by_itself(self) -> None:
        work = blocks(3)
        assert_same(run(work, 2)[2], run_block(work[2]))

    def test_slow_reports_and_thus_shorter_chunks(self) -> None:
        work = blocks(1, steps=12)[0]
        seen = []

        def slowly(progress) -> None:
            seen.append(progress.step)
            time.sleep(0.11)

        assert_same(run_block(work, slowly), run_block(work))
        assert len(seen) >= 11  # the chunks did stay short

    def test_chunk_boundaries(self, monkeypatch) -> None:
        work = blocks(1, steps=40)[0]
        expected = run_block(work)
        for module in (loop, step):
            monkeypatch.setattr(module, "CHUNK", 7)
        jax.clear_caches()
        shorter = run_block(work)
        jax.clear_caches()
        assert_same(expected, shorter)

    def test_more_steps_than_a_chunk(self) -> None:
        work = blocks(1, steps=1100)[0]
        seen: list[int] = []
        result = run_block(work, lambda progress: seen.append(progress.step))
        assert seen[-1] == 1100
        assert result.stats.log_w.shape == (1100, CHAINS)
        assert np.isfinite(result.stats.log_w).all()

    def test_another_seed_is_another_result(self) -> None:
        first, second = run_block(blocks(1)[0]), run_block(blocks(1, seed=2)[0])
        assert (first.log_weight != second.log_weight).any()

    def test_chains_and_blocks_differ(self) -> None:
        weights = np.concatenate([r.log_weight.ravel() for r in run(blocks(3), 2)])
        assert len(np.unique(weights)) == len(weights)


class TestResult:
    def test_shapes(self) -> None:
        result = run_block(blocks(1)[0])
        assert result.position.shape == (CHAINS, PARTICLES, 2)
        assert result.log_weight.shape == (CHAINS, PARTICLES)
        assert result.seconds > 0
        assert all(s.shape == (6, CHAINS) for s in result.stats)

    @pytest.mark.parametrize("steps", [1, 6, 600])
    def test_statistics_are_sums_by_step(self, steps: int) -> None:
        # Nothing of the size particles x steps is kept.
        result = run_block(blocks(1, steps=steps)[0])
        assert sum(s.size for s in result.stats) == len(Stats._fields) * steps * CHAINS

    def test_last_row_is_the_estimate(self) -> None:
        result = run_block(blocks(1)[0])
        log_w = np.logaddexp.reduce(result.log_weight, axis=1)
        np.testing.assert_allclose(result.stats.log_w[-1], log_w, rtol=1e-12)
        squared = np.logaddexp.reduce(2 * result.log_weight, axis=1)
        np.testing.assert_allclose(result.stats.log_w_squared[-1], squared, rtol=1e-12)

    def test_one_step_by_hand(self) -> None:
        block = blocks(1, steps=1)[0]
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

    def test_velocity_is_an_expectation_at_beta(self) -> None:
        # Weighted means at every beta against the exact d log Z / d beta.
        rng = np.random.default_rng(3)
        betas = pma.linear_schedule(8)
        position = log_gamma_draws(0.0, 40_000, rng)
        seed = np.random.SeedSequence(3)
        result = run_block(Block(PATH, KERNEL, betas, position, 8, seed))
        h = 1e-5
        for k, beta in enumerate(betas[1:]):
            exact = (log_gamma_evidence(beta + h) - log_gamma_evidence(beta - h)) / (2 * h)
            values = result.stats.velocity[k]
            assert abs(values.mean() - exact) < 7 * values.std(ddof=1) / np.sqrt(8) + 0.01

    def test_merged_statistics_are_those_of_the_pooled_particles(self) -> None:
        results = run(blocks(3), 2)
        merged = merge_stats([r.stats for r in results])
        weights = np.concatenate([r.log_weight for r in results], axis=1)
        log_w = np.logaddexp.reduce(weights, axis=1)
        np.testing.assert_allclose(merged.log_w[-1], log_w, rtol=1e-12)
        squared = np.logaddexp.reduce(2 * weights, axis=1)
        np.testing.assert_allclose(merged.log_w_squared[-1], squared, rtol=1e-12)
        parts = [r.stats for r in results]
        share = np.exp([p.log_w - merged.log_w for p in parts])
        np.testing.assert_allclose(share.sum(axis=0), 1, rtol=1e-12)
        for name in ("velocity", "velocity_squared"):
            mean = sum(s * getattr(p, name) for s, p in zip(share, parts, strict=True))
            np.testing.assert_allclose(getattr(merged, name), mean, rtol=1e-12)
        wu = np.logaddexp.reduce([p.log_wu_squared for p in parts])
        np.testing.assert_allclose(merged.log_wu_squared, wu, rtol=1e-12)
        rates = np.mean([p.accept_rate for p in parts], axis=0)
        np.testing.assert_allclose(merged.accept_rate, rates, rtol=1e-12)

    def test_merging_parts_of_no_weight(self) -> None:
        dead = Stats(*[np.full((2, 1), -np.inf)] * 3, *[np.zeros((2, 1))] * 4)
        live = Stats(*[np.zeros((2, 1))] * 3, *[np.ones((2, 1))] * 4)
        merged = merge_stats([dead, live])
        assert (merged.log_w == 0).all()
        assert (merged.velocity == 1).all()
        assert np.isneginf(merge_stats([dead, dead]).log_w).all()

    def test_float32_is_not_used(self) -> None:
        with jax.enable_x64(False):
            result = run_block(blocks(1)[0])
            assert not jax.config.jax_enable_x64  # the user's setting is left alone
        assert result.log_weight.dtype == np.float64
        assert result.position.dtype == np.float64


class TestReports:
    def test_steps_rise_to_the_last(self) -> None:
        seen: list[tuple[int, BlockProgress]] = []
        lock = threading.Lock()

        def report(index: int, progress: BlockProgress) -> None:
            with lock:
                seen.append((index, progress))

        results = run(blocks(3, steps=30), 2, report=report)
        for index in range(3):
            own = [p for i, p in seen if i == index]
            steps = [p.step for p in own]
            assert steps == sorted(set(steps))
            assert steps[-1] == 30
            assert own[-1].beta == 1.0
            weight = results[index].log_weight
            log_z = np.logaddexp.reduce(weight, axis=None) - np.log(weight.size)
            assert own[-1].log_z == pytest.approx(log_z, rel=1e-12)
            assert all(0 < p.relative_ess <= 1 + 1e-12 for p in own)


def finished(result: BlockResult) -> Future:
    future: Future = Future()
    future.set_result(result)
    return future


class Interrupting(Executor):
    """Does the first blocks, and meets Ctrl-C on the next one."""

    def __init__(self, done: int):
        self._done = done

    def submit(self, function, /, *args, **kwargs) -> Future:
        if self._done > 0:
            self._done -= 1
            return finished(function(*args, **kwargs))
        future: Future = Future()
        future.set_exception(KeyboardInterrupt())
        return future


class TestInterruption:
    def test_finished_blocks_are_kept(self) -> None:
        expected = run(blocks(4), 1)
        results = run_blocks(blocks(4), Interrupting(2))
        assert len(results) == 2
        for first, second in zip(results, expected, strict=False):
            assert_same(first, second)

    def test_nothing_had_finished(self) -> None:
        with pytest.raises(KeyboardInterrupt):
            run_blocks(blocks(3), Interrupting(0))

    def test_running_blocks_stop(self) -> None:
        stop = threading.Event()

        def report(progress: BlockProgress) -> None:
            stop.set()

        with pytest.raises(BlockStopped):
            run_block(blocks(1, steps=50)[0], report, stop)

    def test_other_errors_are_raised(self) -> None:
        def report(index: int, progress: BlockProgress) -> None:
            if index == 1:
                raise RuntimeError("the display broke")

        with pytest.raises(RuntimeError, match="the display broke"):
            run(blocks(3), 2, report=report)


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

    def test_on_the_way(self) -> None:
        position = np.random.default_rng(5).normal(size=(50, 2)).clip(-2, 2)
        with pytest.raises(NanDensityError) as caught:
            run_block(self.block(position))
        assert caught.value.position.shape == (2,)
        assert caught.value.position[0] > 3

    def test_through_an_executor(self) -> None:
        good = np.random.default_rng(6).normal(size=(50, 2)).clip(-2, -1)
        with pytest.raises(NanDensityError):
            run([self.block(good + 4.5)] * 2, 2)


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


def test_no_dimensions() -> None:
    def terms(x: jax.Array) -> LogTerms:
        return LogTerms(jnp.asarray(0.0), jnp.asarray(-1.5))

    seed = np.random.SeedSequence(8)
    block = Block(
        pma.GeometricPath(terms), KERNEL, pma.linear_schedule(4), np.empty((6, 0)), 2, seed
    )
    result = run_block(block)
    assert result.position.shape == (2, 3, 0)
    np.testing.assert_allclose(result.log_weight, -1.5)

"""The same bits on any executor; lost workers, failing blocks, interruption."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache, partial
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.annealing.block import Block, BlockResult
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.base.contracts import LogTerms, NanDensityError
from pymc_anneal.base.progress import BlockProgress
from pymc_anneal.execution.workers import _kept, check_executor, run_blocks
from tests.cases import normal_model
from tests.serial_executor import Serial

KERNEL = pma.HMC(0.5, 2, 0.6)
RUN = {"draws": 40, "chains": 2, "steps": 12, "block_size": 20, "schedule": "power"}
RUN |= {"transition": KERNEL, "random_seed": 3, "progressbar": False}


@cache
def compiled() -> pma.CompiledModel:
    return pma.compile_model(normal_model())


@cache
def expected() -> np.ndarray:
    return log_weights(None)


def log_weights(executor: Executor | None) -> np.ndarray:
    idata = pma.sample_ais(model=compiled(), executor=executor, **RUN)
    return idata["annealing"]["log_weight"].values


def blocks(count: int, steps: int = 6) -> list[Block]:
    path = pma.GeometricPath(compiled().log_terms)
    result = []
    for seed in np.random.SeedSequence(1).spawn(count):
        position = compiled().sample_prior(seed, 10)
        result.append(Block(path, KERNEL, pma.power_schedule(steps, 2.0), position, 2, seed))
    return result


def lose_the_first(number: int) -> None:
    if number <= 3:
        raise ConnectionError("the worker went away")


def same(first: list[BlockResult], second: list[BlockResult]) -> None:
    assert len(first) == len(second)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a.log_weight, b.log_weight)
        np.testing.assert_array_equal(a.position, b.position)


@cache
def in_threads() -> list[BlockResult]:
    with ThreadPoolExecutor(2) as executor:
        return run_blocks(blocks(4), executor)


class TestSameBits:
    @pytest.mark.parametrize("workers", [1, 4])
    def test_any_number_of_threads(self, workers: int) -> None:
        with ThreadPoolExecutor(workers) as executor:
            same(run_blocks(blocks(4), executor), in_threads())

    def test_a_block_by_itself(self) -> None:
        same([run_block(blocks(4)[2])], in_threads()[2:3])

    def test_chains_and_blocks_differ(self) -> None:
        weights = np.concatenate([r.log_weight.ravel() for r in in_threads()])
        assert len(np.unique(weights)) == len(weights)

    def test_through_pickles(self) -> None:
        same(run_blocks(blocks(4), Serial()), in_threads())

    def test_sample_ais(self) -> None:
        np.testing.assert_array_equal(log_weights(Serial()), expected())

    def test_the_users_threads(self) -> None:
        with ThreadPoolExecutor(3) as executor:
            np.testing.assert_array_equal(log_weights(executor), expected())

    @pytest.mark.slow
    @pytest.mark.parametrize("workers", [1, 2])
    def test_processes(self, workers: int) -> None:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, mp_context=context) as executor:
            np.testing.assert_array_equal(log_weights(executor), expected())

    def test_progress_is_reported_when_a_block_is_finished(self) -> None:
        seen = []
        run_blocks(blocks(3), Serial(), lambda i, progress: seen.append((i, progress.step)))
        assert sorted(seen) == [(0, 6), (1, 6), (2, 6)]


def nan_block() -> Block:
    path = pma.GeometricPath(lambda x: LogTerms(-(x**2).sum(), jnp.nan * x[0]))
    seed = np.random.SeedSequence(1)
    return Block(path, KERNEL, pma.linear_schedule(3), np.ones((4, 1)), 2, seed)


class TestLosses:
    def test_lost_blocks_are_run_again(self) -> None:
        executor = Serial(lose_the_first)
        same(run_blocks(blocks(4), executor), in_threads())
        assert executor.calls == 4 + 3

    def test_a_block_that_always_fails(self) -> None:
        def fail(number: int) -> None:
            raise RuntimeError("no memory")

        executor = Serial(fail)
        with pytest.raises(RuntimeError, match="no memory"):
            run_blocks(blocks(1), executor)
        assert executor.calls == 3

    def test_a_broken_pool(self) -> None:
        class Broken(Serial):
            def submit(self, function, /, *args, **kwargs) -> Future:
                if self.calls >= 2:
                    raise BrokenProcessPool("a process died")
                return super().submit(function, *args, **kwargs)

        with pytest.warns(UserWarning, match="remaining blocks run in threads"):
            same(run_blocks(blocks(4), Broken()), in_threads())

    def test_an_error_of_the_display(self) -> None:
        def report(index: int, progress: BlockProgress) -> None:
            if index == 1:
                raise RuntimeError("the display broke")

        with ThreadPoolExecutor(2) as executor, pytest.raises(RuntimeError, match="display broke"):
            run_blocks(blocks(3), executor, report)

    def test_nan_in_threads(self) -> None:
        with ThreadPoolExecutor(2) as executor, pytest.raises(NanDensityError):
            run_blocks([nan_block()] * 2, executor)

    def test_nan_is_not_tried_again(self) -> None:
        executor = Serial()
        with pytest.raises(NanDensityError) as caught:
            run_blocks([nan_block()], executor)
        assert executor.calls == 1
        np.testing.assert_array_equal(caught.value.position, [1.0])

    @pytest.mark.slow
    def test_a_killed_process(self) -> None:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(2, mp_context=context) as executor:
            victim = executor.submit(os.getpid).result()
            executor.submit(time.sleep, 0.1)
            work = blocks(4, 2000)
            executor.submit(partial(os.kill, victim, signal.SIGKILL))
            with pytest.warns(UserWarning, match="lost its workers"):
                results = run_blocks(work, executor)
        with ThreadPoolExecutor(2) as threads:
            same(results, run_blocks(work, threads))


class Interrupting(Serial):
    """Runs the first blocks, and receives Ctrl-C at the next one."""

    def __init__(self, done: int):
        super().__init__(partial(self._interrupt, done))

    @staticmethod
    def _interrupt(done: int, number: int) -> None:
        if number > done:
            raise KeyboardInterrupt


class TestInterruption:
    def test_finished_blocks_are_returned(self) -> None:
        same(run_blocks(blocks(4), Interrupting(2)), in_threads()[:2])

    def test_no_block_had_finished(self) -> None:
        with pytest.raises(KeyboardInterrupt):
            run_blocks(blocks(3), Interrupting(0))


def test_not_an_executor() -> None:
    with pytest.raises(TypeError, match="`executor` is a int without a method `submit`"):
        check_executor(4)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="`executor` is a type; expected an object"):
        check_executor(Interrupting)  # type: ignore[arg-type]


@pytest.mark.slow
class TestDask:
    """A cluster of two processes on this machine."""

    @pytest.fixture
    def client(self, tmp_path: Path):
        distributed = pytest.importorskip("distributed")
        with distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            local_directory=str(tmp_path),
        ) as cluster:
            with distributed.Client(cluster) as client:
                yield client

    @pytest.mark.filterwarnings("default")
    def test_same_bits(self, client) -> None:
        np.testing.assert_array_equal(log_weights(client.get_executor()), expected())

    @pytest.mark.filterwarnings("default")
    def test_a_worker_killed_in_mid_run(self, client) -> None:
        executor, work = client.get_executor(), blocks(6, 3000)
        pids = list(client.run(os.getpid).values())

        def kill_first(index: int, progress) -> None:
            if pids:
                os.kill(pids.pop(), signal.SIGKILL)
                pids.clear()

        results = run_blocks(work, executor, kill_first)
        assert not pids
        with ThreadPoolExecutor(2) as threads:
            same(results, run_blocks(work, threads))


# In a process of its own, which MPI may end as it likes.
MPI_RUN = """
import numpy as np
from mpi4py.futures import MPIPoolExecutor
from tests.execution.test_workers import log_weights
with MPIPoolExecutor(2) as executor:
    np.save(r"{file}", log_weights(executor))
"""


@pytest.mark.slow
def test_mpi(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py.futures")
    file, here = tmp_path / "weights.npy", Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", MPI_RUN.format(file=file)]
    subprocess.run(command, check=True, cwd=here, timeout=300)
    np.testing.assert_array_equal(np.load(file), expected())


@pytest.mark.parametrize(
    ("finished", "kept"),
    [([0, 1, 2], [0, 1, 2]), ([3, 0, 1], [0, 1]), ([2, 1], [1, 2]), ([], [])],
)
def test_blocks_that_are_kept(finished: list[int], kept: list[int]) -> None:
    """Those before the first unfinished one; if there are none, all that were finished."""
    assert _kept({i: i for i in finished}) == kept

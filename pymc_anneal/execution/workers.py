"""Blocks of particles on the workers of an executor.

Threads of this process report progress while a block runs, and can be stopped. Any other executor
of :mod:`concurrent.futures` (processes, Dask's, MPI's) receives whole blocks and returns their
results; path and transition travel as one pickle, which every worker process unpickles once. A
block gives the same bits on every worker; a block that fails, or whose worker is lost, runs again.
"""

import os
import threading
import warnings

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from dataclasses import dataclass, fields
from typing import Any, TypeAlias, TypeGuard

from pymc_anneal.annealing.block import Block, BlockResult, BlockStopped, Snapshot
from pymc_anneal.annealing.loop import Monitor, final_progress, run_block
from pymc_anneal.base.caller import levels_to_caller
from pymc_anneal.base.contracts import NanDensityError, Path, Transition
from pymc_anneal.base.pickling import SharedPickle
from pymc_anneal.base.progress import BlockProgress
from pymc_anneal.execution.checkpoint import BlockStore

# Attempts to run a block before its error is raised: it may be lost with more than one worker.
_ATTEMPTS = 3

# Receives the index of a block and its progress.
Report: TypeAlias = Callable[[int, BlockProgress], None]


def count_processors() -> int:
    """Return the number of processors available to this process."""
    if hasattr(os, "sched_getaffinity"):  # not on every platform
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def count_workers(executor: Executor | None, cores: int | None) -> int:
    """Return the number of workers: as given, the executor's if it is known, or the processors."""
    return cores or getattr(executor, "_max_workers", None) or count_processors()


def runs_processes(executor: Executor | None) -> TypeGuard[Executor]:
    """Return whether an executor has workers other than threads of this process."""
    return executor is not None and not isinstance(executor, ThreadPoolExecutor)


def check_executor(executor: Executor | None) -> None:
    """Raise `TypeError` if an object is not an executor."""
    fault = "" if "submit" in dir(executor) else " without a method `submit`"
    if executor is not None and (fault or isinstance(executor, type)):
        raise TypeError(
            f"`executor` is a {type(executor).__name__}{fault}; expected an object, a "
            "concurrent.futures.Executor, for example ProcessPoolExecutor() or "
            "distributed.Client(...).get_executor()."
        )


def run_blocks(
    blocks: Sequence[Block],
    executor: Executor,
    report: Report = lambda index, progress: None,
    store: BlockStore | None = None,
) -> list[BlockResult]:
    """Run blocks on the workers of an executor, neither of which affects the result.

    `report` receives the index of a block and its progress: during the block and from the worker's
    thread if the workers are threads of this process, otherwise at the end of the block. The store
    has results and snapshots of an earlier run, and takes those of this one. After Ctrl-C the
    results of the blocks before the first unfinished one are returned, or those of all finished
    blocks if that is the first.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C before any block was finished.
    NanDensityError
        See :func:`run_block`.
    """
    store = BlockStore() if store is None else store
    pool = WorkerPool(executor, report, store)
    try:
        _run_missing(blocks, pool, store)
    except KeyboardInterrupt:
        pool.shutdown()
        if not store.results:
            raise
    except BaseException:
        pool.shutdown()
        raise
    finally:
        pool.close()
    return _kept(store.results)


def _kept(results: Mapping[int, BlockResult]) -> list[BlockResult]:
    """Return the results up to the first one that is missing; all others if that is the first.

    Where the time of a block depends on its particles, those that finish early are no random set of
    all; the first blocks are less so.
    """
    first = next(i for i in range(len(results) + 1) if i not in results)
    return [results[i] for i in range(first)] or [results[i] for i in sorted(results)]


def _run_missing(blocks: Sequence[Block], pool: "WorkerPool", store: BlockStore) -> None:
    """Run the blocks without a result in the store; repeat those that fail."""
    missing = [i for i in range(len(blocks)) if i not in store.results]
    attempts = dict.fromkeys(missing, 1)
    for i in missing:
        pool.submit(i, blocks[i])
    while pool.pending:
        for i, future in pool.finished(store.poll_interval):
            try:
                store.add(i, future.result())
            except (NanDensityError, BlockStopped):
                raise
            except Exception:
                if attempts[i] == _ATTEMPTS:
                    raise
                attempts[i] += 1
                pool.submit(i, blocks[i])
            else:
                pool.report(i, final_progress(blocks[i], store.results[i]))
        store.save_if_due()


class WorkerPool:
    """Workers of an executor, and the blocks submitted to them.

    Parameters
    ----------
    executor, report, store
        See :func:`run_blocks`.

    Attributes
    ----------
    pending : dict of Future to int
        Indices of the submitted blocks whose results have not been taken.
    """

    def __init__(self, executor: Executor, report: Report, store: BlockStore) -> None:
        self._executor, self._report, self._store = executor, report, store
        self._fallback: ThreadPoolExecutor | None = None
        self._stop = threading.Event()
        self._kernels: dict[tuple[int, int], SharedPickle[tuple[Path, Transition]]] = {}
        self.pending: dict[Future[BlockResult], int] = {}

    @property
    def _uses_threads(self) -> bool:
        return not runs_processes(self._executor)

    def submit(self, index: int, block: Block) -> None:
        """Submit a block; if the executor is broken, to threads of this process instead."""
        try:
            future = self._send(index, block)
        except BrokenExecutor as error:  # raised by a process pool that has lost a process
            self._fall_back_to_threads(error)
            future = self._send(index, block)
        self.pending[future] = index

    def _send(self, index: int, block: Block) -> Future[BlockResult]:
        if not self._uses_threads:
            packed = PackedBlock.pack(block, self._share_kernel(block))
            return self._executor.submit(_run_packed, packed)
        monitor = _ThreadMonitor(index, self._report, self._store, self._stop)
        return self._executor.submit(run_block, block, monitor, self._store.snapshots.get(index))

    def _share_kernel(self, block: Block) -> SharedPickle[tuple[Path, Transition]]:
        """Return path and transition of a block, pickled once for all blocks that have them."""
        key = id(block.path), id(block.transition)
        if key not in self._kernels:
            self._kernels[key] = SharedPickle((block.path, block.transition))
        return self._kernels[key]

    def _fall_back_to_threads(self, error: BrokenExecutor) -> None:
        warnings.warn(
            f"The executor lost its workers ({error}); the remaining blocks run in threads of "
            "this process.",
            stacklevel=levels_to_caller(),
        )
        self._executor = self._fallback = ThreadPoolExecutor(count_processors())

    def finished(self, timeout: float | None) -> Iterator[tuple[int, Future[BlockResult]]]:
        """Wait for results, at most the given number of seconds; remove them from `pending`."""
        done, _ = wait(self.pending, timeout=timeout, return_when=FIRST_COMPLETED)
        for future in sorted(done, key=self.pending.__getitem__):
            yield self.pending.pop(future), future

    def report(self, index: int, progress: BlockProgress) -> None:
        """Report a finished block, unless its thread has done so."""
        if not self._uses_threads:
            self._report(index, progress)

    def shutdown(self) -> None:
        """Stop the blocks; store the finished ones, and snapshots of those stopped in threads."""
        self._stop.set()
        for future in self.pending:
            future.cancel()
        if self._uses_threads:
            wait(self.pending)
        for future, index in self.pending.items():
            done = future.done() and not future.cancelled()
            if done and future.exception() is None:
                self._store.add(index, future.result())
        self._store.save()

    def close(self) -> None:
        """Release the threads that replaced a broken executor."""
        if self._fallback is not None:
            self._fallback.shutdown()


class _ThreadMonitor(Monitor):
    """Monitor of a block that runs in a thread of this process."""

    def __init__(
        self, index: int, report: Report, store: BlockStore, stop: threading.Event
    ) -> None:
        self._index, self._report, self._store, self._stop = index, report, store, stop

    def report(self, progress: BlockProgress) -> None:
        self._report(self._index, progress)

    def should_stop(self) -> bool:
        return self._stop.is_set()

    def offer_snapshot(self, take: Callable[[], Snapshot]) -> None:
        self._store.offer(self._index, take, last=self._stop.is_set())


@dataclass(frozen=True)
class PackedBlock:
    """A block on its way to another process.

    Attributes
    ----------
    kernel : SharedPickle
        Path and transition, which many blocks share.
    other : mapping of str to object
        The other fields of the block.
    """

    kernel: SharedPickle[tuple[Path, Transition]]
    other: Mapping[str, Any]

    @classmethod
    def pack(cls, block: Block, kernel: SharedPickle[tuple[Path, Transition]]) -> "PackedBlock":
        """Pack a block with its path and transition, which are already pickled."""
        names = {f.name for f in fields(block)} - {"path", "transition"}
        return cls(kernel, {name: getattr(block, name) for name in names})

    def unpack(self) -> Block:
        """Return the block; blocks with a kernel in common share the same objects."""
        path, transition = self.kernel.value
        return Block(path, transition, **self.other)


def _run_packed(packed: PackedBlock) -> BlockResult:
    return run_block(packed.unpack())

"""Blocks of particles mapped over the workers of an executor.

Threads of this process report as they go and can be stopped. Any other executor of
:mod:`concurrent.futures` (processes, Dask's, MPI's) is sent whole blocks, with a description of
the model that every worker builds once, and returns them finished. A block is the same bits
wherever it runs; one that fails or is lost with its worker is run again.
"""

import os
import pickle
import threading
import warnings

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from dataclasses import replace
from functools import lru_cache, partial

import cloudpickle
import jax

from pymc_anneal.annealing.block import Block, BlockResult, BlockStopped
from pymc_anneal.annealing.loop import last_progress, run_block
from pymc_anneal.base.contracts import NanDensityError, Path, Transition
from pymc_anneal.base.progress import BlockProgress
from pymc_anneal.execution.checkpoint import BlockStore

# Times that a block is run before its error is raised; a worker may be lost with several of them.
_ATTEMPTS = 3


Report = Callable[[int, BlockProgress], None]


def processors() -> int:
    """Return the number of processors available to this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def workers_of(executor: Executor | None, cores: int | None) -> int:
    """Return the number of workers, as far as it is known."""
    return cores or getattr(executor, "_max_workers", None) or processors()


def check_executor(executor: Executor | None) -> None:
    """Raise if something is not an executor."""
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(
            f"`executor` is a {type(executor).__name__} without a method `submit`; expected a "
            "concurrent.futures.Executor, for example ProcessPoolExecutor() or "
            "distributed.Client(...).get_executor()."
        )


def run_blocks(
    blocks: Sequence[Block],
    executor: Executor,
    report: Report = lambda block, progress: None,
    store: BlockStore | None = None,
) -> list[BlockResult]:
    """Run blocks on an executor's workers.

    Parameters
    ----------
    blocks
        The work.
    executor
        Any executor; the result is the same for each, and for any number of workers.
    report
        Called with the index of a block and its progress: from the workers' threads, or, where
        these are not threads of this process, when a block is finished.
    store
        Blocks finished and begun in an earlier run, and where to keep those of this one.

    Returns
    -------
    list of BlockResult
        In the order of the blocks. After Ctrl-C, the blocks that had finished.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C before any block had finished.
    NanDensityError
        See :func:`run_block`.
    """
    store = BlockStore() if store is None else store
    crew = _Crew(executor, report, store)
    try:
        _finish(blocks, crew, store)
    except KeyboardInterrupt:
        crew.dismiss(store)
        if not store.results:
            raise
    except BaseException:
        crew.dismiss(store)
        raise
    finally:
        crew.close()
    return [result for _, result in sorted(store.results.items())]


def _finish(blocks: Sequence[Block], crew: "_Crew", store: BlockStore) -> None:
    """Run what is missing in the store; a block that fails is run again."""
    missing = [i for i in range(len(blocks)) if i not in store.results]
    attempts = dict.fromkeys(missing, 1)
    for i in missing:
        crew.submit(i, blocks[i])
    while crew.pending:
        for i, future in crew.finished(store.patience):
            try:
                store.add(i, future.result())
            except (NanDensityError, BlockStopped):
                raise
            except Exception:
                if attempts[i] == _ATTEMPTS:
                    raise
                attempts[i] += 1
                crew.submit(i, blocks[i])
            else:
                crew.tell(i, last_progress(blocks[i], store.results[i]))
        store.save_if_due()


class _Crew:
    """The workers, and the blocks they have in hand."""

    def __init__(self, executor: Executor, report: Report, store: BlockStore):
        self._executor, self._report, self._store = executor, report, store
        self._own: ThreadPoolExecutor | None = None
        self._stop = threading.Event()
        self._packed: dict[tuple[int, int], bytes] = {}
        self.pending: dict[Future, int] = {}

    @property
    def _threads(self) -> bool:
        return isinstance(self._executor, ThreadPoolExecutor)

    def submit(self, index: int, block: Block) -> None:
        try:
            future = self._sent(index, block)
        except BrokenExecutor as error:  # as process pools are once a worker has died
            self._take_over(error)
            future = self._sent(index, block)
        self.pending[future] = index

    def _sent(self, index: int, block: Block) -> Future:
        if not self._threads:
            own = replace(block, path=None, transition=None)  # type: ignore[arg-type]
            return self._executor.submit(_run_packed, self._shared(block), own)
        return self._executor.submit(
            run_block,
            block,
            partial(self._report, index),
            self._stop,
            partial(self._store.offer, index, self._stop),
            self._store.snapshots.get(index),
        )

    def _shared(self, block: Block) -> bytes:
        """Pack what the blocks have in common once, however many are waiting."""
        key = id(block.path), id(block.transition)
        if key not in self._packed:
            self._packed[key] = cloudpickle.dumps((block.path, block.transition))
        return self._packed[key]

    def _take_over(self, error: BrokenExecutor) -> None:
        warnings.warn(
            f"The executor lost its workers ({error}); the blocks that are left run in threads of "
            "this process.",
            stacklevel=2,
        )
        self._executor = self._own = ThreadPoolExecutor(processors())

    def finished(self, patience: float | None) -> Iterator[tuple[int, Future]]:
        """Wait for blocks, no longer than told; those not taken stay in hand."""
        done, _ = wait(self.pending, timeout=patience, return_when=FIRST_COMPLETED)
        for future in sorted(done, key=self.pending.__getitem__):
            yield self.pending.pop(future), future

    def tell(self, index: int, progress: BlockProgress) -> None:
        """Report a finished block of a worker that could not do so itself."""
        if not self._threads:
            self._report(index, progress)

    def dismiss(self, store: BlockStore) -> None:
        """Stop the workers; keep what is finished, and save what is not."""
        self._stop.set()
        for future in self.pending:
            future.cancel()
        if self._threads:
            wait(self.pending)
        for future, index in self.pending.items():
            if _succeeded(future):
                store.add(index, future.result())
        store.save()

    def close(self) -> None:
        if self._own is not None:
            self._own.shutdown()


def _succeeded(future: Future) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _run_packed(shared: bytes, own: Block) -> BlockResult:
    """Run a block in another process."""
    path, transition = _unpacked(shared)
    return run_block(replace(own, path=path, transition=transition))


@lru_cache(maxsize=4)
def _unpacked(shared: bytes) -> tuple[Path, Transition]:
    """Return path and transition: the same objects for all blocks, compiled for once."""
    with jax.enable_x64(True):  # their arrays are of double precision from the start
        return pickle.loads(shared)

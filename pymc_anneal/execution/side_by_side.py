"""Whole calls on the workers of an executor, in place of the blocks of one run.

A call gives the same result on every worker. Workers are processes, of this machine or of a
cluster: PyTensor and JAX keep settings for a whole process, which threads would share.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, as_completed
from typing import TypeVar

T = TypeVar("T")


def run_calls(
    calls: Sequence[Callable[[], T]],
    executor: Executor | None = None,
    begin: Callable[[int], None] = lambda number: None,
) -> Iterator[tuple[int, T]]:
    """Yield the number and the result of each call as soon as it is finished.

    Parameters
    ----------
    calls : sequence of callable
        Without arguments; with an executor they have to be pickled.
    executor : Executor, optional
        Default: one call after another in this thread.
    begin : callable
        Receives the number of each call that begins in this thread.

    Yields
    ------
    tuple of int and object
        In the order in which the calls finish. An exception of a call is raised, after the results
        that are there; the calls that have not begun are then cancelled, as they are if the
        iterator is closed.
    """
    if executor is None:
        for number, call in enumerate(calls):
            begin(number)
            yield number, call()
        return
    futures = {executor.submit(call): number for number, call in enumerate(calls)}
    ahead = set(futures)
    try:
        for future in as_completed(futures):
            ahead.remove(future)
            if future.exception() is not None:
                yield from ((futures[f], f.result()) for f in ahead if _has_result(f))
            yield futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()


def _has_result(future: Future[T]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None

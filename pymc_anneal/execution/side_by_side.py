"""Whole calls on the workers of an executor, in place of the blocks of one run.

A call gives the same result on every worker. Workers are processes, of this machine or of a
cluster: PyTensor and JAX keep settings for a whole process, which threads would share.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
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
        In the order in which the calls finish. An exception of a call is raised; the calls that
        have not begun are then cancelled, as they are if the iterator is closed.
    """
    if executor is None:
        for number, call in enumerate(calls):
            begin(number)
            yield number, call()
        return
    futures = {executor.submit(call): number for number, call in enumerate(calls)}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()

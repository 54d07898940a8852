"""Compiled PyTensor functions, called for many points: here, or on the workers of an executor.

A point at which the function raises an exception has the value NaN, which a run either reports as
an error or counts as zero likelihood. The first traceback is kept. Points that are not finite have
the value NaN without a call.
"""

import threading
import time
import traceback
import warnings

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias, cast

import numpy as np
import pytensor

from pytensor.graph.basic import Variable

from pymc_anneal.base.pickling import SharedPickle

# From the values of the inputs of a graph to those of its outputs.
HostFunction: TypeAlias = Callable[..., list[np.ndarray]]
Graph: TypeAlias = tuple[list[Variable], list[Variable]]
Point: TypeAlias = tuple[np.ndarray, ...]

# Pieces for each worker into which a batch is cut, so that none waits long for the others.
_PIECES = 4


class Values(NamedTuple):
    """Values of a function at some points.

    Attributes
    ----------
    rows : list of list of ndarray, or None
        The outputs at each point; None where they are NaN.
    calls, failures : int
        Calls, and those that raised an exception.
    error : str
        Traceback of the first exception; "" if there was none.
    seconds : float
        Time that the calls took.
    """

    rows: list[list[np.ndarray] | None]
    calls: int = 0
    failures: int = 0
    error: str = ""
    seconds: float = 0.0


@dataclass(eq=False)
class Calls:
    """Where a function is called, and a record of the calls since the last `recorded`.

    Attributes
    ----------
    executor : Executor or None
        Evaluates points beside each other; None: one after the other in this process.
    workers : int
        Number of its workers.
    count, failures : int
        Calls, and those that raised an exception.
    seconds : float
        Time that they took, of all workers together.
    error : str
        Traceback of the first exception; "" if there was none.
    """

    executor: Executor | None = None
    workers: int = 1
    count: int = 0
    failures: int = 0
    seconds: float = 0.0
    error: str = ""

    @contextmanager
    def recorded(self, executor: Executor | None, workers: int) -> Iterator[None]:
        """Begin a new record, and evaluate on an executor for the duration of the context."""
        self.count, self.failures, self.seconds, self.error = 0, 0, 0.0, ""
        self.executor, self.workers = executor, workers
        try:
            yield
        finally:
            self.executor = None

    def add(self, values: Values) -> None:
        """Add the calls that gave some values to the record."""
        self.count += values.calls
        self.failures += values.failures
        self.seconds += values.seconds
        self.error = self.error or values.error


def compile_graph(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> HostFunction:
    """Compile a graph by PyTensor's default backend."""
    with warnings.catch_warnings():
        # Numba warns of Ops that it cannot compile; the model's notes say that they are slow.
        warnings.filterwarnings("ignore", message="Numba will use object mode")
        function = pytensor.function(list(inputs), list(outputs), on_unused_input="ignore")
    return cast("HostFunction", function)


class PointFunction:
    """A graph as a function of many points.

    Parameters
    ----------
    graph
        Inputs and outputs.
    calls
        Where to call it; the record grows.
    """

    def __init__(self, graph: Graph, calls: Calls):
        self._shared, self._calls = SharedPickle(graph), calls
        self._function = compile_graph(*graph)
        # A compiled function has one storage for its inputs; and solvers in Fortran or C are often
        # not safe in several threads.
        self._lock = threading.Lock()

    def __call__(self, points: list[Point]) -> list[list[np.ndarray] | None]:
        """Evaluate points; None where the values are NaN."""
        executor = self._calls.executor
        pieces = [self._here(points)] if executor is None else self._spread(executor, points)
        for piece in pieces:
            self._calls.add(piece)
        return [row for piece in pieces for row in piece.rows]

    def _here(self, points: list[Point]) -> Values:
        with self._lock:
            return _evaluate(self._function, points)

    def _spread(self, executor: Executor, points: list[Point]) -> list[Values]:
        """Evaluate pieces of a batch on the workers; here, if the workers are lost."""
        size = -(-len(points) // (_PIECES * self._calls.workers))
        pieces = [points[i : i + size] for i in range(0, len(points), size)]
        try:
            futures = [executor.submit(_evaluate_shared, self._shared, piece) for piece in pieces]
            return [future.result() for future in futures]
        except BrokenExecutor as error:
            warnings.warn(
                f"The executor lost its workers ({error}); the remaining calls of the likelihood "
                "are made by this process.",
                stacklevel=2,
            )
            self._calls.executor = None
            return [self._here(points)]


def _evaluate_shared(graph: SharedPickle[Graph], points: list[Point]) -> Values:
    return _evaluate(_compiled(graph), points)


@lru_cache(maxsize=8)
def _compiled(graph: SharedPickle[Graph]) -> HostFunction:
    """Compile a graph once in each worker."""
    return compile_graph(*graph.value)


def _evaluate(function: HostFunction, points: list[Point]) -> Values:
    begin, first, failures, calls = time.perf_counter(), "", 0, 0
    rows: list[list[np.ndarray] | None] = [None] * len(points)
    for i, point in enumerate(points):
        if not all(np.isfinite(value).all() for value in point):
            continue
        calls += 1
        try:
            rows[i] = function(*point)
        except Exception:  # Of any class: a black box may raise whatever it likes.
            failures += 1
            first = first or traceback.format_exc()
    return Values(rows, calls, failures, first, time.perf_counter() - begin)

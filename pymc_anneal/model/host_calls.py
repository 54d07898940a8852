"""Compiled PyTensor functions, called for many points: here, or on the workers of an executor.

A point at which the function raises an exception has the value NaN, which a run either reports as
an error or counts as zero likelihood. The first traceback is kept. Points that are not finite have
the value NaN without a call. A black box that takes batches is called once for all points
(`batch_form.py`), after its values at the first ones have been compared with those of single calls.
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
from pymc_anneal.model.batch_form import batch_form

# From the values of the inputs of a graph to those of its outputs.
HostFunction: TypeAlias = Callable[..., list[np.ndarray]]
Graph: TypeAlias = tuple[list[Variable], list[Variable]]
Point: TypeAlias = tuple[np.ndarray, ...]

# Points at which a batch is compared with single calls, and the largest relative difference: that
# of sums in another order.
_COMPARED, _TOLERANCE = 4, 1e-6

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
    each : float
        Median time of a point: of calls that are short, other programs interrupt few.
    """

    rows: list[list[np.ndarray] | None]
    calls: int = 0
    failures: int = 0
    error: str = ""
    seconds: float = 0.0
    each: float = np.inf


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
    points : int
        Points at which values were asked for: more than calls if these take batches.
    seconds : float
        Time that the calls took, of all workers together.
    fastest : float
        Least median time of a point in a batch, the same wherever the calls are made and however
        busy the machine is; infinite before the first.
    error : str
        Traceback of the first exception; "" if there was none.
    """

    executor: Executor | None = None
    workers: int = 1
    count: int = 0
    failures: int = 0
    points: int = 0
    seconds: float = 0.0
    fastest: float = np.inf
    error: str = ""

    @property
    def seconds_per_point(self) -> float:
        """Time until the value at one more point is known; 0 before the first."""
        return self.seconds / self.workers / max(self.points, 1)

    @contextmanager
    def recorded(self, executor: Executor | None, workers: int) -> Iterator[None]:
        """Begin a new record, and evaluate on an executor for the duration of the context."""
        self.count, self.failures, self.points, self.seconds, self.error = 0, 0, 0, 0.0, ""
        self.fastest = np.inf
        self.executor, self.workers = executor, workers
        try:
            yield
        finally:
            self.executor = None

    def add(self, values: Values) -> None:
        """Add the calls that gave some values to the record."""
        self.count += values.calls
        self.points += len(values.rows)
        self.failures += values.failures
        self.seconds += values.seconds
        self.error = self.error or values.error
        if values.rows and all(row is not None for row in values.rows):
            self.fastest = min(self.fastest, values.each)


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
        self._evaluate = Evaluator(graph)
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
            return self._evaluate(points)

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
    return _compiled(graph)(points)


@lru_cache(maxsize=8)
def _compiled(graph: SharedPickle[Graph]) -> "Evaluator":
    """Compile a graph once in each worker."""
    return Evaluator(graph.value)


class Evaluator:
    """A compiled graph, evaluated at points: all at once if its black boxes take batches."""

    def __init__(self, graph: Graph):
        self._single = compile_graph(*graph)
        batched = batch_form(*graph)
        self._batched = compile_graph(*batched) if batched else None
        self._is_compared = False

    def __call__(self, points: list[Point]) -> Values:
        """Evaluate points; those that are not finite have no value."""
        if self._batched is None:
            return _evaluate_singly(self._single, points)
        begin = time.perf_counter()
        finite = [i for i, point in enumerate(points) if _is_finite(point)]
        if not finite:
            return Values([None] * len(points))
        try:
            found = self._batched(
                *(np.stack(v) for v in zip(*(points[i] for i in finite), strict=True))
            )
            rows: list[list[np.ndarray] | None] = [None] * len(points)
            for k, i in enumerate(finite):
                rows[i] = [np.asarray(value[k]) for value in found]
        except Exception:  # Of any class. Single calls find the point at which it is raised.
            return _evaluate_singly(self._single, points)
        if not self._is_compared and not self._agrees(points, rows):
            self._batched = None
            return _evaluate_singly(self._single, points)
        seconds = time.perf_counter() - begin
        return Values(rows, calls=1, seconds=seconds, each=seconds / len(finite))

    def _agrees(self, points: list[Point], rows: list[list[np.ndarray] | None]) -> bool:
        """Compare values of a batch with those of single calls; warn if they differ."""
        held = [(point, row) for point, row in zip(points, rows, strict=True) if row is not None]
        expected = _evaluate_singly(self._single, [point for point, _ in held[:_COMPARED]])
        self._is_compared = len(held) > 1
        same = all(
            row is not None and all(map(_is_close, batch, row))
            for (_, batch), row in zip(held, expected.rows, strict=False)
        )
        if not same:
            warnings.warn(
                "A black box with a registered `vectorize_node` or `gufunc_spec` has other values "
                "for a batch of points than for each of them, and is called point by point: "
                "correct its `perform` for inputs with a leading axis.",
                stacklevel=2,
            )
        return same


def _is_close(first: np.ndarray, second: np.ndarray) -> bool:
    return np.shape(first) == np.shape(second) and np.allclose(
        first, second, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True
    )


def _is_finite(point: Point) -> bool:
    return all(np.isfinite(value).all() for value in point)


def _evaluate_singly(function: HostFunction, points: list[Point]) -> Values:
    begin, first, failures, times = time.perf_counter(), "", 0, list[float]()
    rows: list[list[np.ndarray] | None] = [None] * len(points)
    for i, point in enumerate(points):
        if not _is_finite(point):
            continue
        start = time.perf_counter()
        try:
            rows[i] = function(*point)
        except Exception:  # Of any class: a black box may raise whatever it likes.
            failures += 1
            first = first or traceback.format_exc()
        times.append(time.perf_counter() - start)
    seconds, each = time.perf_counter() - begin, float(np.median(times)) if times else np.inf
    return Values(rows, len(times), failures, first, seconds, each)

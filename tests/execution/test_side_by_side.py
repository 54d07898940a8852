"""Whole calls, one after another or on an executor."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from threading import Event

import pytest

from pymc_anneal.execution.side_by_side import run_calls
from pymc_anneal.execution.workers import runs_processes
from tests.serial_executor import Serial

CALLS = [partial(pow, 2, k) for k in range(4)]


@pytest.mark.parametrize("executor", [None, Serial()])
def test_results_with_their_numbers(executor) -> None:
    assert dict(run_calls(CALLS, executor)) == {0: 1, 1: 2, 2: 4, 3: 8}


def test_calls_in_this_thread_announce_their_beginning() -> None:
    begun: list[int] = []
    calls = run_calls(CALLS, begin=begun.append)
    assert next(calls) == (0, 1)
    assert begun == [0]
    assert list(calls)[-1] == (3, 8)
    assert begun == [0, 1, 2, 3]


def test_an_error_cancels_the_calls_that_have_not_begun() -> None:
    made, release = [], Event()
    calls = [partial(divmod, 1, 0), partial(release.wait, 60), partial(made.append, 1)]
    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(ZeroDivisionError):
            list(run_calls(calls, executor))
        release.set()
    assert not made


def test_results_that_are_there_come_before_an_error() -> None:
    calls = run_calls([partial(divmod, 1, 0), *CALLS], Serial())
    found = dict[int, int]()
    with pytest.raises(ZeroDivisionError):
        for number, result in calls:
            found[number] = result
    assert found == {1: 1, 2: 2, 3: 4, 4: 8}


def test_which_executors_have_other_processes() -> None:
    assert not runs_processes(None)
    with ThreadPoolExecutor(1) as threads, ProcessPoolExecutor(1) as processes:
        assert not runs_processes(threads)
        assert runs_processes(processes)

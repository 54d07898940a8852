"""The first test that fails, in a process of its own.

The processes are forked from one that has imported the libraries already: imports would take
most of the time of most mutants.
"""

import multiprocessing
import os
import signal
import sys

from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

# Seconds after which a mutant counts as killed: its tests hang, or take many times as long.
TIMEOUT = 300.0
# What is imported once. The package itself is not: each copy has its own.
LIBRARIES = ["arviz", "jax", "pymc", "scipy.optimize", "scipy.stats"]
_CONTEXT = multiprocessing.get_context("forkserver")


def import_once() -> None:
    """Import the libraries in the process from which the others are forked."""
    _CONTEXT.set_forkserver_preload(LIBRARIES)


def first_failure(root: Path, tests: Sequence[str]) -> str:
    """Run tests until one fails, and return its name; "" if all pass.

    Raises
    ------
    RuntimeError
        No test was run to its end: what was found says nothing about a bug.
    """
    receiver, sender = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_run, args=(root, tests, sender))
    process.start()
    sender.close()
    try:
        if not receiver.poll(TIMEOUT):
            return f"no end in {TIMEOUT:.0f} s"
        return _read(receiver, process, tests)
    finally:
        process.kill()
        process.join()


def _read(
    receiver: Connection, process: multiprocessing.process.BaseProcess, tests: Sequence[str]
) -> str:
    try:
        status, failure = receiver.recv()
    except EOFError:
        process.join()
        status, failure = process.exitcode, ""
    if status == pytest.ExitCode.OK:
        return ""
    if status in (-signal.SIGKILL, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise RuntimeError(f"{tests} ended with status {status}: no test was run.")
    return failure or f"pytest ends with status {status}"


class _First:
    """Keep the name of the first test, or file, that fails."""

    def __init__(self) -> None:
        self.failure = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failure = self.failure or report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failure = self.failure or report.nodeid


def _run(root: Path, tests: Sequence[str], sender: Connection) -> None:
    """Run tests in the copy at `root`, silently, and send pytest's status and the failure."""
    os.setsid()  # a test that Ctrl-C ends would seem to kill
    _silence()
    os.chdir(root)
    for name in [x for x in sys.modules if x.split(".")[0] in ("tests", "pymc_anneal")]:
        del sys.modules[name]
    sys.path.insert(0, str(root))
    os.environ["PYTHONPATH"] = str(root)  # of the processes that tests start
    first = _First()
    status = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests], plugins=[first])
    sender.send((int(status), first.failure))


def _silence() -> None:
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)

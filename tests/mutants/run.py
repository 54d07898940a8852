"""Run the tests of every mutant in a copy of the project."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from tests.mutants.mutant import Mutant

# Seconds after which a mutant counts as killed: its tests hang, or take ten times as long.
TIMEOUT = 600.0
# As `make test` runs them: programs run once and briefly.
FLAGS = {"OPENBLAS_NUM_THREADS": "1", "XLA_FLAGS": "--xla_backend_optimization_level=1"}
_LEFT_OUT = (".git", ".venv*", "*cache*", "docs", "benchmarks", "dist", "build")


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant.

    Attributes
    ----------
    name : str
    killed_by : str
        The first test that fails; "" if none does.
    seconds : float
    """

    name: str
    killed_by: str
    seconds: float


@contextmanager
def copies(root: Path, count: int):
    """Make copies of the project that are deleted afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / str(i) for i in range(count)]
        for path in paths:
            shutil.copytree(root, path, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        yield paths


def first_failure(root: Path, tests: Sequence[str]) -> str:
    """Run tests until one fails, and return its name; "" if all pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, **FLAGS, "PYTHONPATH": str(root)}
    try:
        done = subprocess.run(
            command,
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no end in {TIMEOUT:.0f} s"
    if done.returncode == 0:
        return ""
    lines = [x for x in done.stdout.splitlines() if x.startswith(("FAILED", "ERROR"))]
    return lines[0].split(" - ")[0] if lines else f"pytest ends with status {done.returncode}"


def run_mutant(root: Path, mutant: Mutant) -> Outcome:
    """Put a bug into a copy, run its tests, and mend the copy."""
    begin = time.monotonic()
    text = mutant.apply(root)
    try:
        killed_by = first_failure(root, mutant.tests)
    finally:
        (root / mutant.file).write_text(text, encoding="utf-8")
    return Outcome(mutant.name, killed_by, round(time.monotonic() - begin, 1))


def broken_targets(root: Path, mutants: Sequence[Mutant]) -> list[str]:
    """Return the failures of the tests without any bug: they would seem to kill."""
    targets = sorted({target for mutant in mutants for target in mutant.tests})
    failure = first_failure(root, targets)
    return [failure] if failure else []


def run_all(
    root: Path, mutants: Sequence[Mutant], workers: int = 1, log: Path | None = None
) -> list[Outcome]:
    """Run mutants that are not in the log yet; print and log each outcome.

    Raises
    ------
    RuntimeError
        A test fails without any bug.
    """
    done = read_log(log)
    missing = [m for m in mutants if m.name not in done]
    with copies(root, workers) as paths:
        broken = broken_targets(paths[0], missing) if missing else []
        if broken:
            raise RuntimeError(f"A test fails without any bug: {broken[0]}")
        free: SimpleQueue[Path] = SimpleQueue()
        for path in paths:
            free.put(path)
        run = partial(_run_in_free_copy, free, log, Lock())
        with ThreadPoolExecutor(workers) as pool:
            found = list(pool.map(run, missing))
    return [*done.values(), *found]


def _run_in_free_copy(free: SimpleQueue, log: Path | None, lock: Lock, mutant: Mutant) -> Outcome:
    path = free.get()
    try:
        outcome = run_mutant(path, mutant)
    finally:
        free.put(path)
    with lock:
        print(describe(outcome), flush=True)  # noqa: T201
        if log is not None:
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(outcome)) + "\n")
    return outcome


def describe(outcome: Outcome) -> str:
    """Return the line of an outcome."""
    what = f"killed by {outcome.killed_by}" if outcome.killed_by else "SURVIVED"
    return f"{outcome.seconds:6.1f} s  {outcome.name}: {what}"


def read_log(log: Path | None) -> dict[str, Outcome]:
    """Return the outcomes of an earlier run."""
    if log is None or not log.exists():
        return {}
    rows = [Outcome(**json.loads(line)) for line in log.read_text(encoding="utf-8").splitlines()]
    return {row.name: row for row in rows}


def unexplained(mutants: Sequence[Mutant], outcomes: Sequence[Outcome]) -> list[Mutant]:
    """Return the survivors without a reason."""
    alive = {outcome.name for outcome in outcomes if not outcome.killed_by}
    return [mutant for mutant in mutants if mutant.name in alive and not mutant.reason]

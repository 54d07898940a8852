"""Run the tests of every mutant in a copy of the project."""

import json
import shutil
import tempfile
import time

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.first_failure import first_failure
from tests.mutants.mutant import Mutant

# Names that are not copied, at any depth: no test of the table needs them.
_LEFT_OUT = (".git", ".venv*", ".*cache", "__pycache__", "docs", "benchmarks", "dist", "build")


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
def copies(root: Path, count: int) -> Iterator[list[Path]]:
    """Make copies of the project that are deleted afterwards.

    They share the compiled programs of the project, which take most of the time of the tests.
    """
    cache = root / ".pytest_cache"
    cache.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / str(i) for i in range(count)]
        for path in paths:
            shutil.copytree(root, path, ignore=shutil.ignore_patterns(*_LEFT_OUT))
            (path / cache.name).symlink_to(cache.resolve())
        yield paths


def run_mutant(root: Path, mutant: Mutant) -> Outcome:
    """Put a bug into a copy, run its tests, and mend the copy."""
    begin = time.monotonic()
    text = mutant.apply(root)
    try:
        killed_by = first_failure(root, mutant.tests)
    finally:
        (root / mutant.file).write_text(text, encoding="utf-8")
    return Outcome(mutant.name, killed_by, round(time.monotonic() - begin, 1))


class Baseline:
    """What the tests say without any bug: those that fail would seem to kill."""

    def __init__(self) -> None:
        self._failures = dict[tuple[str, ...], str]()

    def check(self, root: Path, tests: tuple[str, ...]) -> None:
        """Run tests in a copy without a bug, once for all mutants that have the same.

        Raises
        ------
        RuntimeError
            A test fails.
        """
        if tests not in self._failures:
            self._failures[tests] = first_failure(root, tests)
        if self._failures[tests]:
            raise RuntimeError(f"A test fails without any bug: {self._failures[tests]}")


def run_all(
    root: Path, mutants: Sequence[Mutant], workers: int = 1, log: Path | None = None
) -> list[Outcome]:
    """Run mutants that are not in the log yet; print and log each outcome.

    After Ctrl-C the outcomes so far are returned.

    Raises
    ------
    RuntimeError
        A test fails without any bug.
    """
    found = read_log(log)
    missing = [m for m in mutants if m.name not in found]
    with copies(root, workers) as paths, ThreadPoolExecutor(workers) as pool:
        free: SimpleQueue[Path] = SimpleQueue()
        for path in paths:
            free.put(path)
        baseline = Baseline()
        futures = [pool.submit(_run_in_free_copy, free, baseline, m) for m in missing]
        try:
            for future in as_completed(futures):
                outcome = future.result()
                found[outcome.name] = outcome
                _tell(outcome, log)
        except KeyboardInterrupt:
            print("Interrupted; the outcomes so far:", flush=True)  # noqa: T201
        finally:
            pool.shutdown(cancel_futures=True)
    return [found[m.name] for m in mutants if m.name in found]


def _run_in_free_copy(free: SimpleQueue[Path], baseline: Baseline, mutant: Mutant) -> Outcome:
    path = free.get()
    try:
        baseline.check(path, mutant.tests)
        return run_mutant(path, mutant)
    finally:
        free.put(path)


def _tell(outcome: Outcome, log: Path | None) -> None:
    """Print an outcome, and append it to the log."""
    print(describe(outcome), flush=True)  # noqa: T201
    if log is not None:
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")


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

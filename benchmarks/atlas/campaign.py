"""Rows in parallel processes, each with a limit of CPU seconds, kept in a file of JSON lines.

A row is a posterior, a method and a seed. Rows that the file holds are not run again, so that a
campaign goes on where it was stopped.
"""

import json
import os
import platform
import re
import signal
import subprocess
import sys

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from pymc_anneal._version import __version__

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results" / "atlas.jsonl"
# Compiled programs of earlier processes are not used; BLAS does not compete with other rows.
ENVIRONMENT = {"PYMC_ANNEAL_CACHE": "off", "OPENBLAS_NUM_THREADS": "1"}
# Wall seconds for each CPU second of the limit: other work on the machine does not end a row.
PATIENCE = 6
CALLS = {"ais": ("cold", "warm"), "bridge": ("cold",)}


class Row(NamedTuple):
    """What one process measures."""

    model: str
    method: str
    seed: int


def read(file: Path) -> list[dict]:
    """Return the records of a file, none where there is no file."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [json.loads(line) for line in lines]


def missing(rows: list[Row], records: list[dict], retry: bool) -> list[Row]:
    """Return the rows that are not in the records; with `retry`, those that failed as well."""
    known = {row_of(r) for r in records if not (retry and "failure" in r)}
    return [row for row in rows if row not in known]


def row_of(record: dict) -> Row:
    return Row(record["model"], record["method"], record["seed"])


def run(
    rows: list[Row], file: Path, limit: float, workers: int, report: Callable[[dict], None]
) -> None:
    """Measure the rows, append their records to the file and report each."""
    lock = Lock()

    def measure(row: Row) -> None:
        found = list(records(row, limit))
        with lock, file.open("a", encoding="utf-8") as stream:
            for record in found:
                stream.write(json.dumps(record) + "\n")
                report(record)

    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(measure, row) for row in rows]
        try:
            for future in futures:
                future.result()
        except BaseException:  # an interrupt too: only the rows in progress go on to their end
            pool.shutdown(cancel_futures=True)
            raise


def records(row: Row, limit: float) -> Iterator[dict]:
    """Yield the record of each call of a row; one that did not end has a "failure"."""
    lines, failure = run_process(row, limit)
    found = [json.loads(line) for line in lines if line.startswith("{")]
    calls = CALLS[row.method]
    lost = [{"call": call, "failure": failure} for call in calls[len(found) :]]
    for record in found + lost:
        yield {**row._asdict(), **record, "limit": limit, "on": machine()}


def run_process(row: Row, limit: float) -> tuple[list[str], str]:
    """Return the lines that the process of a row has printed, and why it failed, if so."""
    process = subprocess.Popen(
        command(row, limit),
        cwd=ROOT,
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # samplers have processes of their own, which end with it
    )
    try:
        output, errors = process.communicate(timeout=PATIENCE * limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0].splitlines(), f"no end in {PATIENCE * limit:.0f} s"
    if process.returncode == -signal.SIGXCPU:
        return output.splitlines(), f"no end in {limit:.0f} CPU s"
    return output.splitlines(), message(errors) or f"ended with code {process.returncode}"


def message(errors: str) -> str:
    """Return the message of the last exception of a traceback, from the name of its class."""
    starts = [match.start() for match in re.finditer(r"^[\w.]*(Error|Exception)\b", errors, re.M)]
    return " ".join(errors[starts[-1] :].split()) if starts else " ".join(errors.split())[-300:]


def command(row: Row, limit: float) -> list[str]:
    program = [sys.executable, "-W", "ignore", "-m", "benchmarks.atlas.row"]
    return [*program, *map(str, row), str(limit)]


def machine() -> dict[str, str | float]:
    """Return date, versions and the machine."""
    names = ("pymc", "pytensor", "jax", "numpy")
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "cores": os.cpu_count() or 0,
        "load": round(os.getloadavg()[0], 1),
        "machine": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "pymc_anneal": __version__,
        "commit": commit(),
        **{name: version(name) for name in names},
    }


def commit() -> str:
    """Return the commit of the code, empty where it is no clone."""
    command = ["git", "rev-parse", "--short=10", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()

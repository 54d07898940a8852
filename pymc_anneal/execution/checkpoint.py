"""Checkpoints: finished stages and blocks in a file, from which a run resumes to the same bits.

A run is a sequence of stages, and the inputs of each stage follow from the results of the earlier
ones. A stage log holds the results of the stages so far, the finished blocks of the current stage,
and snapshots of its unfinished blocks. A resumed run takes the results in the log and computes the
others. A decision that depends on the clock, such as the plan under a time limit, is a stage like
any other, so a resumed run ends in the same bits as an uninterrupted one.

The file is complete at every moment. It contains pickles: load none from a source you do not trust.
"""

import json
import os
import pickle
import threading
import time
import warnings

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import cloudpickle
import numpy as np

from pymc_anneal.annealing.block import BlockResult, Snapshot
from pymc_anneal.base.arguments import check_positive
from pymc_anneal.base.caller import levels_to_caller
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.execution.checkpoint_file import read_checkpoint, write_checkpoint

# Name of the seed in the fingerprint.
SEED = "random_seed"

# Largest time in seconds between two checks whether the file is due.
_MAX_POLL_INTERVAL = 1.0

T = TypeVar("T")


class _Content(NamedTuple):
    """Body of the file.

    Attributes
    ----------
    stages : dict
        Results of the finished stages.
    results, snapshots : dict of dict
        For each stage made of blocks, results of the finished blocks and snapshots of the others,
        by the index of the block.
    seconds : float
        Time that the run has taken.
    """

    stages: dict[str, Any]
    results: dict[str, dict[int, BlockResult]]
    snapshots: dict[str, dict[int, Snapshot]]
    seconds: float = 0.0


@dataclass(frozen=True)
class Checkpoint:
    """File and interval of the checkpoints of a run.

    The file contains a pickle, and whoever can write to it can run code in the process that reads
    it: open no checkpoint but your own.

    Parameters
    ----------
    path : str or path
        The file. Its folder must exist. A lock is kept beside it while a run writes to it.
    interval : float
        Seconds between two versions of the file.

    Raises
    ------
    ValueError
        The path is not that of a file, or the interval is not positive.
    FileNotFoundError
        The folder does not exist.
    """

    path: str | os.PathLike[str]
    interval: float = 60.0

    def __post_init__(self) -> None:
        check_positive("interval", self.interval, "seconds, above 0")
        given = isinstance(self.path, str | os.PathLike)
        if not given or not self.path or Path(self.path).is_dir():
            raise ValueError(f"`checkpoint` is {self.path!r}, expected the path of a file.")
        folder = Path(self.path).absolute().parent
        if not folder.is_dir():
            raise FileNotFoundError(
                f"The folder {folder} of the checkpoint does not exist: create it first."
            )

    def open(self, fingerprint: Mapping[str, str]) -> "StageLog":
        """Return the stage log in the file, or an empty one if there is no file.

        Parameters
        ----------
        fingerprint : mapping of str to str
            Everything that the bits of the run depend on, in words or hashes, by name. Without the
            key ``random_seed`` the run takes the seed in the file.

        Raises
        ------
        ValueError
            The file belongs to another run; the message names the differences. Or it is no
            checkpoint, is damaged, or has the format of another version.
        """
        path = Path(self.path)
        if not path.exists():
            return StageLog(self, fingerprint)
        found, body = read_checkpoint(path)
        differing = [k for k in {**found, **fingerprint} if _differs(found, fingerprint, k)]
        if differing:
            lines = [
                f"  {k}: {found.get(k)} in the file, {fingerprint.get(k)} now" for k in differing
            ]
            raise ValueError(
                f"The checkpoint {path} belongs to another run. Differences:\n"
                + "\n".join(lines)
                + "\nRestore what differs, choose another file, or delete this one to start again."
            )
        return StageLog(self, found, _unpickle(body))


def _differs(found: Mapping[str, str], present: Mapping[str, str], key: str) -> bool:
    if key == SEED and key not in present:
        return False
    return found.get(key) != present.get(key)


@double_precision
def _unpickle(body: bytes) -> _Content:
    content: _Content = pickle.loads(body)
    return content


class BlockStore:
    """Results and snapshots of the blocks of one stage.

    Parameters
    ----------
    log : StageLog, optional
        The log that saves them; default: none, and no snapshots are taken.

    Attributes
    ----------
    results : dict of int to BlockResult
        Results of the finished blocks.
    snapshots : dict of int to Snapshot
        Latest snapshots of the others.
    """

    def __init__(self, log: "StageLog | None" = None) -> None:
        self._log = log
        self._lock = log.lock if log else threading.Lock()
        self._last_snapshot: dict[int, float] = {}
        self.results: dict[int, BlockResult] = {}
        self.snapshots: dict[int, Snapshot] = {}

    @property
    def poll_interval(self) -> float | None:
        """Seconds between two calls of `save_if_due`; None: no limit."""
        return None if self._log is None else min(self._log.interval, _MAX_POLL_INTERVAL)

    def add(self, index: int, result: BlockResult) -> None:
        """Store the result of a finished block."""
        with self._lock:
            self.results[index] = result
            self.snapshots.pop(index, None)

    def offer(self, index: int, take: Callable[[], Snapshot], last: bool) -> None:
        """Take a snapshot of a block if one is due, or if it is the last one before a stop."""
        if self._log is None:
            return
        now = time.monotonic()
        age = now - self._last_snapshot.setdefault(index, now)
        if age < self._log.interval and not last:
            return
        self._last_snapshot[index] = now
        snapshot = take()
        with self._lock:
            self.snapshots[index] = snapshot

    def save_if_due(self) -> None:
        """Write the file if the interval has passed."""
        if self._log is not None:
            self._log.save_if_due()

    def save(self) -> None:
        """Write the file, if there is one."""
        if self._log is not None:
            self._log.save()


class StageLog:
    """Results of the stages of a run, which wraps every stage in a call of the log.

    Parameters
    ----------
    checkpoint : Checkpoint, optional
        The file; default: none, every stage is computed and no result is stored.
    fingerprint : mapping of str to str, optional
        See :meth:`Checkpoint.open`.
    content : optional
        Stages and blocks of an earlier run, as read from the file.
    """

    def __init__(
        self,
        checkpoint: Checkpoint | None = None,
        fingerprint: Mapping[str, str] | None = None,
        content: _Content | None = None,
    ) -> None:
        self.checkpoint, self.fingerprint = checkpoint, dict(fingerprint or {})
        self.lock = threading.Lock()
        self._content = content or _Content({}, {}, {})
        self._count, self._is_open, self._last_save = 0, True, time.monotonic()
        self._last_error = ""
        self._begin = time.perf_counter() - self._content.seconds

    @property
    def seconds(self) -> float:
        """Time that the run has taken, that before it was resumed included."""
        return time.perf_counter() - self._begin

    @property
    def interval(self) -> float:
        """Seconds between two versions of the file."""
        return self.checkpoint.interval if self.checkpoint else float("inf")

    def stage(self, name: str, compute: Callable[[], T]) -> T:
        """Return the result of a stage, from the log if it is there.

        Parameters
        ----------
        name : str
            Name of the stage; the log identifies it by its number in the run and this name.
        compute : callable
            Computes the result, which must be picklable.
        """
        key, stages = self._next_key(name), self._content.stages
        if key in stages:
            known: T = stages[key]
            return known
        result = compute()
        if self._is_open and self.checkpoint is not None:
            stages[key] = result
            self.save_if_due()
        return result

    def blocks(self, name: str) -> BlockStore:
        """Return the store of the next stage, if this one consists of blocks."""
        if self.checkpoint is None or not self._is_open:
            return BlockStore()
        key, store = self._next_key(name), BlockStore(self)
        with self.lock:
            store.results = self._content.results.setdefault(key, store.results)
            store.snapshots = self._content.snapshots.setdefault(key, store.snapshots)
        return store

    def close(self) -> None:
        """Store no further stages: after an interruption they differ from the requested run."""
        self._is_open = False

    def save_if_due(self) -> None:
        """Write the file if the interval has passed."""
        if time.monotonic() - self._last_save >= self.interval:
            self.save()

    def save(self) -> None:
        """Write the file; if that fails, warn once per error and continue."""
        if self.checkpoint is None:
            return
        self._last_save = time.monotonic()
        try:
            with self.lock:
                body = cloudpickle.dumps(self._content._replace(seconds=self.seconds))
            write_checkpoint(Path(self.checkpoint.path), self.fingerprint, body)
        except (OSError, pickle.PicklingError, TypeError) as error:
            self._warn(error)

    def _next_key(self, name: str) -> str:
        self._count += 1
        return f"{self._count} {name}"

    def _warn(self, error: Exception) -> None:
        if str(error) == self._last_error:
            return
        self._last_error = str(error)
        warnings.warn(
            f"The checkpoint could not be written ({error}). The run continues and keeps its "
            "results in memory; free some space or make the folder writable: the run tries again.",
            stacklevel=levels_to_caller(),
        )


def as_checkpoint(checkpoint: str | os.PathLike[str] | Checkpoint) -> Checkpoint:
    """Return a checkpoint with the default interval if only the file is given."""
    return checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)


def open_stage_log(
    checkpoint: str | os.PathLike[str] | Checkpoint,
    fingerprint: Mapping[str, str],
    seed: np.random.SeedSequence,
    seed_is_given: bool,
) -> tuple[StageLog, np.random.SeedSequence]:
    """Open the stage log of a run; return it with the run's seed, the file's if it has one.

    A seed that the user gave has to be that of the file; other errors are those of
    :meth:`Checkpoint.open`.
    """
    opened = as_checkpoint(checkpoint)
    description = json.dumps([_plain(seed.entropy), list(seed.spawn_key)])
    given = {SEED: description} if seed_is_given else {}
    log = opened.open({**fingerprint, **given})
    entropy, spawn_key = json.loads(log.fingerprint.setdefault(SEED, description))
    log.save()
    return log, np.random.SeedSequence(entropy, spawn_key=spawn_key)


def _plain(entropy: Any) -> int | list[int]:
    """Return entropy without NumPy's integers, which JSON lacks."""
    return int(entropy) if np.ndim(entropy) == 0 else [int(e) for e in entropy]

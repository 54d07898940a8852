"""What a long run has finished, kept in a file from which it goes on.

A run is a sequence of stages whose order follows from what the earlier ones returned. A journal
holds the results of the stages so far, the finished blocks of the present one, and snapshots of
the blocks in progress; a run that finds a journal takes each stage from it and computes the rest.
What depends on the clock (the plan under a time limit) is a stage like the others, so the resumed
run ends in the same bits as the run that was left alone. The file is replaced as a whole, by
:func:`os.replace`; it is valid at every moment. Files are pickles: load none from a stranger.
"""

import hashlib
import json
import os
import pickle
import threading
import time
import warnings

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import cloudpickle
import jax
import numpy as np

from pymc_anneal.annealing.block import BlockResult, Snapshot

_MAGIC = "pymc_anneal checkpoint 1"


SEED = "random_seed"


T = TypeVar("T")


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often a run is saved.

    Parameters
    ----------
    path
        The file. Its folder must exist.
    interval
        Seconds between two versions of the file.

    Raises
    ------
    ValueError
        The interval is not positive.
    FileNotFoundError
        The folder does not exist.
    """

    path: str | os.PathLike
    interval: float = 60.0

    def __post_init__(self):
        if not self.interval > 0:
            raise ValueError(f"`interval` is {self.interval}, expected seconds, above 0.")
        folder = Path(self.path).absolute().parent
        if not folder.is_dir():
            raise FileNotFoundError(
                f"The folder {folder} of the checkpoint does not exist: create it first."
            )

    def open(self, fingerprint: Mapping[str, str]) -> "StageLog":
        """Return the journal in the file, or a new one.

        Parameters
        ----------
        fingerprint
            What the bits of the run depend on, in words or hashes, by name. The key
            ``random_seed`` may be missing: that of the file is taken.

        Raises
        ------
        ValueError
            The file is of another run, named by what differs, or no checkpoint.
        """
        path = Path(self.path)
        if not path.exists():
            return StageLog(self, fingerprint)
        found, body = _read(path)
        differs = [k for k in {**found, **fingerprint} if _differs(found, fingerprint, k)]
        if differs:
            lines = [
                f"  {k}: {found.get(k)} in the file, {fingerprint.get(k)} now" for k in differs
            ]
            raise ValueError(
                f"The checkpoint {path} is of another run. What differs:\n"
                + "\n".join(lines)
                + "\nRestore it, choose another file, or delete this one to begin afresh."
            )
        with jax.enable_x64(True):
            stages, results, snapshots = pickle.loads(body)
        return StageLog(self, found, stages, results, snapshots)


def _differs(found: Mapping[str, str], present: Mapping[str, str], key: str) -> bool:
    if key == SEED and key not in present:
        return False
    return found.get(key) != present.get(key)


def _read(path: Path) -> tuple[dict[str, str], bytes]:
    """Return fingerprint and body of a file."""
    head, _, body = path.read_bytes().partition(b"\n")
    try:
        header = json.loads(head)
        sound = header["format"] == _MAGIC and header["sha256"] == _hash(body)
    except (ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        raise ValueError(
            f"{path} is not a whole checkpoint of pymc_anneal {_MAGIC.split()[-1]}: choose "
            "another file, or delete it to begin afresh."
        )
    return header["fingerprint"], body


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


class BlockStore:
    """Blocks of one stage: those finished, and snapshots of those begun.

    Parameters
    ----------
    journal
        Where they are saved; default: nowhere, and no snapshots are taken.
    """

    def __init__(self, journal: "StageLog | None" = None):
        self._journal = journal
        self._lock = journal.lock if journal else threading.Lock()
        self._taken: dict[int, float] = {}
        self.results: dict[int, BlockResult] = {}
        self.snapshots: dict[int, Snapshot] = {}

    @property
    def patience(self) -> float | None:
        """Seconds to wait between looks at the clock; None: for ever."""
        return None if self._journal is None else min(self._journal.interval, 1.0)

    def add(self, index: int, result: BlockResult) -> None:
        """Keep a finished block."""
        with self._lock:
            self.results[index] = result
            self.snapshots.pop(index, None)

    def offer(self, index: int, stop: threading.Event, take: Callable[[], Snapshot]) -> None:
        """Take a snapshot of a block if one is due, or the last one before it stops."""
        if self._journal is None:
            return
        now = time.monotonic()
        if now - self._taken.setdefault(index, now) < self._journal.interval and not stop.is_set():
            return
        self._taken[index] = now
        snapshot = take()
        with self._lock:
            self.snapshots[index] = snapshot

    def save_if_due(self) -> None:
        """Write the file if the interval is over."""
        if self._journal is not None:
            self._journal.save_if_due()

    def save(self) -> None:
        """Write the file, if there is one."""
        if self._journal is not None:
            self._journal.save()


class StageLog:
    """Results of a run's stages, by number and name.

    Parameters
    ----------
    checkpoint
        The file; None: nothing is kept.
    fingerprint
        See :meth:`Checkpoint.open`.
    stages, results, snapshots
        What an earlier run left: stages, finished blocks by stage, blocks begun by stage.
    """

    def __init__(
        self,
        checkpoint: Checkpoint | None = None,
        fingerprint: Mapping[str, str] | None = None,
        stages: dict[str, Any] | None = None,
        results: dict[str, dict[int, BlockResult]] | None = None,
        snapshots: dict[str, dict[int, Snapshot]] | None = None,
    ):
        self.checkpoint, self.fingerprint = checkpoint, dict(fingerprint or {})
        self.lock = threading.Lock()
        self._stages, self._results, self._snapshots = stages or {}, results or {}, snapshots or {}
        self._count, self._open, self._saved = 0, True, time.monotonic()
        self._problem = ""

    @property
    def interval(self) -> float:
        """Seconds between two versions of the file."""
        return self.checkpoint.interval if self.checkpoint else float("inf")

    def stage(self, name: str, compute: Callable[[], T]) -> T:
        """Return the result of a stage, computed unless it is known.

        Parameters
        ----------
        name
            For the reader; the number of the call identifies the stage.
        compute
            Called if the stage is not in the journal.
        """
        key = self._next(name)
        if key not in self._stages:
            result = compute()
            if self._open and self.checkpoint is not None:
                self._stages[key] = result
                self.save_if_due()
            return result
        return self._stages[key]

    def blocks(self, name: str) -> BlockStore:
        """Return the store of the next stage, one that is made of blocks."""
        if self.checkpoint is None:
            return BlockStore()
        key, store = self._next(name), BlockStore(self)
        with self.lock:
            store.results = self._results.setdefault(key, store.results)
            store.snapshots = self._snapshots.setdefault(key, store.snapshots)
        return store

    def close(self) -> None:
        """Keep no further stages: what follows is no longer the run that was asked for."""
        self._open = False

    def save_if_due(self) -> None:
        """Write the file if the interval is over."""
        if time.monotonic() - self._saved >= self.interval:
            self.save()

    def save(self) -> None:
        """Write the file; where that fails, say so once, and go on."""
        if self.checkpoint is None:
            return
        self._saved = time.monotonic()
        try:
            with self.lock:
                body = cloudpickle.dumps((self._stages, self._results, self._snapshots))
            _replace(Path(self.checkpoint.path), self._head(body) + b"\n" + body)
        except (OSError, pickle.PicklingError, TypeError) as error:
            self._warn(error)

    def _head(self, body: bytes) -> bytes:
        head = {"format": _MAGIC, "sha256": _hash(body), "fingerprint": self.fingerprint}
        return json.dumps(head).encode()

    def _next(self, name: str) -> str:
        self._count += 1
        return f"{self._count} {name}"

    def _warn(self, error: Exception) -> None:
        if str(error) == self._problem:
            return
        self._problem = str(error)
        warnings.warn(
            f"The checkpoint could not be written ({error}). The run goes on, and what it has "
            "finished is in memory; make room, or make the folder writable: it tries again.",
            stacklevel=2,
        )


def open_stage_log(
    checkpoint: str | os.PathLike | Checkpoint,
    fingerprint: Mapping[str, str],
    seed: np.random.SeedSequence,
    chosen: bool,
) -> tuple[StageLog, np.random.SeedSequence]:
    """Open the journal of a run.

    Parameters
    ----------
    checkpoint
        The file.
    fingerprint
        See :meth:`Checkpoint.open`.
    seed
        Of the run, unless the file knows better.
    chosen
        Whether the user chose the seed, so that another one in the file is an error.

    Returns
    -------
    StageLog, SeedSequence
        The journal, and the seed to go by.
    """
    opened = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    words = json.dumps([_plain(seed.entropy), list(seed.spawn_key)])
    journal = opened.open({**fingerprint, **({SEED: words} if chosen else {})})
    entropy, spawn_key = json.loads(journal.fingerprint.setdefault(SEED, words))
    journal.save()
    return journal, np.random.SeedSequence(entropy, spawn_key=spawn_key)


def _plain(entropy: Any) -> int | list[int]:
    return int(entropy) if np.ndim(entropy) == 0 else [int(e) for e in entropy]


def _replace(path: Path, content: bytes) -> None:
    """Write a file as a whole or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)

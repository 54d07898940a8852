"""The file of an unfinished training, from which it resumes to the same bits.

A NumPy archive with the parameters, their last update, the fantasy particles, the history, and a
description of everything else that the bits depend on.
"""

import os

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.replaced_file import locked, replace_file
from pymc_anneal.execution.fingerprint import describe, describe_versions
from pymc_anneal.rbm.contrastive_divergence import TrainingState

# Entries of the file besides the history.
_DONE, _TRAINING, _STATE, _COLUMN = "done", "training", "state", "history_"


class Progress(NamedTuple):
    """Number of updates so far, state after them, and the entries of the history."""

    done: int
    state: TrainingState
    history: list[dict[str, float]]


@dataclass(frozen=True)
class TrainingFile:
    """File of a training.

    Parameters
    ----------
    path : str, path or None
        None: nothing is read or written.
    training : str
        Description of the training, in words and hashes.
    """

    path: str | os.PathLike[str] | None
    training: str

    def read(self, start: TrainingState) -> Progress:
        """Return the progress in the file; without a file, the start.

        Raises
        ------
        ValueError
            The file belongs to another training.
        """
        if self.path is None or not Path(self.path).exists():
            return Progress(0, start, [])
        with np.load(self.path) as data:
            if str(data[_TRAINING]) != self.training:
                raise ValueError(
                    f"The checkpoint {self.path} belongs to another training:\n"
                    f"  {data[_TRAINING]}\nin the file,\n  {self.training}\nnow. Restore what "
                    "differs, choose another file, or delete this one to start again."
                )
            count = len(jax.tree.leaves(start))
            leaves = (jnp.asarray(data[f"{_STATE}{i}"]) for i in range(count))
            state: TrainingState = jax.tree.unflatten(jax.tree.structure(start), leaves)
            columns = {
                k.removeprefix(_COLUMN): data[k] for k in data.files if k.startswith(_COLUMN)
            }
            return Progress(int(data[_DONE]), state, _rows(columns))

    def write(self, progress: Progress) -> None:
        """Replace the file; at every moment the old or the new one is complete."""
        if self.path is None:
            return
        leaves = {f"{_STATE}{i}": x for i, x in enumerate(jax.tree.leaves(progress.state))}
        columns = {_COLUMN + k: v for k, v in columns_of(progress.history).items()}
        content: dict[str, Any] = {_DONE: progress.done, _TRAINING: self.training}
        content |= {**leaves, **columns}
        replace_file(Path(self.path), lambda file: np.savez(file, **content))

    def locked(self) -> AbstractContextManager[None]:
        """Keep other trainings from the file."""
        return nullcontext() if self.path is None else locked(Path(self.path))


def describe_training(*parts: Any) -> str:
    """Describe all inputs that determine the result of a training, and the versions."""
    return describe([*parts, describe_versions()])


def columns_of(history: Sequence[Mapping[str, float]]) -> dict[str, np.ndarray]:
    """Return the columns of a history by name."""
    names = history[0] if history else ()
    return {name: np.array([row[name] for row in history]) for name in names}


def _rows(columns: Mapping[str, np.ndarray]) -> list[dict[str, float]]:
    """Return a history from its columns."""
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in values]

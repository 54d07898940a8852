"""Progress bars of the stages of a run."""

import threading

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column

from pymc_anneal.base.progress import BlockProgress, ProgressRecord

# Text of a bar until its first update: what comes first is the compilation.
_FIRST = "compiling"


class ProgressBar:
    """One bar of a display, made by :meth:`ProgressDisplay.add_bar`."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def update(self, completed: float, status: str) -> None:
        """Show the completed part of the bar's total, and a text next to it."""
        self._progress.update(self._task, completed=completed, status=status)

    def show(self, progress: ProgressRecord) -> None:
        """Show a record of progress."""
        self.update(progress.completed, progress.status)


class ProgressDisplay(AbstractContextManager["ProgressDisplay"]):
    """Progress bars with a status text and the time left.

    Parameters
    ----------
    enabled : bool
        False: nothing is shown.
    console : Console, optional
        Default: the standard output, terminal or notebook.
    """

    def __init__(self, enabled: bool = True, console: Console | None = None) -> None:
        text = partial(TextColumn, markup=False)  # names are the user's
        self._progress = Progress(
            SpinnerColumn(),
            text("{task.description}"),
            BarColumn(bar_width=10),
            text("{task.fields[status]}", table_column=Column(no_wrap=True, ratio=1)),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            disable=not enabled,
            console=console,
        )

    def __enter__(self) -> "ProgressDisplay":
        """Start to show the bars."""
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the display."""
        self._progress.stop()

    def add_bar(self, name: str, total: float = 1.0, status: str = _FIRST) -> ProgressBar:
        """Add a bar that is full when ``total`` is completed, and a text until its first update.

        A full one of the same name gives its place up: surveys may be many.
        """
        for old in self._progress.tasks:
            if old.description == name and old.finished:
                self._progress.remove_task(old.id)
        task = self._progress.add_task(name, total=total, status=status)
        return ProgressBar(self._progress, task)

    @contextmanager
    def busy(self, name: str, status: str) -> Iterator[None]:
        """Show a bar that moves without end, for work whose length is unknown."""
        task = self._progress.add_task(name, total=None, status=status)
        yield
        self._progress.update(task, total=1.0, completed=1.0)

    def clear(self) -> None:
        """Remove all bars."""
        for task in self._progress.task_ids:
            self._progress.remove_task(task)


class BlocksProgress:
    """Total progress of several blocks, which report from different threads.

    The total of the bar is the number of steps of all blocks together.
    """

    def __init__(self, bar: ProgressBar) -> None:
        self._bar, self._lock = bar, threading.Lock()
        self._steps: dict[int, int] = {}

    def report(self, index: int, progress: BlockProgress) -> None:
        """Show the progress of one block, and the steps that all blocks have completed."""
        with self._lock:
            self._steps[index] = progress.step
            completed = sum(self._steps.values())
        self._bar.update(completed, progress.status)

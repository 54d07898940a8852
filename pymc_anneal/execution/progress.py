"""Progress bars: the pilot, then each round of the counted run."""

import threading

from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Column

from pymc_anneal.base.progress import BlockProgress, PilotProgress


class ProgressDisplay(AbstractContextManager):
    """Shows step, beta, ESS, running log Z and the time left.

    Parameters
    ----------
    enabled
        False: nothing is shown.
    console
        Where to show it; default: the standard output, terminal or notebook.
    """

    def __init__(self, enabled: bool = True, console: Console | None = None):
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=10),
            TextColumn("{task.fields[status]}", table_column=Column(no_wrap=True, ratio=1)),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            disable=not enabled,
            console=console,
        )
        self._lock = threading.Lock()
        self._done: dict[int, int] = {}

    def __enter__(self) -> "ProgressDisplay":
        """Start showing."""
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop showing."""
        self._progress.stop()

    def start_pilot(self) -> None:
        """Add the pilot's bar."""
        self._task = self._progress.add_task("Pilot", total=1.0, status="")

    def pilot(self, progress: PilotProgress) -> None:
        """Show one more temperature of the pilot."""
        status = (
            f"beta {progress.beta:.2g}  log Z {progress.log_z:.2f}  "
            f"accept {progress.accept_rate:.0%}  {progress.n_steps} steps"
        )
        self._progress.update(self._task, completed=progress.beta, status=status)

    def clear(self) -> None:
        """Remove all bars."""
        for task in self._progress.task_ids:
            self._progress.remove_task(task)

    def start_training(self, updates: int) -> None:
        """Add the bar of a training."""
        self._task = self._progress.add_task("Training", total=updates, status="")

    def training(self, report: Mapping[str, float]) -> None:
        """Show what is monitored."""
        status = "  ".join(f"{name} {value:.6g}" for name, value in report.items())
        self._progress.update(self._task, completed=report["update"], status=status)

    def start_round(self, name: str, blocks: int, steps: int) -> None:
        """Add the bar of a run."""
        self._done = {}
        self._steps = steps
        self._task = self._progress.add_task(name, total=blocks * steps, status="")

    def block(self, index: int, progress: BlockProgress) -> None:
        """Show the progress of one block."""
        with self._lock:
            self._done[index] = progress.step
            done = sum(self._done.values())
        status = (
            f"step {progress.step}/{self._steps}  beta {progress.beta:.2g}  "
            f"ESS {progress.relative_ess:.0%}  log Z {progress.log_z:.2f}"
        )
        self._progress.update(self._task, completed=done, status=status)

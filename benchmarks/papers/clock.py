"""A limit of time that a script observes between units of work.

A signal would do so at any moment, also within compiled code, where an exception is not safe.
"""

import time

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from pymc_anneal.annealing.block import Block, Snapshot
from pymc_anneal.annealing.loop import Monitor
from pymc_anneal.base.progress import BlockProgress
from pymc_anneal.execution.workers import count_processors


class Clock:
    """The time until a script has to stop, in minutes; infinite: no limit."""

    def __init__(self, minutes: float) -> None:
        self._end = time.monotonic() + 60 * minutes

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self._end

    def check(self) -> None:
        """Raise KeyboardInterrupt, as Ctrl-C does, if the time is over."""
        if self.is_over:
            raise KeyboardInterrupt

    def __call__(self, model: Any) -> dict[str, float]:
        """Check the time after a part of a training, as its monitor."""
        self.check()
        return {}


@dataclass(frozen=True)
class ClockedMonitor(Monitor):
    """A monitor that stops its block when the time is over."""

    monitor: Monitor
    clock: Clock

    def report(self, progress: BlockProgress) -> None:
        """Report to the other monitor."""
        self.monitor.report(progress)

    def should_stop(self) -> bool:
        """Return whether the time is over, or the other monitor stops the block."""
        return self.clock.is_over or self.monitor.should_stop()

    def offer_snapshot(self, take) -> None:
        """Offer a snapshot to the other monitor."""
        self.monitor.offer_snapshot(take)


class ClockedExecutor(ThreadPoolExecutor):
    """Threads whose blocks stop, with BlockStopped, when the time is over."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(count_processors())
        self._clock = clock

    def submit(self, run, block: Block, monitor: Monitor, resume: Snapshot | None) -> Future:
        """Submit a block with the monitor of a run."""
        return super().submit(run, block, ClockedMonitor(monitor, self._clock), resume)

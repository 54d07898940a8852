"""Observation and control of a running block."""

from collections.abc import Callable
from typing import Protocol

from pymc_anneal.annealing.block import Snapshot
from pymc_anneal.base.progress import BlockProgress


class Monitor(Protocol):
    """Observer of a running block, called a few times a second; by default it does nothing."""

    def report(self, progress: BlockProgress) -> None:
        """Show the progress."""
        return None

    def should_stop(self) -> bool:
        """Return whether the block is to stop before its next steps."""
        return False

    def offer_snapshot(self, take: Callable[[], Snapshot]) -> None:
        """Take a snapshot by calling the function, or leave it; only valid during this call."""
        return None


class SilentMonitor(Monitor):
    """A monitor that shows and saves nothing."""

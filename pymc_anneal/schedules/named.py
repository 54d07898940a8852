"""Schedules by name: the short strings of ``schedule=``."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pymc_anneal.schedules.fixed import (
    geometric_schedule,
    linear_schedule,
    power_schedule,
    salakhutdinov_murray_schedule,
    sigmoid_schedule,
)
from pymc_anneal.schedules.optimal_binned import surveyed_bins
from pymc_anneal.schedules.validate import check_schedule
from pymc_anneal.schedules.variational import variational_schedule

SCHEDULES: dict[str, Callable[[int], np.ndarray]] = {
    "linear": linear_schedule,
    "power": power_schedule,
    "geometric": geometric_schedule,
    "sigmoid": sigmoid_schedule,
    "salakhutdinov_murray": salakhutdinov_murray_schedule,
}


SURVEYED: dict[str, Callable[..., np.ndarray]] = {
    "variational": variational_schedule,
    "optimal_binned": surveyed_bins,
}


@dataclass(frozen=True)
class FromPilot:
    """A schedule that follows from the lengths of the path that a pilot has measured."""

    name: str

    def lay_out(
        self, betas: np.ndarray, length: np.ndarray, steps: int, max_step: float | None
    ) -> np.ndarray:
        """Return the schedule, shape ``(steps + 1,)``."""
        return SURVEYED[self.name](betas, length, steps, max_step=max_step)


def resolve_schedule(schedule):
    """Return a function of the number of steps, an array, or a :class:`FromPilot` schedule."""
    if isinstance(schedule, str):
        if schedule in SURVEYED:
            return FromPilot(schedule)
        if schedule not in SCHEDULES:
            raise ValueError(
                f"Unknown `schedule` {schedule!r}; expected one of "
                f"{sorted([*SCHEDULES, *SURVEYED])}, a function or an array."
            )
        return SCHEDULES[schedule]
    return schedule if callable(schedule) else check_schedule(np.asarray(schedule))

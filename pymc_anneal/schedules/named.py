"""Schedules by name: the strings that ``schedule=`` accepts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np

from pymc_anneal.schedules.fixed import (
    geometric_schedule,
    linear_schedule,
    power_schedule,
    salakhutdinov_murray_schedule,
    sigmoid_schedule,
)
from pymc_anneal.schedules.optimal_binned import optimal_binned_from_lengths
from pymc_anneal.schedules.validate import check_schedule
from pymc_anneal.schedules.variational import variational_schedule

PilotSchedule: TypeAlias = Literal["variational", "optimal_binned"]
ScheduleFunction: TypeAlias = Callable[[int], np.ndarray]

SCHEDULES: dict[str, ScheduleFunction] = {
    "linear": linear_schedule,
    "power": power_schedule,
    "geometric": geometric_schedule,
    "sigmoid": sigmoid_schedule,
    "salakhutdinov_murray": salakhutdinov_murray_schedule,
}


class _FromLengths(Protocol):
    def __call__(
        self, betas: np.ndarray, length: np.ndarray, steps: int, *, max_step: float | None
    ) -> np.ndarray: ...


_BUILDERS: dict[PilotSchedule, _FromLengths] = {
    "variational": variational_schedule,
    "optimal_binned": optimal_binned_from_lengths,
}


@dataclass(frozen=True)
class FromPilot:
    """A schedule computed from the path lengths that a pilot run measures.

    Attributes
    ----------
    name : {"variational", "optimal_binned"}
    """

    name: PilotSchedule

    def build(
        self, betas: np.ndarray, length: np.ndarray, steps: int, max_step: float | None
    ) -> np.ndarray:
        """Return the schedule, shape ``(steps + 1,)``; arguments of `variational_schedule`."""
        return _BUILDERS[self.name](betas, length, steps, max_step=max_step)


FROM_PILOT: dict[str, FromPilot] = {name: FromPilot(name) for name in _BUILDERS}

# A schedule that needs no further resolution.
Schedule: TypeAlias = ScheduleFunction | np.ndarray | FromPilot
# Values of the argument ``schedule=``.
ScheduleLike: TypeAlias = str | Sequence[float] | np.ndarray | ScheduleFunction


def resolve_schedule(schedule: ScheduleLike) -> Schedule:
    """Return the schedule of a name, a function unchanged, or a checked array.

    Raises
    ------
    ValueError
        If the name is unknown or the array is not a schedule.
    """
    if isinstance(schedule, str):
        known: dict[str, ScheduleFunction | FromPilot] = {**SCHEDULES, **FROM_PILOT}
        if schedule not in known:
            raise ValueError(
                f"Unknown `schedule` {schedule!r}; expected one of {sorted(known)}, a function or "
                "an array."
            )
        return known[schedule]
    return schedule if callable(schedule) else check_schedule(schedule)

"""The meter of a call: evaluations and seconds of each stage, counted where the calls are made."""

import json
import time

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeVar


class Metered(Protocol):
    """A result that knows what it took."""

    @property
    def evaluations(self) -> int:
        """Evaluations of gradient or density."""


T = TypeVar("T", bound=Metered | None)


class AbandonedError(ValueError):
    """Something was given up, after evaluations that count.

    Attributes
    ----------
    evaluations : int
        Evaluations of gradient or density spent until then.
    """

    def __init__(self, message: str, evaluations: int = 0):
        super().__init__(message)
        self.evaluations = evaluations


class Reading(NamedTuple):
    """What a stage has taken.

    Attributes
    ----------
    evaluations : int
        Evaluations of gradient or density.
    seconds : float
        With compilation.
    """

    evaluations: int = 0
    seconds: float = 0.0


class Meter:
    """Evaluations and seconds by stage."""

    def __init__(self) -> None:
        self._stages: dict[str, Reading] = {}
        self._elsewhere = 0

    def add(self, stage: str, evaluations: int, seconds: float) -> None:
        """Add what was taken to a stage."""
        before = self._stages.get(stage, Reading())
        self._stages[stage] = Reading(before.evaluations + evaluations, before.seconds + seconds)

    def run(self, stage: str, compute: Callable[[], T], before: int = 0) -> T:
        """Return what is computed, and count what it, or an attempt that was abandoned, has taken.

        Parameters
        ----------
        stage
            Name of the stage.
        compute
            Its result has ``evaluations``, or is None.
        before
            How many of these were counted before.
        """
        begin, spent = time.perf_counter(), 0
        try:
            found = compute()
            spent = 0 if found is None else found.evaluations - before
        except AbandonedError as error:
            spent = error.evaluations
            raise
        finally:
            self.add(stage, spent, time.perf_counter() - begin)
        return found

    @property
    def stages(self) -> dict[str, Reading]:
        """What each stage has taken, in the order in which they began."""
        return dict(self._stages)

    @property
    def evaluations(self) -> int:
        """Evaluations of gradient or density of all stages."""
        return sum(reading.evaluations for reading in self._stages.values())

    def change_density(self, since: int) -> None:
        """Count from so many evaluations on: in other coordinates each takes another time."""
        self._elsewhere = since

    @property
    def evaluations_of_density(self) -> int:
        """Evaluations since the density last changed."""
        return self.evaluations - self._elsewhere


def to_json(stages: Mapping[str, Reading]) -> str:
    """Return what stages have taken as the text of an attribute."""
    return json.dumps(stages)


def from_json(text: str) -> dict[str, Reading]:
    """Read the text that :func:`to_json` writes."""
    return {name: Reading(*values) for name, values in json.loads(text).items()}

"""Time of a call: `max_minutes`, with survey, pilot and trials.

The plan of the counted run is cut to what these leave. Survey and pilot of a black box take
thousands of calls, and a call may take seconds. Before each temperature of a pilot its evaluations
are compared with those for which there is time,

    (60 max_minutes - seconds passed) / seconds of an evaluation.

The pilots of a model in JAX are short; one that is not is compared likewise, by the time that its
evaluations have taken.
"""

from dataclasses import dataclass, replace

import numpy as np

from pymc_anneal.adaptation.pilot import PilotTooLongError
from pymc_anneal.base.progress import PilotProgress

# Seconds of a search for a region of non-zero likelihood.
_SEARCH_SECONDS = 30.0
# Share of the time that the counted run of a model in JAX has, whatever came before it.
_LEAST_SHARE = 0.25
# Seconds from which on the pilot of a model in JAX is long.
_LONG_PILOT = 60.0
# A plan cut to the time that is left may take this much longer before it is worth a warning.
_SLACK = 1.1


@dataclass(frozen=True)
class CallBudget:
    """Time of a run and of an evaluation.

    Attributes
    ----------
    max_minutes : float
        Budget of the call.
    seconds_passed : float
        Since the run began.
    seconds_per_evaluation : float or None
        Time of an evaluation, shared by the workers; 0 before the first, None for a model in JAX.
    """

    max_minutes: float
    seconds_passed: float
    seconds_per_evaluation: float | None

    @property
    def counted_seconds(self) -> float:
        """Time for the counted run: what is left, or the least share of all."""
        least = _LEAST_SHARE if self.seconds_per_evaluation is None else 0.0
        return 60 * max(self.max_minutes - self.seconds_passed / 60, least * self.max_minutes)

    @property
    def evaluations(self) -> float:
        """Evaluations for which there is time; infinite if they are not known to take any."""
        if not self.seconds_per_evaluation:
            return np.inf
        return self.counted_seconds / self.seconds_per_evaluation

    @property
    def draws(self) -> float:
        """Draws of the prior for which there is time in a search for a non-zero likelihood."""
        if not self.seconds_per_evaluation:
            return np.inf
        return min(_SEARCH_SECONDS, self.counted_seconds) / self.seconds_per_evaluation

    def paced(self, evaluations: float, seconds: float) -> "CallBudget":
        """Return the budget of a model in JAX whose pilot has taken long for its evaluations."""
        if self.seconds_per_evaluation is not None or seconds < _LONG_PILOT or not evaluations:
            return self
        return replace(self, seconds_per_evaluation=seconds / evaluations)

    def check_pilot(self, name: str, progress: PilotProgress) -> None:
        """Raise if there is no time for the next temperature of a pilot.

        Raises
        ------
        PilotTooLongError
            The evaluations of the next temperature would exceed the budget.
        """
        if progress.next_evaluations <= self.evaluations:
            return
        raise PilotTooLongError(
            f"`max_minutes` is {self.max_minutes:g}, and an evaluation takes "
            f"{self.seconds_per_evaluation:.2g} s. The {name} is at beta = {progress.beta:.2g} "
            f"after {self.seconds_passed / 60:.1f} minutes; its next temperature takes "
            f"{progress.next_evaluations} evaluations, and there is time for "
            f"{self.evaluations:.0f}. Allow more minutes, or reparametrise: moves are long where "
            "scales differ much. For a black box, pass an `executor` whose workers share the calls,"
            " let it take batches of points, or let `nested_evidence` estimate the evidence, which "
            "takes fewer calls in a few dimensions.",
            progress.evaluations,
        )

    def describe_overrun(self, seconds: float) -> str:
        """Say that the smallest run takes longer than there is time; "" if it does not."""
        if self.seconds_per_evaluation is None or seconds <= _SLACK * self.counted_seconds:
            return ""
        return (
            f"The counted run takes about {seconds / 60:.1f} minutes, and `max_minutes` = "
            f"{self.max_minutes:g} leaves {self.counted_seconds / 60:.1f}: take fewer `draws`, "
            "allow more minutes, or pass an `executor` whose workers share the calls."
        )

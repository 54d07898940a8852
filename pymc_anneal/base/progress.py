"""Progress of the pilot and of a block of particles."""

from typing import NamedTuple, Protocol


class ProgressRecord(Protocol):
    """Progress that a bar can show."""

    @property
    def completed(self) -> float:
        """Completed part of the bar's total."""

    @property
    def status(self) -> str:
        """Text next to the bar."""


class BlockProgress(NamedTuple):
    """Progress of one block of particles.

    Attributes
    ----------
    step, steps : int
        Annealing steps taken, and their total number K.
    beta : float
        Inverse temperature.
    log_z : float
        Log mean weight so far, in nats.
    relative_ess : float
        Effective sample size of the weights, divided by the number of particles.
    """

    step: int
    steps: int
    beta: float
    log_z: float
    relative_ess: float

    @property
    def completed(self) -> float:
        """Completed part of a bar with the total K."""
        return self.step

    @property
    def status(self) -> str:
        """Text next to the bar."""
        return (
            f"step {self.step}/{self.steps}  beta {self.beta:.2g}  "
            f"ESS {self.relative_ess:.0%}  log Z {self.log_z:.2f}"
        )


class PilotProgress(NamedTuple):
    """Progress of the pilot.

    Attributes
    ----------
    beta : float
        Inverse temperature.
    log_z : float
        Sequential Monte Carlo estimate of the log normaliser so far, in nats.
    cost : int
        Evaluations of gradient or density of one transition.
    accept_rate : float
        Mean acceptance probability.
    evaluations, next_evaluations : int
        Evaluations so far, and those of the next temperature; 0 at the last one.
    """

    beta: float
    log_z: float
    cost: int
    accept_rate: float
    evaluations: int = 0
    next_evaluations: int = 0

    @property
    def completed(self) -> float:
        """Completed part of a bar with the total 1."""
        return self.beta

    @property
    def status(self) -> str:
        """Text next to the bar; before the first temperature, the moves are compiled."""
        if self.beta == 0:
            return f"compiling, then moves of {self.cost} evaluations"
        return (
            f"beta {self.beta:.2g}  log Z {self.log_z:.2f}  "
            f"accept {self.accept_rate:.0%}  {self.cost} evaluations a move"
        )

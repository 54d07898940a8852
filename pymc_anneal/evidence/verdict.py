"""Verdicts: whether an estimate can be trusted, and why not."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

Status = Literal[
    "trust",
    "more steps needed",
    "more draws needed",
    "more evidence needed",
    "do not trust",
    "calibrated",
    "not calibrated",
]


class Verdict(NamedTuple):
    """A status and the reasons for it.

    Attributes
    ----------
    status : str
        ``"trust"``, ``"more steps needed"``, ``"more draws needed"``, ``"more evidence needed"`` or
        ``"do not trust"``; of a calibration ``"calibrated"`` or ``"not calibrated"``.
    reasons : tuple of str
        Why the estimate is not simply trusted; empty if it is.
    """

    status: Status
    reasons: tuple[str, ...] = ()

    @property
    def trusted(self) -> bool:
        """Whether nothing speaks against the estimate."""
        return self.status in ("trust", "calibrated")

    def __str__(self) -> str:
        """Return the status with its reasons."""
        return f"{self.status}: {'; '.join(self.reasons)}" if self.reasons else self.status


def verdict_from(
    doubts: Sequence[str], shortfalls: Sequence[str], shortfall: Status = "more steps needed"
) -> Verdict:
    """Return the verdict that doubts and shortfalls lead to: doubts come first.

    Parameters
    ----------
    doubts
        Signs that the estimate or its error is wrong.
    shortfalls
        Respects in which it is right but not precise enough.
    shortfall
        Status if there are only shortfalls.
    """
    if doubts:
        return Verdict("do not trust", tuple(doubts))
    return Verdict(shortfall, tuple(shortfalls)) if shortfalls else Verdict("trust")

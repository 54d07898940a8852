"""Verdicts: whether an estimate can be trusted, and why not."""

import json
import warnings

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from pymc_anneal.base.caller import levels_to_caller

Status: TypeAlias = Literal[
    "trust",
    "more steps needed",
    "more draws needed",
    "more evidence needed",
    "do not trust",
    "calibrated",
    "not calibrated",
]


class Verdict(NamedTuple):
    """A status and the reasons for it; ``str(verdict)`` joins them to a sentence.

    Attributes
    ----------
    status : str
        ``"trust"``, ``"more steps needed"``, ``"more draws needed"``, ``"more evidence needed"`` or
        ``"do not trust"``; of a calibration ``"calibrated"`` or ``"not calibrated"``.
    reasons : tuple of str
        Grounds for the status; of an estimate that is trusted usually none.
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

    def __repr__(self) -> str:
        """Return the text of the verdict."""
        return str(self)

    def to_attrs(self) -> dict[str, str]:
        """Return the verdict as attributes of a group, which netCDF and zarr can hold."""
        return {
            "verdict": str(self),
            "verdict_status": self.status,
            "verdict_reasons": json.dumps(self.reasons),
        }

    @classmethod
    def from_attrs(cls, attrs: Mapping[str, Any]) -> "Verdict":
        """Read the attributes that :meth:`to_attrs` writes."""
        return cls(attrs["verdict_status"], tuple(json.loads(attrs["verdict_reasons"])))


def verdict_from(
    doubts: Sequence[str], shortfalls: Sequence[str], shortfall: Status = "more steps needed"
) -> Verdict:
    """Return the verdict on an estimate: doubts take precedence over shortfalls.

    Parameters
    ----------
    doubts : sequence of str
        Signs that the estimate or its error is wrong.
    shortfalls : sequence of str
        Respects in which the estimate is not precise enough.
    shortfall : str
        Status if there are shortfalls and no doubts.
    """
    if doubts:
        return Verdict("do not trust", tuple(doubts))
    return Verdict(shortfall, tuple(shortfalls)) if shortfalls else Verdict("trust")


class EvidenceWarning(UserWarning):
    """An estimate of the evidence that its verdict does not trust."""


def warn_unless_trusted(verdict: Verdict, subject: str) -> None:
    """Warn of an estimate that is not trusted, where the user's code calls this package."""
    if not verdict.trusted:
        warnings.warn(f"{subject}: {verdict}", EvidenceWarning, stacklevel=levels_to_caller())

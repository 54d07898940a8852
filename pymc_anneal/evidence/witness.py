"""Witnesses of an estimate: what looked for parts of the posterior that a run may have missed."""

import json

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Witness(NamedTuple):
    """Something that examined a run and was not made by it.

    Attributes
    ----------
    kind : str
        What it is, for example ``"held-out particles"``.
    number : float
        Their effective number: particles, draws or modes.
    log_evidence, mcse : float
        Its own estimate of the log evidence and the error, in nats; NaN if it makes none.
    """

    kind: str
    number: float
    log_evidence: float = np.nan
    mcse: float = np.nan

    def __str__(self) -> str:
        """Return the number, the kind and the estimate."""
        if np.isnan(self.log_evidence):
            return f"{self.number:.3g} {self.kind}"
        error = "" if np.isnan(self.mcse) else f" +- {self.mcse:.2g}"
        return f"{self.number:.3g} {self.kind} ({self.log_evidence:.2f}{error})"


def to_text(witnesses: Sequence[Witness]) -> str:
    """Return witnesses as the text of an attribute."""
    return json.dumps([[w.kind, *(float(v) for v in w[1:])] for w in witnesses])


def from_text(text: str) -> tuple[Witness, ...]:
    """Read the text that :func:`to_text` writes."""
    return tuple(Witness(*row) for row in json.loads(text))

"""Contract of the choices of a path: the objects behind ``path=``.

A choice starts from a candidate on the geometric path from its reference, and returns one on the
path that it builds.
"""

from typing import NamedTuple, Protocol

import numpy as np

from pymc_anneal.base.contracts import Transition
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.target import Choice, PilotedRun, RunCandidate


class PathRequest(NamedTuple):
    """A run along the geometric path, for which a path is chosen.

    Moments come from draws of the posterior, shape ``(n, d)``, or the particles of a pilot.
    """

    session: Session
    candidate: RunCandidate
    transition: Transition
    moments_from: np.ndarray | None

    def with_pilot(self) -> PilotedRun:
        """Return the candidate with its pilot: the one that a geometric run would have."""
        pilot, session = self.candidate.pilot, self.session
        if pilot is None:
            pilot = session.pilot(self.candidate, self.transition, session.seeds.pilot)
        return self.candidate.with_pilot(pilot)


class PathChoice(Protocol):
    """Builds the path of a run."""

    def build(self, request: PathRequest) -> Choice:
        """Return a run along the geometric path as one on its path."""

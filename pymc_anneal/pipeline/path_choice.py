"""Contract of the choices of a path: the objects behind ``path=``.

A choice starts from a candidate on the geometric path from its reference, and returns one on the
path that it builds.
"""

from typing import Protocol

import numpy as np

from pymc_anneal.base.contracts import Transition
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.target import Choice, PilotedRun, RunCandidate


class PathChoice(Protocol):
    """Builds the path of a run."""

    def build(
        self,
        session: Session,
        candidate: RunCandidate,
        transition: Transition,
        moments_from: np.ndarray | None,
    ) -> Choice:
        """Return a run along the geometric path as one on its path.

        Moments come from draws of the posterior, shape ``(n, d)``, or the particles of a pilot.
        """


def with_pilot(session: Session, candidate: RunCandidate, transition: Transition) -> PilotedRun:
    """Return the candidate with its pilot: the one that a geometric run would have."""
    pilot = candidate.pilot
    if pilot is None:
        pilot = session.pilot(candidate, transition, session.seeds.pilot)
    return candidate.with_pilot(pilot)

"""Witnesses of a survey, asked about coordinates, a reference or a run (`evidence/held_out.py`)."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from pymc_anneal.adaptation.fitted_reference import normalised
from pymc_anneal.adaptation.witnesses import held_out, settled
from pymc_anneal.evidence.held_out import LEVEL_OF_CHOICES, Hole, find_hole, is_too_low
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.target import PilotedRun

# From positions (n, d) to log ratios of the posterior to some density, (n,).
LogRatio: TypeAlias = Callable[[np.ndarray], np.ndarray]


class Draws(NamedTuple):
    """Weighted draws that claim to be of the posterior.

    Attributes
    ----------
    log_ratio : ndarray, shape (m,)
        Log ratio of the posterior to some density.
    weight : ndarray, shape (m,)
        They sum to one.
    effective : float or None
        Their effective number; None: that of the weights.
    known : float
        Share of the posterior that the witnesses know of, by what else was found.
    """

    log_ratio: np.ndarray
    weight: np.ndarray
    effective: float | None = None
    known: float = 1.0

    @classmethod
    def of_weights(cls, log_ratio: np.ndarray) -> "Draws":
        """Return draws of a density, with the log ratios to it as their log weights."""
        return cls(log_ratio, normalised(log_ratio))

    @classmethod
    def even(cls, log_ratio: np.ndarray) -> "Draws":
        """Return draws of equal weight."""
        return cls(log_ratio, np.full(len(log_ratio), 1 / len(log_ratio)))


class Hearing(NamedTuple):
    """What the witnesses say.

    Attributes
    ----------
    hole : Hole
        Where they contradict the draws most.
    rough_log_z : float
        Rough log evidence of the survey, in nats.
    objection : str
        What the draws miss; empty if the witnesses do not object.
    evaluations : int
        Evaluations of gradient or density that it took.
    """

    hole: Hole
    rough_log_z: float
    objection: str
    evaluations: int


def hear_witnesses(
    session: Session,
    surveyed: PilotedRun,
    log_ratio: LogRatio,
    draws: Draws,
    log_evidence: float,
    level: float = LEVEL_OF_CHOICES,
) -> Hearing:
    """Ask the held-out particles of a survey whether draws miss a part of the posterior.

    If they object, they are asked again after further moves: a survey moves its particles so little
    that some may not have reached the posterior. `log_ratio` takes positions ``(n, d)`` in the
    coordinates of the survey to the log ratios ``(n,)`` that the draws have; the log evidence came
    with them; the level is the probability of an objection to draws of the posterior.
    """

    def hear() -> Hearing:
        pilot, spent = surveyed.pilot, 0
        witnesses = held_out(pilot)
        hole = find_hole(log_ratio(witnesses.position), witnesses.family, *draws)
        asked = len(witnesses.position)
        if hole.p_value < level:
            with session.display.busy("Witnesses", "moving held-out particles on"):
                pilot, spent = settled(pilot, surveyed.path, session.seeds.witnesses)
            witnesses = held_out(pilot)
            hole = find_hole(log_ratio(witnesses.position), witnesses.family, *draws)
            asked *= 2
        objection = str(hole) if hole.p_value < level else ""
        if is_too_low(log_evidence, pilot.rough_log_z, pilot.families, level):
            rough = f"{pilot.rough_log_z:.4g} +- {pilot.families**-0.5:.2g}"
            objection += ("; " if objection else "") + (
                f"the survey's rough estimate of log Z is {rough}, which has a probability of less "
                f"than {level:g} if log Z is {log_evidence:.4g}"
            )
        return Hearing(hole, pilot.rough_log_z, objection, spent + asked)

    return session.meter.run("Witnesses", hear)

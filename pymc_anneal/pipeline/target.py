"""The target of a run: a density, the reference it starts from, and names for the result.

The stages of a run know a `pm.Model` and a restricted Boltzmann machine only by this contract.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Protocol, TypeAlias

import numpy as np
import xarray as xr

from pymc_anneal.adaptation.fitted_reference import FittedReference
from pymc_anneal.adaptation.pilot import Pilot
from pymc_anneal.adaptation.plan import predicted_cost
from pymc_anneal.adaptation.support import Guide
from pymc_anneal.base.contracts import Path
from pymc_anneal.evidence.levels import Levels

# From a seed and a number n to draws of shape (n, d).
DrawFunction: TypeAlias = Callable[[np.random.SeedSequence, int], np.ndarray]


class Target(Protocol):
    """A density to be annealed to."""

    @property
    def log_reference(self) -> float:
        """Log normaliser of the reference, in nats; 0 for a normalised density."""

    @property
    def scalars(self) -> Mapping[str, float]:
        """Scalars of the group ``evidence`` about the target."""

    @property
    def attrs(self) -> Mapping[str, str]:
        """Attributes of the group ``evidence`` about the target: notes, versions."""

    def explain_nan(self, position: np.ndarray) -> str:
        """Say which term of the density is NaN at a position of shape ``(d,)``."""

    def fingerprint(self) -> dict[str, str]:
        """Describe the target in words and hashes, by name, for checkpoints."""

    def posterior(self, draws: np.ndarray) -> xr.Dataset:
        """Return draws of shape ``(chains, draws, d)`` as named variables."""

    def extra_groups(
        self, draws: np.ndarray, seed: np.random.SeedSequence
    ) -> dict[str, xr.Dataset]:
        """Return further groups of the container, by name."""


@dataclass(frozen=True)
class RunCandidate:
    """A reference and a path along which the counted run may go.

    Attributes
    ----------
    reference : str
        Name of the reference.
    draw_reference : Callable
        Draws from it.
    path : Path
    draw_target : Callable or None
        Draws from the target, with which a reverse run starts; None: the run goes forward.
    pilot : Pilot or None
        The pilot along the path, if there was one.
    built_from : RunCandidate or None
        The candidate whose pilot gave the particles to which reference or path were fitted.
    fitted : FittedReference or None
        The fit of the reference, if it is a mixture.
    levels : Levels or None
        What multilevel splitting found beside the survey, if it was asked.
    guide : Callable or None
        What leads from the prior to where the likelihood is not zero.
    objection : str
        What a survey found that the reference misses, if anything.
    """

    reference: str
    draw_reference: DrawFunction
    path: Path
    draw_target: DrawFunction | None = None
    pilot: Pilot | None = None
    built_from: "RunCandidate | None" = None
    fitted: FittedReference | None = None
    levels: Levels | None = None
    guide: Guide | None = None
    objection: str = ""

    @property
    def cost(self) -> float:
        """Predicted gradients per particle for a variance of one; infinite without a pilot."""
        return np.inf if self.pilot is None else predicted_cost(self.pilot)

    @property
    def one_step_variance(self) -> float:
        """Variance of the log weights of a run of one step; infinite if nothing measured it."""
        if self.fitted is not None:
            return self.fitted.discrepancy
        return np.inf if self.pilot is None else self.pilot.barrier**2

    @property
    def lineage(self) -> "tuple[RunCandidate, ...]":
        """The candidate, the one that it was built from, and so on."""
        return (self, *(self.built_from.lineage if self.built_from else ()))

    def with_pilot(self, pilot: Pilot) -> "PilotedRun":
        """Return the candidate with a pilot along its path."""
        own = {part.name: getattr(self, part.name) for part in fields(self)}
        return PilotedRun(**(own | {"pilot": pilot}))


@dataclass(frozen=True)
class PilotedRun(RunCandidate):
    """A candidate whose path a pilot has measured, such as a survey from the prior."""

    pilot: Pilot = field(kw_only=True)


@dataclass(frozen=True)
class Choice:
    """The candidate chosen among several.

    Attributes
    ----------
    chosen : RunCandidate
    compared : dict of str to RunCandidate
        Candidates whose predicted costs were compared, by name; empty if there was no choice.
    rejected_because : str
        Why a candidate could not be built.
    """

    chosen: RunCandidate
    compared: Mapping[str, RunCandidate]
    rejected_because: str = ""

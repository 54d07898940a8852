"""The start of a run, and what an offer of one is asked for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from pymc_anneal.adaptation.configurations import Configurations
from pymc_anneal.adaptation.fit_mixture import may_have_mixture
from pymc_anneal.base.contracts import Transition
from pymc_anneal.pipeline.model_target import ModelTarget
from pymc_anneal.pipeline.options import Options
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.target import Choice


@dataclass(frozen=True)
class Request:
    """What a start is wanted for.

    Attributes
    ----------
    target : ModelTarget
        The model in its own coordinates.
    options : Options
    free : bool
        Whether coordinates and reference are free: not for reverse runs, for paths from the prior,
        or without a pilot.
    configurations : Configurations or None
        Those of the discrete variables, if there are any and they were looked for.
    """

    target: ModelTarget
    options: Options
    free: bool
    configurations: Configurations | None = None

    @property
    def is_surveyed(self) -> bool:
        """Whether coordinates and reference may be fitted to particles of the posterior."""
        fitted = self.options.reference in ("auto", "pilot")
        return self.free and fitted and may_have_mixture(self.target.compiled)


@dataclass(frozen=True)
class Start:
    """Where a run starts.

    Attributes
    ----------
    target : ModelTarget
        The model in the coordinates of the run.
    transition : Transition
        The transition for pilots there.
    choice : Choice
        The run along the geometric path, and what it was compared with.
    """

    target: ModelTarget
    transition: Transition
    choice: Choice


# None: not admissible.
Offer: TypeAlias = Callable[[Session, Request], Start | None]

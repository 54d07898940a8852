"""Options of a run of a model: the objects behind the arguments of `sample_ais`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pymc_anneal.base.contracts import Transition
from pymc_anneal.paths.references import Reference
from pymc_anneal.pipeline.choose_path import GeometricChoice
from pymc_anneal.pipeline.path_choice import PathChoice
from pymc_anneal.pipeline.reference_argument import ReferenceName
from pymc_anneal.pipeline.reverse_start import ReverseStart


@dataclass(frozen=True)
class Options:
    """What a run moves by, where it starts, and along which path.

    Attributes
    ----------
    transition : Transition
        Its parameters that are None are tuned by the pilot.
    reference : str or Reference
        As :func:`sample_ais` takes it.
    path : PathChoice
    moments_from : ndarray, shape (n, d), or None
        Draws of the posterior for moment-averaged paths; None: the particles of a pilot.
    reverse_from : ReverseStart or None
        Start of a reverse run; None: there is none.
    search_from : mapping of str to array, or None
        Values of the free variables, further starts of the search for modes.
    """

    transition: Transition
    reference: ReferenceName | Reference = "auto"
    path: PathChoice = field(default_factory=GeometricChoice)
    moments_from: np.ndarray | None = None
    reverse_from: ReverseStart | None = None
    search_from: Mapping[str, np.ndarray] | None = None

    def fingerprint(self) -> Mapping[str, object]:
        """Return the options by name; all of them determine the result."""
        return vars(self)

"""Options of a run of a model: the objects behind the arguments of `sample_ais`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from pymc_anneal.base.arguments import check_mapping
from pymc_anneal.base.contracts import Transition
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.paths.geometric import GeometricPath, ReferencePath
from pymc_anneal.paths.references import Reference
from pymc_anneal.pipeline.choose_path import GeometricChoice
from pymc_anneal.pipeline.path_choice import PathChoice
from pymc_anneal.pipeline.reverse_start import ReverseStart

ReferenceName: TypeAlias = Literal["prior", "pilot", "laplace", "auto"]
NAMES: tuple[ReferenceName, ...] = ("prior", "pilot", "laplace", "auto")


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

    def __post_init__(self) -> None:
        check_mapping("search_from", self.search_from)

    def hints_in(self, compiled: CompiledModel) -> np.ndarray | None:
        """Return the further starts of the search in coordinates of the model, shape ``(h, d)``."""
        return None if self.search_from is None else compiled.unconstrain(self.search_from)

    def fingerprint(self) -> Mapping[str, object]:
        """Return the options by name; all of them determine the result."""
        return vars(self)


def check_reference(reference: ReferenceName | Reference) -> None:
    """Raise if the reference is neither a known name nor has the methods of a reference."""
    if isinstance(reference, str):
        if reference not in NAMES:
            raise ValueError(
                f"Unknown `reference` {reference!r}; expected one of {list(NAMES)} or an object "
                "with the methods ['log_density', 'sample']."
            )
        return
    missing = sorted({"log_density", "sample"} - set(dir(reference)))
    if missing:
        raise TypeError(
            f"`reference` is a {type(reference).__name__} without the methods {missing}; "
            f"expected one of {list(NAMES)} or what `fit_reference` returns."
        )


def check_compatible(reference: ReferenceName | Reference, path: object) -> None:
    """Raise if a path object does not go with the reference.

    Raises
    ------
    ValueError
        The path has a reference of its own, or does not start from the one given.
    """
    if isinstance(path, ReferencePath):
        raise ValueError(
            "`path` is a ReferencePath, which `reference` stands for: pass its reference as "
            "`reference` and leave out `path`."
        )
    may_be_prior = isinstance(reference, str) and reference in ("prior", "auto")
    if not (may_be_prior or isinstance(path, GeometricPath)):
        raise ValueError(
            f"`reference` goes with a path given by name, found a "
            f"{type(path).__name__}; an object passed as `path` has to start from the prior."
        )

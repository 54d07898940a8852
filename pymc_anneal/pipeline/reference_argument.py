"""The argument ``reference=``: names, or a density with exact draws."""

from typing import Literal, TypeAlias

from pymc_anneal.paths.geometric import GeometricPath, ReferencePath
from pymc_anneal.paths.references import Reference

ReferenceName: TypeAlias = Literal["prior", "pilot", "laplace", "auto"]
NAMES: tuple[ReferenceName, ...] = ("prior", "pilot", "laplace", "auto")


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


def may_be_prior(reference: ReferenceName | Reference) -> bool:
    """Whether the reference is the prior, or is the prior where nothing else fits."""
    return isinstance(reference, str) and reference in ("prior", "auto")


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
    if not may_be_prior(reference) and not isinstance(path, GeometricPath):
        raise ValueError(
            f"`reference` goes with a path given by name, found a "
            f"{type(path).__name__}; an object passed as `path` has to start from the prior."
        )

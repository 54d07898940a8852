"""Choice of the reference: the prior, a given density, or a mixture fitted on the way."""

from typing import Literal, TypeAlias

from pymc_anneal.adaptation.configurations import Configurations
from pymc_anneal.adaptation.fit_mixture import may_have_mixture
from pymc_anneal.adaptation.fit_reference import laplace_reference
from pymc_anneal.base.contracts import Transition
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.paths.geometric import GeometricPath, ReferencePath
from pymc_anneal.paths.references import Reference
from pymc_anneal.pipeline.check_reference import check_agreement
from pymc_anneal.pipeline.fitted_mixture import choose_mixture
from pymc_anneal.pipeline.look_at_configurations import start_from_configurations
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.target import Choice, RunCandidate

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


def is_prior(reference: ReferenceName | Reference) -> bool:
    """Whether the reference is the prior."""
    return isinstance(reference, str) and reference == "prior"


def may_be_prior(reference: ReferenceName | Reference) -> bool:
    """Whether the reference is the prior, or is the prior where nothing else fits."""
    return isinstance(reference, str) and reference in ("prior", "auto")


def is_surveyed(reference: ReferenceName | Reference, compiled: CompiledModel) -> bool:
    """Whether the reference is fitted to the particles of a survey."""
    fitted = isinstance(reference, str) and reference in ("auto", "pilot")
    return fitted and may_have_mixture(compiled)


def choose_reference(
    session: Session,
    compiled: CompiledModel,
    prior: RunCandidate,
    transition: Transition,
    reference: ReferenceName | Reference,
    surveyed: RunCandidate | None = None,
    configurations: Configurations | None = None,
) -> Choice:
    """Choose the reference of a run.

    Parameters
    ----------
    session
        Settings, seeds.
    compiled
        The model.
    prior
        The run from the prior along the geometric path.
    transition
        The transition, for the pilots.
    reference
        As :func:`sample_ais` takes it.
    surveyed
        The run from the prior with a survey as its pilot, if there was one.
    configurations
        Configurations of the discrete variables, if there are any and they were looked for.

    Returns
    -------
    Choice

    Raises
    ------
    NotImplementedError
        A reference other than the prior, and a prior whose density is not normalised.
    ValueError
        Log density and draws of the reference given do not belong together.
    """
    if is_prior(reference):
        return Choice(prior, {})
    if reference == "auto" and configurations is not None:
        return start_from_configurations(session, compiled, prior, transition, configurations)
    if reference == "auto" and not may_have_mixture(compiled):
        return Choice(prior, {})
    compiled.require_normalised("A reference other than the prior")
    if not isinstance(reference, str):
        check_agreement(reference, compiled.ndim)
        return Choice(reference_candidate(compiled, reference, type(reference).__name__), {})
    if reference == "laplace":
        found = laplace_reference(model=compiled, random_seed=session.seeds.reference)
        return Choice(reference_candidate(compiled, found, "laplace"), {})
    insist = reference == "pilot"
    return choose_mixture(session, compiled, prior, transition, insist=insist, surveyed=surveyed)


def reference_candidate(compiled: CompiledModel, reference: Reference, name: str) -> RunCandidate:
    """Return the run from a reference along the geometric path."""
    path = ReferencePath(compiled.log_terms, reference)
    return RunCandidate(name, reference.sample, path)


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

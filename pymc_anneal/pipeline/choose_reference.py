"""Where a run starts: from the prior, from a given reference, or from one fitted on the way.

"pilot" surveys the path from the prior, as every run does, and fits a reference to the particles
that arrive; "auto" then compares what the counted run would cost from either,

    cost = (sum_k sqrt(D_k tau_k c_k))^2,

gradients for a variance of one of the log weights, and takes the cheapest.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pymc_anneal.adaptation.fit_reference import FAMILIES, fit_to_draws, laplace_reference
from pymc_anneal.adaptation.pilot import Pilot
from pymc_anneal.adaptation.plan import predicted_cost
from pymc_anneal.base.contracts import Transition
from pymc_anneal.paths.geometric import GeometricPath, ReferencePath
from pymc_anneal.paths.references import Reference
from pymc_anneal.pipeline.rounds import survey
from pymc_anneal.pipeline.session import Session

NAMES = ("prior", "pilot", "laplace", "auto")


@dataclass(frozen=True)
class Start:
    """A run about to begin.

    Attributes
    ----------
    session : Session
    name : str
        Of the reference.
    pilot : Pilot or None
        Survey of the path, if there was one.
    earlier : tuple of Pilot
        Surveys of other paths between the same model's prior and posterior.
    costs, path_costs : dict of str to float
        Predicted costs of the references and of the paths that were compared.
    refused : str
        Why a path could not be laid out.
    evaluations : int
        Evaluations of gradient or density beside those of the pilots.
    """

    session: Session
    name: str
    pilot: Pilot | None = None
    earlier: tuple[Pilot, ...] = ()
    costs: dict[str, float] = field(default_factory=dict)
    path_costs: dict[str, float] = field(default_factory=dict)
    refused: str = ""
    evaluations: int = 0


def check_reference(reference: str | Reference, path: Any) -> None:
    """Raise where the reference is unknown or does not go with the path."""
    if isinstance(reference, str) and reference not in NAMES:
        raise ValueError(
            f"Unknown `reference` {reference!r}; expected one of {list(NAMES)} or an object with "
            "the methods ['log_density', 'sample']."
        )
    if not isinstance(reference, str):
        missing = [m for m in ("log_density", "sample") if not hasattr(reference, m)]
        if missing:
            raise TypeError(
                f"`reference` is a {type(reference).__name__} without the methods {missing}; "
                f"expected one of {list(NAMES)} or what `fit_reference` returns."
            )
    if isinstance(path, ReferencePath):
        raise ValueError(
            "`path` is a ReferencePath, which `reference` stands for: pass its reference as "
            "`reference` and leave out `path`."
        )
    elsewhere = not (isinstance(reference, str) and reference == "prior")
    if elsewhere and not isinstance(path, GeometricPath):
        raise ValueError(
            f"`reference` goes with a path that is named or laid out by this library, found a "
            f"{type(path).__name__}; an object passed as `path` has to start from the prior."
        )


def begin(
    session: Session, kernel: Transition, reference: str | Reference, seed: np.random.SeedSequence
) -> Start:
    """Set the start of a run.

    Parameters
    ----------
    session
        Set up to start from the prior.
    kernel
        The transition.
    reference
        As :func:`sample_ais` takes it.
    seed
        Source of randomness for what comes before the run itself.

    Returns
    -------
    Start
    """
    if isinstance(reference, str) and reference == "prior":
        return Start(session, "prior")
    session.compiled.require_normalised("A reference other than the prior")
    if not isinstance(reference, str):
        return Start(_started_from(session, reference), type(reference).__name__)
    if reference == "laplace":
        found = laplace_reference(session.compiled, random_seed=seed)
        return Start(_started_from(session, found), "laplace")
    seed_prior, *seeds = seed.spawn(1 + len(FAMILIES))
    first = survey(session, kernel, seed_prior)
    fitted = [
        _fitted(session, kernel, first, family, child)
        for family, child in zip(FAMILIES, seeds, strict=True)
    ]
    candidates = [*fitted, Start(session, "prior", first)] if reference == "auto" else fitted
    costs = {c.name: predicted_cost(c.pilot) for c in candidates if c.pilot is not None}
    best = min(candidates, key=lambda c: costs[c.name])
    others = [c.pilot for c in fitted if c is not best and c.pilot is not None]
    return replace(
        best,
        earlier=() if best.name == "prior" else (first,),
        costs=costs,
        evaluations=sum(pilot.evaluations for pilot in others),
    )


def _fitted(
    session: Session, kernel: Transition, first: Pilot, family: str, seed: np.random.SeedSequence
) -> Start:
    reference = fit_to_draws(session.compiled, first.position, family)
    started = _started_from(session, reference)
    return Start(started, type(reference).__name__, survey(started, kernel, seed))


def _started_from(session: Session, reference: Reference) -> Session:
    path = ReferencePath(session.compiled.log_terms, reference)
    return replace(session, path=path, draw_reference=reference.sample)

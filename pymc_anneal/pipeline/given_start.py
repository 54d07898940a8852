"""Starts that are asked for: the prior, a given density, a Laplace approximation."""

from pymc_anneal.adaptation.fit_mixture import may_have_mixture
from pymc_anneal.adaptation.laplace_reference import laplace_reference
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.paths.geometric import ReferencePath
from pymc_anneal.paths.references import Reference
from pymc_anneal.pipeline.check_reference import check_agreement
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.start import Request, Start
from pymc_anneal.pipeline.target import Choice, RunCandidate


def given_start(session: Session, request: Request) -> Start | None:
    """Return the start that was asked for; the prior too where nothing can be fitted.

    None if a reference is to be fitted.
    """
    candidate = _candidate(session, request)
    if candidate is None:
        return None
    return Start(request.target, request.options.transition, Choice(candidate, {}))


def _candidate(session: Session, request: Request) -> RunCandidate | None:
    reference, compiled = request.options.reference, request.target.compiled
    unknown = request.configurations is None and not may_have_mixture(compiled)
    if reference == "prior" or (reference == "auto" and unknown):
        return request.target.candidate()
    if reference in ("auto", "pilot"):
        return None
    compiled.require_normalised("A reference other than the prior")
    if reference == "laplace":
        found = laplace_reference(model=compiled, random_seed=session.seeds.reference)
        return reference_candidate(compiled, found, "laplace")
    assert not isinstance(reference, str)
    check_agreement(reference, compiled.ndim)
    return reference_candidate(compiled, reference, type(reference).__name__)


def reference_candidate(compiled: CompiledModel, reference: Reference, name: str) -> RunCandidate:
    """Return the run from a reference along the geometric path."""
    path = ReferencePath(compiled.log_terms, reference)
    return RunCandidate(name, reference.sample, path)

"""Starts from a survey: coordinates and a mixture fitted to its particles, or the prior."""

from dataclasses import replace
from typing import Any

from pymc_anneal.pipeline.choose_coordinates import choose_coordinates
from pymc_anneal.pipeline.explain_infinite import explaining_infinite
from pymc_anneal.pipeline.fitted_mixture import choose_mixture
from pymc_anneal.pipeline.session import Session, explaining_nan
from pymc_anneal.pipeline.start import Request, Start
from pymc_anneal.pipeline.walk_at_edges import walk_at_edges


def start_from_survey(session: Session, request: Request) -> Start:
    """Return the start in the coordinates, and by the moves, that serve the particles best."""
    target, transition, surveyed = request.target, request.options.transition, None
    if request.is_surveyed:
        target, surveyed = choose_coordinates(session, target, transition)
        session = replace(session, target=target)
        if surveyed is not None:
            surveyed, transition = walk_at_edges(session, target, surveyed, transition)
    compiled, insist = target.compiled, request.options.reference == "pilot"
    also: dict[str, Any] = {"surveyed": surveyed, "search_from": request.options.search_from}
    compiled.require_normalised("A reference other than the prior")
    with explaining_nan(target), explaining_infinite(target):
        choice = choose_mixture(
            session, compiled, target.candidate(), transition, insist=insist, **also
        )
    return Start(target, transition, choice)

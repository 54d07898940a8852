"""Starts from a survey: coordinates and a mixture fitted to its particles, or the prior.

A trajectory of gradients that ends behind an edge, where the likelihood is zero or much smaller, is
rejected, and shorter steps do not help: the gradient does not show the edge. Where a survey has met
such a region, or found no step size, and its moves have become long, or where they are so long that
only an edge explains it, a second survey moves by a random walk, and the cheaper of both goes on,
by the predicted cost of the run.
"""

from dataclasses import replace

from pymc_anneal.base.contracts import Transition
from pymc_anneal.pipeline.choose_coordinates import choose_coordinates
from pymc_anneal.pipeline.choose_transition import default_transition
from pymc_anneal.pipeline.explain_infinite import explaining_infinite
from pymc_anneal.pipeline.fitted_mixture import choose_mixture
from pymc_anneal.pipeline.model_target import ModelTarget
from pymc_anneal.pipeline.session import Session, explaining_nan
from pymc_anneal.pipeline.start import Request, Start
from pymc_anneal.pipeline.target import PilotedRun

# Share of the prior where the likelihood is zero, and evaluations of a move by gradients, from
# which a random walk is tried: between uniform data in eight dimensions a move of the survey took
# 79, those of the run many thousands; those of a walk took two.
_LEAST_ZERO, _LONG = 0.1, 32

# Evaluations of a move from which an edge is taken for granted: beside the cut of an arc tangent,
# where the likelihood falls by 1,900 nats but nowhere to zero, steps short enough to be accepted
# are found, and a move takes 2,500. Without an edge the longest of 24 hard models took 310, and a
# walk in its place found the posterior of a sine without noise in one of two runs only.
_ENDLESS = 1024


def start_from_survey(session: Session, request: Request) -> Start:
    """Return the start in the coordinates, and by the moves, that serve the particles best."""
    target, transition, surveyed = request.target, request.options.transition, None
    if request.is_surveyed:
        target, surveyed = choose_coordinates(session, target, transition)
        session = replace(session, target=target)
        if surveyed is not None:
            surveyed, transition = _walk_at_edges(session, target, surveyed, transition)
    target.compiled.require_normalised("A reference other than the prior")
    with explaining_nan(target), explaining_infinite(target):
        choice = choose_mixture(session, target, transition, request.options, surveyed)
    return Start(target, transition, choice)


def _walk_at_edges(
    session: Session, target: ModelTarget, surveyed: PilotedRun, transition: Transition
) -> tuple[PilotedRun, Transition]:
    """Return a survey and its transition, by a random walk if that is cheaper at hard edges."""
    pilot = surveyed.pilot
    edged = pilot.inside <= (1 - _LEAST_ZERO) * pilot.drawn or not pilot.has_step_size(transition)
    longest = _LONG if edged else _ENDLESS
    if not (pilot.cost[-1] >= longest and session.settings.free_transition):
        return surveyed, transition
    walk = default_transition("random_walk", model=target.compiled)
    (seed,) = session.seeds.transition.spawn(1)
    other = session.survey(target.candidate(), walk, seed)
    return (other, walk) if other.cost < surveyed.cost else (surveyed, transition)

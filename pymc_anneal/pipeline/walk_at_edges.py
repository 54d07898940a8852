"""Random walks where trajectories of gradients run into edges of the support.

A trajectory that ends where the likelihood is zero is rejected, and shorter steps do not help: the
gradient does not show the edge. Where a survey has met such a region and its moves have become
long, a second survey moves by a random walk, and the cheaper of both goes on, by the predicted cost
of the run.
"""

from pymc_anneal.base.contracts import Transition
from pymc_anneal.pipeline.choose_transition import default_transition
from pymc_anneal.pipeline.model_target import ModelTarget
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.target import PilotedRun

# Share of the prior where the likelihood is zero, and evaluations of a move by gradients, from
# which a random walk is tried: between uniform data in eight dimensions a move of the survey took
# 79, those of the run many thousands; those of a walk took two.
_LEAST_ZERO, _LONG = 0.1, 32


def walk_at_edges(
    session: Session, target: ModelTarget, surveyed: PilotedRun, transition: Transition
) -> tuple[PilotedRun, Transition]:
    """Return a survey and its transition, by a random walk if that is cheaper at hard edges.

    Parameters
    ----------
    session
        Settings, seeds.
    target
        The model in the coordinates of the survey.
    surveyed
        The run from the prior with the survey as its pilot.
    transition
        The transition of the survey.
    """
    pilot = surveyed.pilot
    edged = pilot.inside <= (1 - _LEAST_ZERO) * pilot.drawn and pilot.cost[-1] >= _LONG
    if not (edged and session.settings.free_transition):
        return surveyed, transition
    walk = default_transition("random_walk", model=target.compiled)
    (seed,) = session.seeds.transition.spawn(1)
    other = session.survey(target.candidate(), walk, seed)
    return (other, walk) if other.cost < surveyed.cost else (surveyed, transition)

"""The short road: a run from a mixture at the tops of climbs, without a survey.

    climbs from the prior  ->  mixture at their tops  ->  importance sampling

About half of what people fit is a simple posterior (`adaptation/fit_at_tops.py`): a few thousand
evaluations fit a mixture to it, and the run takes one step and no move. Where the weights have a
tail, though none is large, it takes a few steps, with proposals from the mixture as moves: they
visit many draws of it on their way, and the weights are means of as many. So neither survey nor
gradients of moves are compiled. Any other posterior is surveyed.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from pymc_anneal.adaptation.fit_at_tops import fit_at_tops, has_light_tail
from pymc_anneal.adaptation.fitted_reference import FittedReference, draw_start
from pymc_anneal.adaptation.pilot import Pilot
from pymc_anneal.model.derivatives import SMOOTH
from pymc_anneal.model.jumps import likelihood_has_jumps
from pymc_anneal.model.location_scale import location_scale_model
from pymc_anneal.model.log_concavity import is_log_concave_model
from pymc_anneal.pipeline.fitted_mixture import by_proposals
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.settings import Settings
from pymc_anneal.pipeline.start import Request, Start
from pymc_anneal.pipeline.target import Choice, RunCandidate
from pymc_anneal.transitions.stay import Stay


def short_road(session: Session, request: Request) -> Start | None:
    """Return the start from a mixture at the tops of a simple posterior.

    It lies in non-centred coordinates. None if the posterior is not simple, or more is asked for
    than a step without moves.
    """
    if not is_open(session.settings, request):
        return None
    target = request.target
    model = location_scale_model(target.compiled)
    if model is not None:
        target = replace(target, compiled=model.non_centred)
    compiled, concave = target.compiled, is_log_concave_model(target.compiled.model)
    with session.display.busy("Climbs", "to the tops of the posterior"):
        hints = request.options.hints_in(compiled)
        fit = partial(fit_at_tops, compiled, session.seeds.tops, concave, hints)
        fitted = session.meter.run("Climbs", fit).fitted
    if fitted is None:
        return None
    draw = draw_start(fitted.path, compiled.sample_prior)
    run = RunCandidate("mixture", draw, fitted.path, pilot=_pilot(fitted), fitted=fitted)
    return Start(target, request.options.transition, Choice(run, {}))


def is_open(settings: Settings, request: Request) -> bool:
    """Whether one step without moves will do, and climbs may show all modes."""
    compiled, planned = request.target.compiled, settings.fixed_steps is None
    plain = settings.free_transition and not settings.reject_nan and planned
    # Climbs may not show where a likelihood jumps: levels go with a survey.
    smooth = compiled.derivatives.order == SMOOTH and not compiled.calls
    smooth = smooth and not likelihood_has_jumps(compiled)
    wanted = request.is_surveyed and request.options.reference == "auto"
    return wanted and plain and smooth and settings.audit != "levels"


def _pilot(fitted: FittedReference) -> Pilot:
    """Return what a pilot finds: of one step and no move, or of several with proposals."""
    one = np.ones(1)
    found = Pilot(
        betas=np.array([0.0, 1.0]),
        discrepancy=fitted.discrepancy * one,
        log_reference_mass=fitted.log_reference_mass,
        transition=Stay(),
        tau=one,
        cost=one,
        accept_rate=one,
        log_z=fitted.log_z,
        position=fitted.centres[:0],
        ancestor=np.zeros(0, dtype=int),
    )
    return found if has_light_tail(fitted) else by_proposals(found, fitted)

"""Starts without the normal variables of a model, which are integrated out exactly.

    integrate normal variables out  ->  short road  ->  survey, if few are left

Where all variables together have no simple posterior, that of a few scales often has: the effects
of groups, a random walk, the coefficients of many predictors are normal given these, and
`model/integrate_out.py` takes them out of the density. What is asked for is a start of the
variables that are left; those taken out are drawn given them.
"""

from dataclasses import replace

from pymc_anneal.model.integrate_out import integrate_out, may_be_integrated
from pymc_anneal.pipeline.given_start import given_start
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.short_road import is_open, short_road
from pymc_anneal.pipeline.start import Offer, Request, Start
from pymc_anneal.pipeline.start_from_survey import start_from_survey

# For the variables that are left; the first one, where there are none.
_OFFERS: tuple[Offer, ...] = (given_start, short_road)
# Variables that may be left for a survey. Of more, as the scales of a horseshoe, coordinates of all
# variables given the data are nearer to normal: of 12 runs of two horseshoes, errors were 0.01 to
# 0.03 there, and 0.08 in one; with 21 scales alone, 0.02 to 0.04, and above 0.1 in two.
_MOST_LEFT = 10


def integrated_start(session: Session, request: Request) -> Start | None:
    """Return a start without the normal variables of a model.

    None if it has few, or too many others without a simple posterior.
    """
    if not is_open(session.settings, request) or not may_be_integrated(request.target.compiled):
        return None
    with session.display.busy("Model", "integrating normal variables out"):
        compiled = integrate_out(request.target.compiled)
    if compiled is request.target.compiled:
        return None
    target = replace(request.target, compiled=compiled)
    session, request = replace(session, target=target), replace(request, target=target)
    offers = _OFFERS if compiled.ndim > _MOST_LEFT else (*_OFFERS, start_from_survey)
    starts = (offer(session, request) for offer in offers)
    return next((start for start in starts if start is not None), None)

"""Starts without the normal variables of a model, which are integrated out exactly.

    integrate normal variables out  ->  short road  ->  survey

Where all variables together have no simple posterior, that of a few scales often has: the effects
of groups, a random walk, the coefficients of many predictors are normal given these, and
`model/integrate_out.py` takes them out of the density. What is asked for is a start of the
variables that are left; those taken out are drawn given them.
"""

from dataclasses import replace

from pymc_anneal.model.integrate_out import integrate_out
from pymc_anneal.pipeline.given_start import given_start
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.short_road import is_open, short_road
from pymc_anneal.pipeline.start import Offer, Request, Start
from pymc_anneal.pipeline.start_from_survey import start_from_survey

# For the variables that are left; the first one, where there are none.
_OFFERS: tuple[Offer, ...] = (given_start, short_road, start_from_survey)


def integrated_start(session: Session, request: Request) -> Start | None:
    """Return a start without the normal variables of a model; None if it has few."""
    if not is_open(session.settings, request):
        return None
    with session.display.busy("Model", "normal variables integrated out"):
        compiled = integrate_out(request.target.compiled)
    if compiled is request.target.compiled:
        return None
    target = replace(request.target, compiled=compiled)
    session, request = replace(session, target=target), replace(request, target=target)
    offers = (offer(session, request) for offer in _OFFERS)
    return next(start for start in offers if start is not None)

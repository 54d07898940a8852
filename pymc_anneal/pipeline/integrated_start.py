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
# A quarter of all may be left too: of two factors of six items and forty people, 13 of 93 variables
# are. A run of all 93 had an error of 1.5 after three minutes, one of the 13 has 0.03.
_MOST_LEFT, _SHARE_LEFT = 10, 0.25


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
    target, before = replace(request.target, compiled=compiled), request.target.compiled.ndim
    session, request = replace(session, target=target), replace(request, target=target)
    offers = (*_OFFERS, start_from_survey) if few_are_left(compiled.ndim, before) else _OFFERS
    starts = (offer(session, request) for offer in offers)
    return next((start for start in starts if start is not None), None)


def few_are_left(left: int, before: int) -> bool:
    """Whether a model has so few variables left that a survey of them is worth it."""
    return left <= max(_MOST_LEFT, _SHARE_LEFT * before)

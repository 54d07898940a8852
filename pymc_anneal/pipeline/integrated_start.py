"""Starts without the normal variables of a model, which are integrated out exactly.

    integrate normal variables out  ->  short road  ->  survey, if few are left

Where all variables together have no simple posterior, that of a few scales often has: the effects
of groups, a random walk, the coefficients of many predictors are normal given these, and
`model/integrate_out.py` takes them out of the density. What is asked for is a start of the
variables that are left; those taken out are drawn given them.

The posterior of effects and their scale is a funnel, and seldom simple: such models come here
first. That of coefficients with known scales mostly is, and its short road is compiled in half of
the time: those models come here if it leads nowhere.
"""

from dataclasses import replace

import numpy as np

from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base.batches import COSTLY_BATCH
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.integrate_out import are_scaled, integrate_out, may_be_integrated
from pymc_anneal.paths.geometric import GeometricPath
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


def effects_start(session: Session, request: Request) -> Start | None:
    """Return a start without effects or coefficients of unknown scale; None for other models."""
    return _start(session, request) if _may_have(session, request, scaled=True) else None


def integrated_start(session: Session, request: Request) -> Start | None:
    """Return a start without normal variables of known scale; None for other models."""
    return _start(session, request) if _may_have(session, request, scaled=False) else None


def _may_have(session: Session, request: Request, scaled: bool) -> bool:
    """Whether a model may have normal variables that can be integrated out, scaled or not."""
    compiled = request.target.compiled
    possible = is_open(session.settings, request) and may_be_integrated(compiled)
    return possible and are_scaled(compiled) == scaled


def _start(session: Session, request: Request) -> Start | None:
    """Return a start without normal variables.

    None if there are few, or too many others without a simple posterior.
    """
    with session.display.busy("Model", "integrating normal variables out"):
        compiled = integrate_out(request.target.compiled, _evaluate)
    if compiled is request.target.compiled:
        return None
    target, before = replace(request.target, compiled=compiled), request.target.compiled.ndim
    session, request = replace(session, target=target), replace(request, target=target)
    offers = (*_OFFERS, start_from_survey) if few_are_left(compiled.ndim, before) else _OFFERS
    starts = (offer(session, request) for offer in offers)
    return next((start for start in starts if start is not None), None)


def _evaluate(model: CompiledModel, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log densities and gradients by the program with which the short road climbs."""
    return TargetDensity(GeometricPath(model.log_terms), COSTLY_BATCH).value_and_gradient(position)


def few_are_left(left: int, before: int) -> bool:
    """Whether a model has so few variables left that a survey of them is worth it."""
    return left <= max(_MOST_LEFT, _SHARE_LEFT * before)

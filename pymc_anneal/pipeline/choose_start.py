"""Choice of the start of a run: the first offer that is admissible, the cheapest first.

    as asked for  ->  configurations  ->  without effects  ->  short road
                  ->  without other normal variables  ->  survey

An offer is a function in a file of its own and a row in `OFFERS`. It returns a start, or None if
it has none for the model: a reference that was not asked for, no discrete variables, a posterior
that is not simple. The last one always has a start.
"""

from dataclasses import replace

from pymc_anneal.adaptation.configurations import Configurations
from pymc_anneal.model.exchangeable import ordered_model
from pymc_anneal.model.small_shapes import score_model
from pymc_anneal.pipeline.choose_path import AutoPath, GeometricChoice
from pymc_anneal.pipeline.explain_infinite import explaining_infinite
from pymc_anneal.pipeline.given_start import given_start
from pymc_anneal.pipeline.integrated_start import effects_start, integrated_start
from pymc_anneal.pipeline.look_at_configurations import start_from_configurations
from pymc_anneal.pipeline.model_target import ModelTarget
from pymc_anneal.pipeline.options import Options
from pymc_anneal.pipeline.session import Session, explaining_nan
from pymc_anneal.pipeline.settings import Settings, pilot_required
from pymc_anneal.pipeline.short_road import short_road
from pymc_anneal.pipeline.start import Offer, Request, Start
from pymc_anneal.pipeline.start_from_survey import start_from_survey

OFFERS: tuple[Offer, ...] = (
    given_start,
    start_from_configurations,
    effects_start,
    short_road,
    integrated_start,
    start_from_survey,
)


def choose_start(
    session: Session, target: ModelTarget, options: Options, found: Configurations | None
) -> Start:
    """Return the start of a run.

    Raises
    ------
    NotImplementedError
        A reference other than the prior, and a prior whose density is not normalised.
    ValueError
        Log density and draws of the reference given do not belong together; levels are asked for,
        and there is no survey.
    """
    request = _request(session, target, options, found)
    offers = (offer(session, request) for offer in OFFERS)
    with explaining_nan(target), explaining_infinite(target):
        return next(start for start in offers if start is not None)


def _request(
    session: Session, target: ModelTarget, options: Options, found: Configurations | None
) -> Request:
    """Return what is asked of the offers; "auto" is the prior where nothing is free."""
    free = _is_free(session.settings, options)
    if options.reference == "auto" and not free:
        options = replace(options, reference="prior")
    request = Request(target, options, free, found)
    _check_audit(session.settings, request)
    # A reference that is given lies in the model's own coordinates.
    own = target.compiled
    changed = (ordered_model(own) or score_model(own)) if request.is_surveyed else None
    return request if not changed else replace(request, target=replace(target, compiled=changed))


def _is_free(settings: Settings, options: Options) -> bool:
    """Whether coordinates and reference are free."""
    geometric = isinstance(options.path, GeometricChoice | AutoPath)
    there = options.reverse_from is None and geometric
    return there and pilot_required(settings, options.transition)


def _check_audit(settings: Settings, request: Request) -> None:
    """Raise if levels are asked for and nothing would use them."""
    compiled = request.target.compiled
    if settings.audit == "levels" and not request.is_surveyed and compiled.has_likelihood:
        lacking, named = compiled.lacking, "`reference`, `path` or `transition`"
        why = f"it takes {lacking}" if lacking else f"{named} leaves none"
        raise ValueError(
            "`audit='levels'` works beside a survey, to whose particles a reference is fitted; "
            f"{why}. Leave out `audit`, or take 'auto' for the others and no `reverse_from`."
        )

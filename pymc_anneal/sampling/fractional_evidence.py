"""Fractional evidence: a part of the likelihood makes a proper prior of a vague one.

With the part ``b`` of the likelihood ``L`` (O'Hagan 1995, eq. 11),

    q(b) = int p(x) L(x) dx / int p(x) L(x)^b dx,

in which the constant of the prior cancels: as the prior ``p`` gets wider, ``q(b)`` has a limit, and
the evidence has none. The ratio of two of them is the fractional Bayes factor.
"""

from functools import partial
from typing import Any, Unpack, cast

import numpy as np
import pymc as pm

from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import RandomSeed, seed_sequence
from pymc_anneal.evidence.combined_verdict import combined_verdict
from pymc_anneal.evidence.estimate import LogEvidence
from pymc_anneal.evidence.verdict import warn_unless_trusted
from pymc_anneal.model.bambi import unwrap_bambi
from pymc_anneal.model.compile import compile_model
from pymc_anneal.model.power_of_likelihood import raise_likelihood
from pymc_anneal.results.log_evidence import log_evidence
from pymc_anneal.sampling.run_arguments import CallArguments
from pymc_anneal.sampling.sample_ais import sample_ais
from pymc_anneal.sampling.several_runs import (
    OF_ONE_POSTERIOR,
    check_several_runs,
    unless_interrupted,
)


@double_precision
def fractional_evidence(
    model: pm.Model | None = None,
    *,
    fraction: float,
    random_seed: RandomSeed = None,
    **settings: Unpack[CallArguments],
) -> LogEvidence:
    """Estimate the fractional log evidence of a model, which a vague prior does not set.

    Parameters
    ----------
    model : pymc.Model, optional
        A model with wide, proper priors. Default: the model on the context stack.
    fraction : float
        Share ``b`` of the likelihood that goes to the prior, between 0 and 1; the same for all
        models that are compared. The least that makes sense is ``m / n``, with the number of
        parameters ``m`` of the largest model and the number of observations ``n``.
    random_seed : int, sequence of int, SeedSequence or Generator, optional
        The same seed gives the same result.
    **settings
        Arguments of :func:`sample_ais` for both runs; `warnings` is about the verdict on their
        ratio. Draws in `moments_from` and `reverse_from` are of the posterior, and the run for the
        part of the likelihood goes without.

    Returns
    -------
    LogEvidence
        ``log q(b)``, in nats, for :func:`compare` and :func:`log_bayes_factor` with other
        fractional evidences of the same fraction; its hash of the data names the fraction, so that
        nothing else is compared with it. The two runs are independent.

    Raises
    ------
    ValueError
        The fraction is not between 0 and 1.
    TypeError
        There is no model, or a checkpoint, which holds one run.

    See Also
    --------
    prior_sensitivity : How much a prior matters.
    g_prior : Priors of regressions that do not have to be vague.

    References
    ----------
    O'Hagan (1995), Fractional Bayes factors for model comparison, eq. 11.

    Examples
    --------
    >>> a, b = (pymc_anneal.fractional_evidence(m, fraction=0.1) for m in (first, second))
    >>> pymc_anneal.log_bayes_factor(a, b)
    """
    if not 0 < fraction < 1:
        raise ValueError(
            f"`fraction` is {fraction}, expected a share of the likelihood between 0 and 1."
        )
    shared = cast(dict[str, Any], settings)
    given = {name: shared.pop(name, None) for name in OF_ONE_POSTERIOR}
    check_several_runs("fractional_evidence", settings)
    model = unwrap_bambi(pm.modelcontext(model))
    warn = settings.get("warnings", True)
    settings = {"progressbar": False, **settings, "warnings": False}
    seed_whole, seed_part = seed_sequence(random_seed).spawn(2)
    powered = compile_model(raise_likelihood(model, fraction))
    run = partial(sample_ais, **settings)
    first = unless_interrupted(run(compile_model(model), random_seed=seed_whole, **given))
    second = unless_interrupted(run(powered, random_seed=seed_part, **_for_part(given)))
    whole, part = log_evidence(first), log_evidence(second)
    found = _ratio(whole, part, fraction)
    if warn:
        warn_unless_trusted(found.verdict, found.headline)
    return found


def _for_part(given: dict[str, Any]) -> dict[str, Any]:
    """Return what the run for a part of the likelihood takes of arguments for the whole one."""
    return {name: value for name, value in given.items() if isinstance(value, str)}


def _ratio(whole: LogEvidence, part: LogEvidence, fraction: float) -> LogEvidence:
    value = whole.log_evidence - part.log_evidence
    below = np.hypot(whole.log_evidence - whole.interval[0], part.interval[1] - part.log_evidence)
    above = np.hypot(whole.interval[1] - whole.log_evidence, part.log_evidence - part.interval[0])
    names = {"all data": whole.verdict, f"a share {fraction:g} of the likelihood": part.verdict}
    return LogEvidence(
        log_evidence=value,
        mcse=float(np.hypot(whole.mcse, part.mcse)),
        interval=(float(value - below), float(value + above)),
        ess=min(whole.ess, part.ess),
        pareto_k=max(whole.pareto_k, part.pareto_k),
        barrier=float("nan"),
        verdict=combined_verdict(names),
        notes=f"Fractional evidence: a share {fraction:g} of the likelihood is part of the prior.",
        data_hash=f"{whole.data_hash} to the power {1 - fraction:g}",
        witnesses=(*whole.witnesses, *part.witnesses),
    )

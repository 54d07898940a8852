"""Inclusion probabilities: the posterior probability that a variable belongs to the model.

With the posterior probabilities ``P(m | y)`` and prior probabilities ``P(m)`` of the models that
contain a variable,

    P(j | y) = sum over m that contain j of P(m | y),
    log BF_j = log(P(j | y) / (1 - P(j | y))) - log(P(j) / (1 - P(j))).

Errors are those of the log evidences, by normal draws of them.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd

from scipy.special import logsumexp

from pymc_anneal.base.arviz_compat import Container
from pymc_anneal.evidence.estimate import LogEvidence
from pymc_anneal.results.compare_models import (
    read_evidences,
    resolve_log_odds,
    simulate_log_evidences,
)


def inclusion(
    results: Mapping[str, Container | LogEvidence],
    included: Mapping[str, Collection[str]],
    prior_odds: Mapping[str, float] | Sequence[float] | None = None,
) -> pd.DataFrame:
    """Compute inclusion probabilities and inclusion Bayes factors.

    Parameters
    ----------
    results : dict of str to InferenceData, DataTree or LogEvidence
        Results of :func:`sample_ais` for all models, as :func:`sample_models` returns them.
    included : dict of str to collection of str
        Variables that each model contains, by the names of the models.
    prior_odds : dict of str to float, or sequence of float, optional
        Prior odds of the models, up to a common factor. Default: equal.

    Returns
    -------
    pandas.DataFrame
        One row for each variable, in order of appearance: the posterior ``probability`` of the
        models that contain it, with the ends of its 95 % interval ``probability_lower`` and
        ``probability_upper``; their ``prior_probability``; and the ``log_bayes_factor`` for
        inclusion in nats, with its ``log_bayes_factor_mcse``. The Bayes factor is infinite for a
        variable of all models. ``attrs["not_trusted"]`` lists the models whose evidence is not
        trusted.

    Raises
    ------
    ValueError
        ``included`` has other names than the results, or the results cannot be compared.

    See Also
    --------
    sample_models : Run the models.
    average : Means over the models.

    References
    ----------
    Barbieri & Berger (2004), Optimal predictive model selection.

    Examples
    --------
    >>> pymc_anneal.inclusion(results, {"none": [], "first": ["x1"], "both": ["x1", "x2"]})
    """
    if set(included) != set(results):
        raise ValueError(
            f"`included` has the models {sorted(included)}, expected those of the results: "
            f"{sorted(results)}."
        )
    evidences = read_evidences(results)
    log_prior = np.array(list(resolve_log_odds(list(results), prior_odds).values()))
    names = list(dict.fromkeys(name for model in results for name in included[model]))
    member = np.array([[name in included[model] for model in results] for name in names])
    simulated = simulate_log_evidences(evidences) + log_prior
    found = np.array([e.log_evidence for e in evidences.values()]) + log_prior
    table = pd.DataFrame(
        [_row(of_variable, found, simulated, log_prior) for of_variable in member],
        index=pd.Index(names, name="variable"),
    )
    doubtful = [name for name, e in evidences.items() if e.verdict.status == "do not trust"]
    table.attrs["not_trusted"] = doubtful
    return table


def _row(
    member: np.ndarray, found: np.ndarray, simulated: np.ndarray, log_prior: np.ndarray
) -> dict[str, float]:
    """Return the row of a variable that the models of a mask contain."""
    odds, prior = _log_odds(found, member), _log_odds(log_prior, member)
    draws = _log_odds(simulated, member)
    lower, upper = np.quantile(_probability(draws), [0.025, 0.975])
    return {
        "probability": float(_probability(odds)),
        "probability_lower": float(lower),
        "probability_upper": float(upper),
        "prior_probability": float(_probability(prior)),
        "log_bayes_factor": float(odds - prior) if np.isfinite(prior) else np.inf,
        "log_bayes_factor_mcse": float(draws.std()) if np.isfinite(prior) else 0.0,
    }


def _log_odds(log_mass: np.ndarray, member: np.ndarray) -> np.ndarray:
    """Return the log odds of the models of a mask; models are the last axis."""
    if member.all():
        return np.full(log_mass.shape[:-1], np.inf)
    inside = logsumexp(log_mass[..., member], axis=-1)
    outside = logsumexp(log_mass[..., ~member], axis=-1)
    return np.asarray(inside - outside)


def _probability(log_odds: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-log_odds)))

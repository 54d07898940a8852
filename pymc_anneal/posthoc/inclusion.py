"""Inclusion probabilities: the posterior probability that a variable belongs to the model.

With the posterior probabilities ``P(m | y)`` and prior probabilities ``P(m)`` of the models that
contain a variable,

    P(j | y) = sum over m that contain j of P(m | y),
    log BF_j = log(P(j | y) / (1 - P(j | y))) - log(P(j) / (1 - P(j))).

Errors are those of the log evidences, by normal draws of them.

Of effects with interactions, a model with ``a:b`` and without ``a`` is no sensible rival (the
principle of marginality; Nelder 1977), and all models with ``a`` on one side mix its own effect
with that of ``a:b``. Matched models are those that contain the effect and no interaction of it,
against the same ones without the effect (Mathot 2017; "across matched models" of JASP).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

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
    *,
    matched: bool = False,
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
    matched : bool
        Whether to compare, for each effect, models that contain it and none of its interactions
        with the same models without it; an interaction is named by its factors, ``"a:b"``.
        Probabilities are then those within these models.

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
        ``included`` has other names than the results, the results cannot be compared, or an effect
        has no matched models.

    See Also
    --------
    sample_models : Run the models.
    average : Means over the models.

    References
    ----------
    Barbieri & Berger (2004), Optimal predictive model selection. Mathot (2017), Bayes like a Baws:
    interpreting Bayesian repeated measures in JASP. Nelder (1977), A reformulation of linear
    models.

    Examples
    --------
    >>> pymc_anneal.inclusion(results, {"none": [], "first": ["x1"], "both": ["x1", "x2"]})
    """
    if set(included) != set(results):
        raise ValueError(
            f"`included` has the models {sorted(included)}, expected those of the results: "
            f"{sorted(results)}."
        )
    for model, names in included.items():
        if isinstance(names, str):
            raise ValueError(
                f"`included` has the string '{names}' for the model '{model}', expected a sequence "
                "of names."
            )
    evidences = read_evidences(results)
    log_prior = np.array(list(resolve_log_odds(list(results), prior_odds).values()))
    first = dict[_Term, str]()
    for name in (name for model in results for name in included[model]):
        first.setdefault(_factors(name), name)
    names = list(first.values())
    terms = [{_factors(term) for term in included[model]} for model in results]
    sides = [(_matched if matched else _all)(_factors(name), terms, name) for name in names]
    simulated = simulate_log_evidences(evidences) + log_prior
    found = np.array([e.log_evidence for e in evidences.values()]) + log_prior
    table = pd.DataFrame(
        [_row(inside, outside, found, simulated, log_prior) for inside, outside in sides],
        index=pd.Index(names, name="variable"),
    )
    doubtful = [name for name, e in evidences.items() if e.verdict.status == "do not trust"]
    table.attrs["not_trusted"] = doubtful
    return table


# The factors of an effect: one, or those of an interaction.
_Term: TypeAlias = frozenset[str]


def _factors(name: str) -> _Term:
    return frozenset(part.strip() for part in str(name).split(":"))


def _all(own: _Term, models: Sequence[set[_Term]], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return masks of the models with an effect, and of all others."""
    inside = np.array([own in model for model in models])
    return inside, ~inside


def _matched(own: _Term, models: Sequence[set[_Term]], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return masks of the models with an effect and no interaction of it, and of those without.

    Only models of which the other one of the pair is there count.
    """
    alone = [own in m and not any(own < term for term in m) for m in models]
    rests = [model - {own} for model, with_it in zip(models, alone, strict=True) if with_it]
    outside = np.array([model in rests for model in models])
    there = [model for model, without in zip(models, outside, strict=True) if without]
    inside = np.array(
        [with_it and m - {own} in there for m, with_it in zip(models, alone, strict=True)]
    )
    if not inside.any():
        raise ValueError(
            f"'{name}' has no matched models: none contains it, and no interaction of it, of which "
            "the model without it is among the results."
        )
    return inside, outside


def _row(
    inside: np.ndarray,
    outside: np.ndarray,
    found: np.ndarray,
    simulated: np.ndarray,
    log_prior: np.ndarray,
) -> dict[str, float]:
    """Return the row of a variable that models of a mask contain and those of another do not."""
    odds, prior, draws = (_log_odds(x, inside, outside) for x in (found, log_prior, simulated))
    lower, upper = np.quantile(_probability(draws), [0.025, 0.975])
    return {
        "probability": float(_probability(odds)),
        "probability_lower": float(lower),
        "probability_upper": float(upper),
        "prior_probability": float(_probability(prior)),
        "log_bayes_factor": float(odds - prior) if np.isfinite(prior) else np.inf,
        "log_bayes_factor_mcse": float(draws.std()) if np.isfinite(prior) else 0.0,
    }


def _log_odds(log_mass: np.ndarray, inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """Return the log odds of the models of a mask against others; models are the last axis."""
    if not outside.any():
        return np.full(log_mass.shape[:-1], np.inf)
    own = logsumexp(log_mass[..., inside], axis=-1)
    return np.asarray(own - logsumexp(log_mass[..., outside], axis=-1))


def _probability(log_odds: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-log_odds)))

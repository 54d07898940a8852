"""Sections of a report: Bayes factors, probabilities and the method, in sentences to be quoted.

Each Bayes factor is that of the model that the data favour, whose name comes first: a row cannot be
read backwards.
"""

from collections.abc import Mapping
from html import escape

import numpy as np
import pandas as pd

from scipy.special import logsumexp

from pymc_anneal._version import __version__
from pymc_anneal.base.arviz_compat import Container, has_group, required_group
from pymc_anneal.base.html import html_table, round_to_error
from pymc_anneal.evidence.estimate import LogEvidence
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.results.bayes_factor import (
    LogBayesFactor,
    describe_factor,
    factor_range,
    factor_text,
)
from pymc_anneal.results.model_comparison import ModelComparison, probability_text

_FACTORS = (
    "favoured",
    "against",
    "Bayes factor (95 % interval)",
    "log BF (nats)",
    "log10 BF",
    "Jeffreys (1961)",
    "Kass & Raftery (1995)",
)
_PROBABILITIES = ("model", "prior probability", "posterior probability (95 % interval)")
_CITED = (
    "Neal (2001), Annealed importance sampling, Statistics and Computing 11. Kass & Raftery "
    "(1995), Bayes factors, JASA 90. Jeffreys (1961), Theory of probability, appendix B."
)
_MADE = f"(Neal 2001) with pymc_anneal {__version__}"
# The transition of a run whose start is near the posterior: its particles stay where they are.
_STAY = "Stay"
_ONE_STEP = (
    "importance sampling from a mixture of densities that was fitted to the posterior beforehand, "
    "which is annealed importance sampling with one step"
)
_UNTRUSTED = "the evidence is not trusted: not known"


def bayes_factors(comparison: ModelComparison) -> str:
    """Return the Bayes factors of the first model against each of the others."""
    factors = _factors(comparison)
    rows = [_row(factor) for factor in factors]
    sentences = "".join(f"<p>{escape(_sentence(factor))}</p>" for factor in factors)
    return sentences + html_table(rows, header=_FACTORS)


def _factors(comparison: ModelComparison) -> list[LogBayesFactor]:
    """Return the Bayes factors of the first model against the others, in their order."""
    details = comparison.details
    best, *others = details.index
    # No model is trusted if the first one is not.
    none = pd.isna(details["rank"].iloc[0])
    rows = [(str(name), details.loc[name]) for name in others]
    return [
        LogBayesFactor(
            log_bayes_factor=-row["log_bayes_factor"],
            mcse=row["log_bayes_factor_mcse"],
            interval=(-row["log_bayes_factor_upper"], -row["log_bayes_factor_lower"]),
            verdict=Verdict("do not trust" if none or pd.isna(row["rank"]) else "trust"),
            models=(str(best), name),
        )
        for name, row in rows
    ]


def _sentence(factor: LogBayesFactor) -> str:
    if not factor.verdict.trusted:
        return f"{' against '.join(factor.models)}: {_UNTRUSTED}."
    found = describe_factor(factor.log_bayes_factor, factor.interval, factor.models)
    return f"{found[0].upper()}{found[1:]}."


def _row(factor: LogBayesFactor) -> tuple[str, ...]:
    if not factor.verdict.trusted:
        return (*factor.models, *["not known"] * 5)
    value, error = factor.log_bayes_factor, factor.mcse
    return (
        *factor.models,
        f"{factor_text(value)} : 1 ({factor_range(factor.interval)})",
        f"{round_to_error(value, error)} ± {error:.2g}",
        f"{round_to_error(factor.log10, error / np.log(10))} ± {error / np.log(10):.2g}",
        factor.words("jeffreys"),
        factor.words("kass_raftery"),
    )


def probabilities(comparison: ModelComparison, log_odds: Mapping[str, float]) -> str:
    """Return the probabilities of the models before and after the data."""
    total = logsumexp(list(log_odds.values()))
    # An evidence that is not trusted stands in the sum of all of them.
    trusted = not comparison.details["rank"].isna().any()
    rows = [
        (
            str(name),
            probability_text(float(np.exp(log_odds[str(name)] - total))),
            _interval_of_probability(row) if trusted else "not known",
        )
        for name, row in comparison.details.iterrows()
    ]
    given = "Equal prior probabilities." if len(set(log_odds.values())) == 1 else ""
    return f"<p>Among these models. {given}</p>{html_table(rows, header=_PROBABILITIES)}"


def _interval_of_probability(row: pd.Series) -> str:
    value, low, high = (
        probability_text(row[f"probability{end}"]) for end in ("", "_lower", "_upper")
    )
    return f"{value} ({low} to {high})"


def method(results: Mapping[str, Container | LogEvidence]) -> str:
    """Return sentences on the method that may be quoted, and what they cite."""
    sentences = [
        *_sources(results),
        "Errors of Bayes factors combine the Monte Carlo standard errors of both estimates; "
        "intervals are 95 % intervals.",
    ]
    return f"<p>{escape(' '.join(sentences))}</p><p>{escape(_CITED)}</p>"


def _sources(results: Mapping[str, Container | LogEvidence]) -> list[str]:
    """Say of each estimate how it was made."""
    by_transition = dict[str, list[str]]()
    for name, result in results.items():
        by_transition.setdefault(_transition(result), []).append(name)
    others, stayed = by_transition.pop("", []), by_transition.pop(_STAY, [])
    moved = [name for names in by_transition.values() for name in names]
    ways = {"annealed importance sampling": moved, _ONE_STEP: stayed}
    estimated = [
        f"The marginal likelihood of {_list(names)} was estimated by {way} {_MADE}: one run was "
        "counted, with settings that were fixed before it."
        for way, names in ways.items()
        if names
    ]
    other = f"That of {_list(others)} comes from an estimate by another method."
    return [*estimated, other] if others else estimated


def _transition(result: Container | LogEvidence) -> str:
    """Return the transition of an annealed run; empty for an estimate by another method."""
    if not has_group(result, "annealing"):
        return ""
    evidence = required_group(result, "evidence", "pymc_anneal.sample_ais")
    return str(evidence.attrs.get("transition") or "unknown")


def _list(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)

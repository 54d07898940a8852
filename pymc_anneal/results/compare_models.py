"""Comparison of models by their evidence, with the errors carried along.

For models ``m`` with evidences ``Z_m`` and prior odds ``o_m``,

    log BF_ab = log Z_a - log Z_b,        P(m | y) = o_m Z_m / sum_l o_l Z_l

(Kass & Raftery 1995). The estimates come from separate runs: their errors are independent. The
interval of a difference is put together from the intervals of its two sides (Zou & Donner 2008),

    lower = d - sqrt((a - a_lower)^2 + (b_upper - b)^2),    upper likewise,

which keeps their asymmetry; intervals of probabilities come from normal draws of the log evidences.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from scipy.special import softmax

from pymc_anneal.base.arviz_compat import Container
from pymc_anneal.base.data_hash import stored_data
from pymc_anneal.evidence.combined_verdict import combined_verdict
from pymc_anneal.evidence.estimate import LogEvidence
from pymc_anneal.evidence.verdict import Verdict, warn_unless_trusted
from pymc_anneal.results.bayes_factor import LogBayesFactor, factor_range, factor_text
from pymc_anneal.results.decompose import decompositions
from pymc_anneal.results.log_evidence import log_evidence
from pymc_anneal.results.model_comparison import ModelComparison, RoundTo

# Normal draws of the log evidences: the Monte Carlo error of a tail probability of 2.5 % is then
# 0.1 %.
_SIMULATIONS = 20_000

# Log Bayes factor that matters, in nats: below it a factor is "not worth more than a bare mention"
# (Kass & Raftery 1995, section 3.2: 2 log BF below 2).
_MATTERS = 1.0


def log_bayes_factor(
    a: Container | LogEvidence,
    b: Container | LogEvidence,
    *,
    names: tuple[str, str] = ("a", "b"),
) -> LogBayesFactor:
    """Compute the log Bayes factor of two models, with its error.

    Parameters
    ----------
    a, b : InferenceData, DataTree or LogEvidence
        Results of :func:`sample_ais` on the same data, or evidences read from them.
    names : (str, str)
        Names of the two models, for the result.

    Returns
    -------
    LogBayesFactor
        ``log Z_a - log Z_b``, in nats, positive if the data favour ``a``.

    Raises
    ------
    ValueError
        The results are of different observed data, or hold no evidence; or the names are not two.

    See Also
    --------
    compare : More than two models, with probabilities.
    sample_bayes_factor : From one model to a neighbour, without two evidences.

    References
    ----------
    Kass & Raftery (1995), Bayes factors. Zou & Donner (2008), Construction of confidence limits
    about effect measures.

    Examples
    --------
    >>> pymc_anneal.log_bayes_factor(idata_a, idata_b, names=("pooled", "hierarchical"))
    """
    if isinstance(names, str) or len(set(names)) != 2:
        raise ValueError(f"`names` is {names!r}, expected two different names.")
    first, second = names
    return _difference(read_evidences({first: a, second: b}), first, second)


def compare(
    results: Mapping[str, Container | LogEvidence],
    prior_odds: Mapping[str, float] | Sequence[float] | None = None,
    *,
    decompose: bool = False,
    models: Mapping[str, Any] | None = None,
    reference: str | None = None,
    round_to: RoundTo = "auto",
    warnings: bool = True,
) -> ModelComparison:
    """Rank models by their evidence.

    Parameters
    ----------
    results : dict of str to InferenceData, DataTree or LogEvidence
        Results of :func:`sample_ais`, or evidences read from them, by name; of the same data.
    prior_odds : dict of str to float, or sequence of float, optional
        Prior odds of the models, up to a common factor. Default: equal.
    decompose : bool
        Whether to split each log evidence into ``fit``, the posterior mean of the log likelihood,
        minus ``information``, the Kullback-Leibler divergence of the posterior from the prior, and
        that by free variable (:attr:`ModelComparison.occam`). Takes results of :func:`sample_ais`,
        and `models`.
    models : dict of str to pymc.Model or CompiledModel, optional
        The models by the names of `results`; their likelihoods are evaluated at the draws.
    reference : str, optional
        Name of the model against which Bayes factors are given. Default: the best one.
    round_to : int, "auto" or "none"
        Decimals of :attr:`ModelComparison.table`, of its text and of
        :attr:`ModelComparison.arviz`. "auto" rounds the text to the errors and no numbers; "none"
        rounds nothing.
    warnings : bool
        Whether to warn if the verdict is not "trust".

    Returns
    -------
    ModelComparison
        Its notation in text and in notebooks is a table of rank, log evidence, error, log Bayes
        factor against the reference, probability and verdict; :attr:`ModelComparison.table` is
        that table as numbers, :attr:`ModelComparison.details` has intervals besides, and
        :attr:`ModelComparison.arviz` the names of columns that :func:`arviz.compare` has. Models
        whose evidence is not trusted have no rank and come last.

    Raises
    ------
    ValueError
        There are fewer than two models, they are of different observed data, one has no finite
        evidence, the prior odds are not one positive number for each model, no model has the name
        of the reference, or `round_to` is no number of decimals.

    Warns
    -----
    EvidenceWarning
        An evidence is not trusted; or the interval of the Bayes factor of the first two models
        contains both 1 and a factor that matters, 2.7 or more.

    See Also
    --------
    log_bayes_factor : Two models.
    report : The comparison as a web page.
    plot_compare : The comparison as a figure.
    average : Posterior means over the models.

    References
    ----------
    Kass & Raftery (1995), Bayes factors. Zou & Donner (2008), Construction of confidence limits
    about effect measures.

    Examples
    --------
    >>> pymc_anneal.compare({"pooled": idata_pooled, "hierarchical": idata_hierarchical})
    """
    if not isinstance(results, Mapping) or len(results) < 2:
        found = (
            f"{len(results)} of them" if isinstance(results, Mapping) else type(results).__name__
        )
        raise ValueError(f"`results` is {found}, expected a dict of at least two results by name.")
    _check_arviz_habits(results, reference, round_to)
    log_odds = resolve_log_odds(list(results), prior_odds)
    evidences = dict(sorted(read_evidences(results).items(), key=_order))
    parts = decompositions(results, evidences, models or {}) if decompose else None
    best, second, *_ = evidences
    verdict = _verdict(evidences, best, second)
    if warnings:
        warn_unless_trusted(verdict, "comparison of models")
    details = _details(evidences, log_odds, reference or best)
    if parts is None:
        return ModelComparison(details, verdict, reference or best, round_to)
    details = details.join(parts[0])
    return ModelComparison(details, verdict, reference or best, round_to, parts[1])


def _check_arviz_habits(
    results: Mapping[str, Any], reference: str | None, round_to: RoundTo
) -> None:
    """Raise if the reference is no model, or the rounding none."""
    if reference is not None and reference not in results:
        raise ValueError(
            f"`reference` is {reference!r}, expected the name of a model: one of {list(results)}."
        )
    decimals = isinstance(round_to, int) and not isinstance(round_to, bool) and round_to >= 0
    if not decimals and round_to not in ("auto", "none", "None"):
        raise ValueError(
            f"`round_to` is {round_to!r}, expected a number of decimals, 'auto' or 'none'."
        )


def _order(item: tuple[str, LogEvidence]) -> tuple[bool, float]:
    """Sort trusted evidences, the largest first, before those that are not."""
    return _is_doubtful(item[1]), -item[1].log_evidence


def _is_doubtful(evidence: LogEvidence) -> bool:
    return evidence.verdict.status == "do not trust"


def _details(
    evidences: Mapping[str, LogEvidence], log_odds: Mapping[str, float], reference: str
) -> pd.DataFrame:
    """Return all columns of the table, for models in order."""
    factors = [
        _itself(reference) if name == reference else _difference(evidences, name, reference)
        for name in evidences
    ]
    rank = [pd.NA if _is_doubtful(e) else i for i, e in enumerate(evidences.values())]
    return pd.DataFrame(
        {
            "rank": pd.array(rank, dtype="Int64"),
            "log_evidence": [e.log_evidence for e in evidences.values()],
            "mcse": [e.mcse for e in evidences.values()],
            "log_bayes_factor": [f.log_bayes_factor for f in factors],
            "log_bayes_factor_mcse": [f.mcse for f in factors],
            "log_bayes_factor_lower": [f.interval[0] for f in factors],
            "log_bayes_factor_upper": [f.interval[1] for f in factors],
            **_probabilities(evidences, log_odds),
            "verdict": [e.verdict.status for e in evidences.values()],
            "reasons": ["; ".join(e.verdict.reasons) for e in evidences.values()],
            "examined": [e.is_examined for e in evidences.values()],
        },
        index=pd.Index(list(evidences), name="model"),
    )


def _itself(name: str) -> LogBayesFactor:
    """Return the Bayes factor of a model against itself, which has no error."""
    return LogBayesFactor(0.0, 0.0, (0.0, 0.0), Verdict("trust"), models=(name, name))


def read_evidences(results: Mapping[str, Container | LogEvidence]) -> dict[str, LogEvidence]:
    """Read the evidences, and raise if they cannot be compared."""
    read = {n: r if isinstance(r, LogEvidence) else log_evidence(r) for n, r in results.items()}
    for name, evidence in read.items():
        if not np.isfinite([evidence.log_evidence, evidence.mcse]).all():
            raise ValueError(
                f"Model '{name}' has log evidence {evidence.log_evidence} +- {evidence.mcse}, "
                "expected finite numbers. Run it again with more steps or draws."
            )
    _check_same_data(read, results)
    return read


def _difference(evidences: Mapping[str, LogEvidence], first: str, second: str) -> LogBayesFactor:
    a, b = evidences[first], evidences[second]
    d = a.log_evidence - b.log_evidence
    down = np.hypot(a.log_evidence - a.interval[0], b.interval[1] - b.log_evidence)
    up = np.hypot(a.interval[1] - a.log_evidence, b.log_evidence - b.interval[0])
    return LogBayesFactor(
        log_bayes_factor=d,
        mcse=float(np.hypot(a.mcse, b.mcse)),
        interval=(float(d - down), float(d + up)),
        verdict=combined_verdict({first: a.verdict, second: b.verdict}),
        models=(first, second),
    )


def resolve_log_odds(
    names: list[str], odds: Mapping[str, float] | Sequence[float] | None
) -> dict[str, float]:
    """Return the log prior odds by name."""
    if odds is None:
        return dict.fromkeys(names, 0.0)
    if isinstance(odds, pd.Series):
        odds = odds.to_dict()
    given = dict(odds) if isinstance(odds, Mapping) else dict(zip(names, odds, strict=False))
    count = len(odds)
    if set(given) != set(names) or count != len(names):
        raise ValueError(
            f"`prior_odds` has {count} entries {list(given)}, expected one for each of {names}."
        )
    values = np.array([given[name] for name in names], dtype=float)
    if not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(f"`prior_odds` are {values.tolist()}, expected positive numbers.")
    return dict(zip(names, np.log(values), strict=True))


def simulate_log_evidences(evidences: Mapping[str, LogEvidence]) -> np.ndarray:
    """Draw the log evidences within their errors, shape ``(simulations, models)``."""
    log_z = np.array([e.log_evidence for e in evidences.values()])
    error = np.array([e.mcse for e in evidences.values()])
    # A fixed seed: the interval is a function of the estimates.
    noise = np.random.default_rng(1995).normal(size=(_SIMULATIONS, len(log_z)))
    return np.asarray(log_z + error * noise)


def _probabilities(
    evidences: Mapping[str, LogEvidence], log_odds: Mapping[str, float]
) -> dict[str, np.ndarray]:
    """Return the posterior model probabilities and the ends of their 95 % intervals."""
    log_z = np.array([e.log_evidence for e in evidences.values()])
    log_prior = np.array([log_odds[name] for name in evidences])
    simulated = softmax(simulate_log_evidences(evidences) + log_prior, axis=1)
    lower, upper = np.quantile(simulated, [0.025, 0.975], axis=0)
    return {
        "probability": softmax(log_z + log_prior),
        "probability_lower": lower,
        "probability_upper": upper,
    }


def _verdict(evidences: Mapping[str, LogEvidence], best: str, second: str) -> Verdict:
    """Return whether the order of the first two models is certain."""
    doubtful = {name: e.verdict for name, e in evidences.items() if _is_doubtful(e)}
    if doubtful:
        return combined_verdict(doubtful)
    factor = _difference(evidences, best, second)
    if not factor.verdict.trusted:
        return factor.verdict
    d, error = factor.log_bayes_factor, factor.mcse
    if factor.interval[0] > 0 or error == 0:
        lead = f"{d:.2f} +- {error:.2g} nats ahead of '{second}' ({factor_text(d)} : 1)"
        return Verdict("trust", (f"'{best}' has the highest evidence, {lead}",))
    return _tie(factor)


def _tie(factor: LogBayesFactor) -> Verdict:
    """Return the verdict on two models whose order is not certain.

    No more draws are asked for if neither end of the interval is a factor that matters.
    """
    (first, second), d = factor.models, factor.log_bayes_factor
    half = max(abs(end - d) for end in factor.interval)
    found = f"Bayes factor {factor_text(d)}, 95 % interval {factor_range(factor.interval)}"
    if max(map(abs, factor.interval)) < _MATTERS:
        return Verdict("trust", (f"the data favour neither '{first}' nor '{second}': {found}",))
    wanted = max(d, _MATTERS - d)
    particles = f"{np.ceil((half / wanted) ** 2):.0f} times as many particles"
    reason = f"'{first}' and '{second}' cannot be told apart at this precision: {found}"
    matters = f"a factor of {factor_text(_MATTERS)}"
    return Verdict(
        "more draws needed",
        (reason, f"about {particles} would tell whether the data favour one by {matters} or more"),
    )


def _check_same_data(
    evidences: Mapping[str, LogEvidence], results: Mapping[str, Container | LogEvidence]
) -> None:
    """Raise if two results are of different observed data; those without data are accepted."""
    (first, expected), *others = evidences.items()
    for name, found in others:
        if expected.data_hash and found.data_hash and found.data_hash != expected.data_hash:
            raise ValueError(
                f"Models '{first}' and '{name}' are of different observed data: "
                f"{_describe_data(results[first], expected)} and "
                f"{_describe_data(results[name], found)}. Evidences can be compared only if the "
                "models explain the same data, in the same units."
            )
        if not expected.data_hash:
            first, expected = name, found


def _describe_data(result: Container | LogEvidence, evidence: LogEvidence) -> str:
    data = {} if isinstance(result, LogEvidence) else stored_data(result)
    shapes = [f"'{name}' of shape {value.shape}" for name, value in data.items()]
    return f"{', '.join(shapes) or 'data'} (hash {evidence.data_hash})"

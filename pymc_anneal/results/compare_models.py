"""Comparison of models by their evidence, with the errors carried along.

For models ``m`` with evidences ``Z_m`` and prior odds ``o_m``,

    log BF_ab = log Z_a - log Z_b,        P(m | y) = o_m Z_m / sum_l o_l Z_l

(Kass & Raftery 1995). The estimates come from separate runs: their errors are independent. The
interval of a difference is put together from the intervals of its two sides (Zou & Donner 2008),

    lower = d - sqrt((a - a_lower)^2 + (b_upper - b)^2),    upper likewise,

which keeps their asymmetry; intervals of probabilities come from normal draws of the log evidences.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from scipy.special import softmax
from scipy.stats import norm

from pymc_anneal.base.arviz_compat import Container, group, has_group
from pymc_anneal.evidence.estimate import LogEvidence
from pymc_anneal.evidence.verdict import Verdict, combined_verdict
from pymc_anneal.results.log_evidence import log_evidence

# Normal draws of the log evidences: the Monte Carlo error of a tail probability of 2.5 % is then
# 0.1 %.
_SIMULATIONS = 20_000

# Largest increase of the number of particles that is suggested to separate two models.
_MAX_INCREASE = 1000


@dataclass(frozen=True)
class LogBayesFactor:
    """Difference of two log evidences, in nats.

    Attributes
    ----------
    log_bayes_factor : float
        Positive if the first model is favoured.
    mcse : float
        Monte Carlo standard error.
    interval : tuple of float
        95 % interval.
    verdict : Verdict
        ``"trust"`` if both evidences are trusted; otherwise the worse status of the two, with
        reasons that begin with the name of the model.
    """

    log_bayes_factor: float
    mcse: float
    interval: tuple[float, float]
    verdict: Verdict

    def __repr__(self) -> str:
        """Return a summary of two lines."""
        low, high = self.interval
        return (
            f"log Bayes factor {self.log_bayes_factor:.3f} +- {self.mcse:.2g} nats "
            f"(95 % interval {low:.3f} to {high:.3f})\n"
            f"verdict: {self.verdict}"
        )


def log_bayes_factor(a: Container | LogEvidence, b: Container | LogEvidence) -> LogBayesFactor:
    """Compute the log Bayes factor of two models, with its error.

    Parameters
    ----------
    a, b : InferenceData, DataTree or LogEvidence
        Results of :func:`sample_ais` on the same data, or evidences read from them.

    Returns
    -------
    LogBayesFactor
        ``log Z_a - log Z_b``, in nats.

    Raises
    ------
    ValueError
        The results are of different observed data, or hold no evidence.

    References
    ----------
    Kass & Raftery (1995), Bayes factors. Zou & Donner (2008), Construction of confidence limits
    about effect measures.

    Examples
    --------
    >>> pymc_anneal.log_bayes_factor(idata_a, idata_b)
    """
    _check_same_data({"a": a, "b": b})
    return _difference(_evidences({"a": a, "b": b}), "a", "b")


def compare(
    results: Mapping[str, Container | LogEvidence],
    prior_odds: Mapping[str, float] | Sequence[float] | None = None,
) -> pd.DataFrame:
    """Rank models by their evidence.

    Parameters
    ----------
    results : dict of str to InferenceData, DataTree or LogEvidence
        Results of :func:`sample_ais`, or evidences read from them, by name; of the same data.
    prior_odds : dict of str to float, or sequence of float, optional
        Prior odds of the models, up to a common factor. Default: equal.

    Returns
    -------
    pandas.DataFrame
        One row for each model, the best first: ``rank``; ``log_evidence`` and its ``mcse``;
        ``log_bayes_factor`` of the model against the best, with its ``log_bayes_factor_mcse`` and
        the ends of its 95 % interval; posterior ``probability`` and the ends of its 95 %
        interval; the ``verdict`` on the evidence, as text. Everything logarithmic is in nats.
        ``attrs["verdict"]`` says whether the first two can be told apart at this precision and, if
        not, how many more particles that takes.

    Raises
    ------
    ValueError
        There are fewer than two models, they are of different observed data, one has no finite
        evidence, or the prior odds are not one positive number for each model.

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
    _check_same_data(results)
    log_odds = _log_odds(list(results), prior_odds)
    evidences = dict(sorted(_evidences(results).items(), key=lambda e: -e[1].log_evidence))
    best, second, *_ = evidences
    factors = [_difference(evidences, name, best) for name in evidences]
    table = pd.DataFrame(
        {
            "rank": np.arange(len(evidences)),
            "log_evidence": [e.log_evidence for e in evidences.values()],
            "mcse": [e.mcse for e in evidences.values()],
            "log_bayes_factor": [f.log_bayes_factor for f in factors],
            "log_bayes_factor_mcse": [0.0, *(f.mcse for f in factors[1:])],
            "log_bayes_factor_lower": [0.0, *(f.interval[0] for f in factors[1:])],
            "log_bayes_factor_upper": [0.0, *(f.interval[1] for f in factors[1:])],
            **_probabilities(evidences, log_odds),
            "verdict": [str(e.verdict) for e in evidences.values()],
        },
        index=pd.Index(list(evidences), name="model"),
    )
    table.attrs["verdict"] = str(_verdict(_difference(evidences, best, second), best, second))
    return table


def _evidences(results: Mapping[str, Container | LogEvidence]) -> dict[str, LogEvidence]:
    read = {n: r if isinstance(r, LogEvidence) else log_evidence(r) for n, r in results.items()}
    for name, evidence in read.items():
        if not np.isfinite([evidence.log_evidence, evidence.mcse]).all():
            raise ValueError(
                f"Model '{name}' has log evidence {evidence.log_evidence} +- {evidence.mcse}, "
                "expected finite numbers. Run it again with more steps or draws."
            )
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
    )


def _log_odds(
    names: list[str], odds: Mapping[str, float] | Sequence[float] | None
) -> dict[str, float]:
    """Return the log prior odds by name."""
    if odds is None:
        return dict.fromkeys(names, 0.0)
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


def _probabilities(
    evidences: Mapping[str, LogEvidence], log_odds: Mapping[str, float]
) -> dict[str, np.ndarray]:
    """Return the posterior model probabilities and the ends of their 95 % intervals."""
    log_z = np.array([e.log_evidence for e in evidences.values()])
    error = np.array([e.mcse for e in evidences.values()])
    log_prior = np.array([log_odds[name] for name in evidences])
    # A fixed seed: the interval is a function of the estimates.
    noise = np.random.default_rng(1995).normal(size=(_SIMULATIONS, len(log_z)))
    simulated = softmax(log_z + error * noise + log_prior, axis=1)
    lower, upper = np.quantile(simulated, [0.025, 0.975], axis=0)
    return {
        "probability": softmax(log_z + log_prior),
        "probability_lower": lower,
        "probability_upper": upper,
    }


def _verdict(factor: LogBayesFactor, best: str, second: str) -> Verdict:
    """Return whether the order of the first two models is certain."""
    if not factor.verdict.trusted:
        return factor.verdict
    d, error = factor.log_bayes_factor, factor.mcse
    if factor.interval[0] > 0 or error == 0:
        lead = f"{d:.2f} +- {error:.2g} nats ahead of '{second}'"
        return Verdict("trust", (f"'{best}' has the highest evidence, {lead}",))
    increase = np.ceil((norm.ppf(0.975) * error / d) ** 2) if d > 0 else np.inf
    remedy = "the two are practically equal"
    if increase < _MAX_INCREASE:
        remedy = f"about {increase:.0f} times as many particles would separate them"
    reason = (
        f"'{best}' and '{second}' cannot be told apart at this precision, log Bayes factor "
        f"{d:.3f} +- {error:.2g}"
    )
    return Verdict("more draws needed", (reason, remedy))


def _check_same_data(results: Mapping[str, Container | LogEvidence]) -> None:
    """Raise if two results are of different observed data."""
    data = {n: _observed(r) for n, r in results.items() if not isinstance(r, LogEvidence)}
    if len(data) < 2:
        return
    (first, expected), *others = data.items()
    for name, found in others:
        if not _same(found, expected):
            raise ValueError(
                f"Models '{first}' and '{name}' are of different observed data: "
                f"{_described(expected)} and {_described(found)}. Evidences can be compared only "
                "if the models explain the same data, in the same units."
            )


def _observed(result: Container) -> dict[str, np.ndarray]:
    if not has_group(result, "observed_data"):
        return {}
    data = group(result, "observed_data")
    return {str(name): np.asarray(value) for name, value in data.data_vars.items()}


def _same(a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray]) -> bool:
    """Return whether the same numbers were observed, whatever their names and shapes."""

    def flat(data: Mapping[str, np.ndarray]) -> np.ndarray:
        parts = sorted(np.ravel(v).astype(float).tolist() for v in data.values())
        return np.array([x for part in parts for x in part])

    x, y = flat(a), flat(b)
    return x.shape == y.shape and bool(np.array_equal(x, y, equal_nan=True))


def _described(data: Mapping[str, np.ndarray]) -> str:
    shapes = [f"'{name}' of shape {value.shape}" for name, value in data.items()]
    return ", ".join(shapes) or "none"

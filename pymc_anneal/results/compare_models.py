"""Comparison of models by their evidence, with the errors carried along.

For models ``m`` with evidences ``Z_m`` and prior odds ``o_m``,

    log BF_ab = log Z_a - log Z_b,        P(m | y) = o_m Z_m / sum_l o_l Z_l

(Kass & Raftery 1995). The estimates come from separate runs: their errors are independent. The
interval of a difference is put together from the intervals of its two sides (Zou & Donner 2008),

    lower = d - sqrt((a - a_lower)^2 + (b_upper - b)^2),    upper likewise,

which keeps their asymmetry; those of probabilities come from normal draws of the log evidences.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from scipy.special import softmax
from scipy.stats import norm

from pymc_anneal.base.arviz_compat import group, has_group
from pymc_anneal.evidence.estimate import LogEvidence
from pymc_anneal.results.log_evidence import log_evidence

_SIMULATIONS = 20_000


_MAX_WORK = 1000


_QUANTILE = norm.ppf(0.975)


@dataclass(frozen=True)
class LogBayesFactor:
    """Difference of two log evidences, in nats.

    Attributes
    ----------
    log_bayes_factor : float
        Positive where the first model is favoured.
    mcse : float
        Monte Carlo standard error.
    interval : tuple of float
        95 % interval.
    verdict : str
        ``"trust"``, or what the verdicts on the two evidences object to.
    """

    log_bayes_factor: float
    mcse: float
    interval: tuple[float, float]
    verdict: str

    def __repr__(self) -> str:
        """Return some lines to read."""
        low, high = self.interval
        return (
            f"log Bayes factor {self.log_bayes_factor:.3f} +- {self.mcse:.2g} nats "
            f"(95 % interval {low:.3f} to {high:.3f})\n"
            f"verdict: {self.verdict}"
        )


def log_bayes_factor(a: Any, b: Any) -> LogBayesFactor:
    """Return the log Bayes factor of two models, with its error.

    Parameters
    ----------
    a, b : InferenceData, DataTree or LogEvidence
        Results of :func:`sample_ais` on the same data, or evidences read from them.

    Returns
    -------
    LogBayesFactor
        ``log Z_a - log Z_b``.

    Raises
    ------
    ValueError
        The results are of different observed data, or hold no evidence.

    Examples
    --------
    >>> pymc_anneal.log_bayes_factor(idata_a, idata_b)
    """
    _check_same_data({"a": a, "b": b})
    return _difference(*_evidences({"a": a, "b": b}).items())


def compare(
    results: Mapping[str, Any],
    prior_odds: Mapping[str, float] | Sequence[float] | None = None,
) -> pd.DataFrame:
    """Rank models by their evidence.

    Parameters
    ----------
    results : dict of str to InferenceData, DataTree or LogEvidence
        Results of :func:`sample_ais`, or evidences read from them, by name; of the same data.
    prior_odds : dict of str to float, or sequence of float, optional
        Prior odds of the models, in any unit. Default: equal.

    Returns
    -------
    pandas.DataFrame
        One row for each model, the best first: ``rank``; ``log_evidence`` and its ``mcse``;
        ``log_bayes_factor`` of the model against the best, with its ``log_bayes_factor_mcse`` and
        the ends of its 95 % interval; posterior ``probability`` and the ends of its 95 %
        interval; the ``verdict`` on the evidence. Everything logarithmic is in nats. The attribute
        ``attrs["verdict"]`` says whether the first two can be told apart at this precision, and by
        how much the work has to grow if not.

    Raises
    ------
    ValueError
        There are fewer than two models, they are of different observed data, one holds no finite
        evidence, or the prior odds make no sense.

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
    odds = _log_odds(list(results), prior_odds)
    evidences = dict(sorted(_evidences(results).items(), key=lambda e: -e[1].log_evidence))
    best = next(iter(evidences.items()))
    factors = [_difference(item, best) for item in evidences.items()]
    probability = _probabilities(list(evidences.values()), np.array([odds[n] for n in evidences]))
    table = pd.DataFrame(
        {
            "rank": np.arange(len(evidences)),
            "log_evidence": [e.log_evidence for e in evidences.values()],
            "mcse": [e.mcse for e in evidences.values()],
            "log_bayes_factor": [f.log_bayes_factor for f in factors],
            "log_bayes_factor_mcse": [0.0, *(f.mcse for f in factors[1:])],
            "log_bayes_factor_lower": [0.0, *(f.interval[0] for f in factors[1:])],
            "log_bayes_factor_upper": [0.0, *(f.interval[1] for f in factors[1:])],
            **probability,
            "verdict": [e.verdict for e in evidences.values()],
        },
        index=pd.Index(list(evidences), name="model"),
    )
    table.attrs["verdict"] = _verdict(*list(evidences.items())[:2])
    return table


def _evidences(results: Mapping[str, Any]) -> dict[str, LogEvidence]:
    read = {n: r if isinstance(r, LogEvidence) else log_evidence(r) for n, r in results.items()}
    for name, evidence in read.items():
        if not np.isfinite([evidence.log_evidence, evidence.mcse]).all():
            raise ValueError(
                f"Model '{name}' has log evidence {evidence.log_evidence} +- {evidence.mcse}, "
                "expected finite numbers. Run it again with more steps or draws."
            )
    return read


def _difference(first: tuple[str, LogEvidence], second: tuple[str, LogEvidence]) -> LogBayesFactor:
    (_, a), (_, b) = first, second
    d = a.log_evidence - b.log_evidence
    down = np.hypot(a.log_evidence - a.interval[0], b.interval[1] - b.log_evidence)
    up = np.hypot(a.interval[1] - a.log_evidence, b.log_evidence - b.interval[0])
    doubts = [f"{name}: {e.verdict}" for name, e in (first, second) if e.verdict != "trust"]
    return LogBayesFactor(
        log_bayes_factor=d,
        mcse=float(np.hypot(a.mcse, b.mcse)),
        interval=(float(d - down), float(d + up)),
        verdict="; ".join(doubts) or "trust",
    )


def _log_odds(names: list[str], odds: Mapping[str, float] | Sequence[float] | None) -> dict:
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


def _probabilities(evidences: Sequence[LogEvidence], log_odds: np.ndarray) -> dict:
    """Posterior model probabilities, and the quantiles of their error."""
    log_z = np.array([e.log_evidence for e in evidences])
    error = np.array([e.mcse for e in evidences])
    # A fixed seed: the interval is a function of the estimates.
    noise = np.random.default_rng(1995).normal(size=(_SIMULATIONS, len(log_z)))
    simulated = softmax(log_z + error * noise + log_odds, axis=1)
    lower, upper = np.quantile(simulated, [0.025, 0.975], axis=0)
    return {
        "probability": softmax(log_z + log_odds),
        "probability_lower": lower,
        "probability_upper": upper,
    }


def _verdict(best: tuple[str, LogEvidence], second: tuple[str, LogEvidence]) -> str:
    """Say whether the order of the first two models is certain."""
    factor = _difference(best, second)
    if factor.verdict != "trust":
        return f"the evidences have to be trusted first: {factor.verdict}"
    d, error = factor.log_bayes_factor, factor.mcse
    if factor.interval[0] > 0 or error == 0:
        return (
            f"'{best[0]}' has the highest evidence, {d:.2f} +- {error:.2g} nats before "
            f"'{second[0]}'"
        )
    work = np.ceil((_QUANTILE * error / d) ** 2) if d > 0 else np.inf
    hope = "they are as good as equal"
    if work < _MAX_WORK:
        hope = f"about {work:.0f} times the work would tell"
    return (
        f"'{best[0]}' and '{second[0]}' cannot be told apart at this precision: the log Bayes "
        f"factor is {d:.3f} +- {error:.2g}; {hope}"
    )


def _check_same_data(results: Mapping[str, Any]) -> None:
    """Raise where two results are of different observed data."""
    data = {n: _observed(r) for n, r in results.items() if not isinstance(r, LogEvidence)}
    if len(data) < 2:
        return
    (first, expected), *others = data.items()
    for name, found in others:
        if not _same(found, expected):
            raise ValueError(
                f"Models '{first}' and '{name}' are of different observed data: "
                f"{_described(expected)} and {_described(found)}. Evidences can be compared only "
                "where the models explain the same data, in the same units."
            )


def _observed(result: Any) -> dict[str, np.ndarray]:
    if not has_group(result, "observed_data"):
        return {}
    data = group(result, "observed_data")
    return {str(name): np.asarray(value) for name, value in data.data_vars.items()}


def _same(a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray]) -> bool:
    """Whether the same numbers were observed, under whatever names and in whatever shapes."""

    def flat(data: Mapping[str, np.ndarray]) -> np.ndarray:
        parts = sorted(np.ravel(v).astype(float).tolist() for v in data.values())
        return np.array([x for part in parts for x in part])

    x, y = flat(a), flat(b)
    return x.shape == y.shape and bool(np.array_equal(x, y, equal_nan=True))


def _described(data: Mapping[str, np.ndarray]) -> str:
    shapes = [f"'{name}' of shape {value.shape}" for name, value in data.items()]
    return ", ".join(shapes) or "none"

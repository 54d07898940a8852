"""The record of a log Bayes factor, and how it reads.

``log BF_ab = log Z_a - log Z_b``: its exponential multiplies the prior odds of ``a`` against ``b``
(Kass & Raftery 1995). In words the favoured model comes first, so that the sign cannot be misread.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from pymc_anneal.base.html import html_table, html_verdict, round_to_error
from pymc_anneal.evidence.verdict import Verdict
from pymc_anneal.results.bayes_factor_words import jeffreys, kass_raftery

Scale: TypeAlias = Literal["kass_raftery", "jeffreys"]
_SCALES = {"kass_raftery": kass_raftery, "jeffreys": jeffreys}

# Largest log10 of a factor that is written out: 4525 : 1, but 10^12.6 : 1.
_WRITTEN_OUT = 6.0


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
    barrier : float
        Length of the direct path between the models; NaN if the estimate used none.
    evaluations : int
        Evaluations of gradient or density, each of one model at one position; 0 if they were not
        counted.
    models : tuple of str
        Names of the first and the second model.
    """

    log_bayes_factor: float
    mcse: float
    interval: tuple[float, float]
    verdict: Verdict
    barrier: float = float("nan")
    evaluations: int = 0
    models: tuple[str, str] = ("the first model", "the second model")

    @property
    def bayes_factor(self) -> float:
        """Bayes factor of the first model against the second; infinite above 1e308."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.log_bayes_factor))

    @property
    def log10(self) -> float:
        """Logarithm of the Bayes factor to the base 10."""
        return float(self.log_bayes_factor / np.log(10))

    @property
    def favoured(self) -> str:
        """Which model the data favour and by how much, in words, with the 95 % interval."""
        return describe_factor(self.log_bayes_factor, self.interval, self.models)

    def words(self, scale: Scale = "kass_raftery") -> str:
        """Return the word of a scale for the factor; two, if the ends of its interval differ.

        Parameters
        ----------
        scale : {"kass_raftery", "jeffreys"}
            Kass & Raftery (1995), section 3.2, or Jeffreys (1961), appendix B.

        Raises
        ------
        ValueError
            There is no such scale.
        """
        if scale not in _SCALES:
            raise ValueError(f"Unknown `scale` {scale!r}; expected one of {sorted(_SCALES)}.")
        return words_of_interval(scale, self.interval)

    def __repr__(self) -> str:
        """Return a summary of a few lines."""
        a, b = self.models
        if self._is_known:
            value = partial(round_to_error, error=self.mcse)
            low, high = self.interval
            found = (
                f"{value(self.log_bayes_factor)} +- {self.mcse:.2g} nats "
                f"(95 % interval {value(low)} to {value(high)}), {a} against {b}\n{self.favoured}"
            )
        else:
            found = f"{self.log_bayes_factor:.2f} nats, error not known, {a} against {b}"
        return f"log Bayes factor {found}\n{self._cost()}verdict: {self.verdict}"

    @property
    def _is_known(self) -> bool:
        return self.verdict.status != "do not trust"

    def _cost(self) -> str:
        if not self.evaluations:
            return ""
        barrier = "" if np.isnan(self.barrier) else f"barrier {self.barrier:.1f}, "
        return f"{barrier}{self.evaluations} evaluations\n"

    def _repr_html_(self) -> str:
        """Return a table for notebooks, with the verdict in colour."""
        return html_table(
            [
                ("models", f"{self.models[0]} against {self.models[1]}"),
                *self._html_estimate(),
                *([] if np.isnan(self.barrier) else [("barrier", f"{self.barrier:.1f}")]),
                *([("evaluations", str(self.evaluations))] if self.evaluations else []),
                ("verdict", html_verdict(self.verdict.status, self.verdict.reasons)),
            ]
        )

    def _html_estimate(self) -> list[tuple[str, str]]:
        if not self._is_known:
            return [("log Bayes factor", f"{self.log_bayes_factor:.2f} nats, error not known")]
        value = partial(round_to_error, error=self.mcse)
        low, high = self.interval
        return [
            ("log Bayes factor", f"{value(self.log_bayes_factor)} ± {self.mcse:.2g} nats"),
            ("95 % interval", f"{value(low)} to {value(high)}"),
            ("in words", self.favoured),
        ]


def describe_factor(
    log_factor: float, interval: tuple[float, float], models: tuple[str, str]
) -> str:
    """Say which of two models the data favour and by how much.

    Parameters
    ----------
    log_factor : float
        Log Bayes factor of the first model against the second, in nats.
    interval : tuple of float
        Its 95 % interval.
    models : tuple of str

    Returns
    -------
    str
        The favoured model comes first; where the interval contains zero, neither is favoured.
    """
    if log_factor < 0:
        return describe_factor(-log_factor, (-interval[1], -interval[0]), models[::-1])
    range_ = f"{factor_text(log_factor)} : 1 (95 % interval {factor_range(interval)})"
    if interval[0] <= 0 <= interval[1] and interval[0] < interval[1]:
        return f"the data favour neither: {models[0]} against {models[1]} {range_}"
    return f"the data favour {models[0]} over {models[1]} by {range_}"


def factor_range(interval: tuple[float, float]) -> str:
    """Write the interval of a log Bayes factor as one of the factor."""
    low, high = interval
    digits = 3
    # More digits where the ends would look the same: 1.586 to 1.594, 10^7.37 to 10^7.38.
    while digits < 6 and factor_text(low, digits) == factor_text(high, digits):
        digits += 1
    return f"{factor_text(low, digits)} to {factor_text(high, digits)}"


def factor_text(log_factor: float, digits: int = 3) -> str:
    """Write a Bayes factor, given as its log in nats, with some significant digits."""
    log10 = log_factor / np.log(10)
    if np.isnan(log10):
        return "unknown"
    if not np.isfinite(log10):
        return "0" if log10 < 0 else "infinity"
    if abs(log10) >= _WRITTEN_OUT:
        return f"10^{log10:.{max(digits - 2, 1)}f}"
    decimals = max(digits - 1 - int(np.floor(log10)), 0)
    return f"{np.exp(log_factor):.{decimals}f}"


def words_of_interval(scale: Scale, interval: tuple[float, float]) -> str:
    """Return the word of a scale for an interval of log factors; both, if its ends differ."""
    low, high = sorted(abs(end) for end in interval)
    if interval[0] < 0 < interval[1]:
        low = 0.0
    return " to ".join(dict.fromkeys(_SCALES[scale](end) for end in (low, high)))

"""The table of compared models: a narrow one to read, and all of its columns on request.

A model whose evidence is not trusted has no rank. It is listed below the others, because a run that
fails reports too little evidence: its place among them is not known, nor is any probability.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from scipy.special import ndtr

from pymc_anneal.base.html import html_status, html_table, html_verdict, round_to_error
from pymc_anneal.evidence.verdict import Verdict

# Number of decimals; "auto": text is rounded to its errors; "none": nothing is.
RoundTo: TypeAlias = int | Literal["auto", "none", "None"]

_HEADER = ("model", "rank", "log evidence", "error", "log BF", "probability", "verdict")
# Columns of a comparison with ``decompose=True``.
_PARTS = ("fit", "information", "dimension", "log_prior_volume")
# Distance from 1 below which a probability is not written out.
_LEAST_REST = 1e-6


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """Models ranked by their evidence; the result of :func:`compare`.

    Attributes
    ----------
    details : pandas.DataFrame
        One row for each model, the best first: ``rank`` from 0 (missing if the evidence is not
        trusted); ``log_evidence`` and its ``mcse``; ``log_bayes_factor`` of the model against the
        reference, with its ``log_bayes_factor_mcse`` and the ends of its 95 % interval,
        ``log_bayes_factor_lower`` and ``log_bayes_factor_upper``; posterior ``probability`` and the
        ends of its 95 % interval, ``probability_lower`` and ``probability_upper``; ``verdict``, the
        status of the evidence, ``reasons`` for it, and ``examined``, whether anything looked for
        what the run may have missed. With ``decompose=True`` also ``fit``, the posterior mean of
        the log likelihood, ``information``, the divergence of the posterior from the prior, their
        errors ``fit_mcse`` and ``information_mcse``, ``dimension``, the number of free parameters,
        and ``log_prior_volume``, minus the posterior mean of the log prior density in unconstrained
        coordinates: ``log_evidence = fit - information``; and ``dependence``, see `occam`.
        Everything logarithmic is in nats.
    verdict : Verdict
        Which model is ahead, or that the data favour neither of the first two; ``"more draws
        needed"`` if the precision does not tell which, with the number of particles that would;
        ``"do not trust"`` if any evidence is not trusted.
    reference : str
        The model against which Bayes factors are given.
    round_to : int, "auto" or "none"
        Decimals of tables and text.
    occam : pandas.DataFrame, optional
        With ``decompose=True``, a row for each model and free variable: its ``dimension``; the
        ``log_prior_volume``, minus the posterior mean of its log prior density given its parents;
        the ``log_posterior_volume``, the entropy of a normal density with the covariance of its
        posterior; and their difference ``log_occam`` with its ``log_occam_mcse``, in nats: what the
        variable adds to the log evidence for being free. It is exact for normal posteriors, and
        otherwise too large; NaN for discrete variables. Over the variables of a model, ``-
        log_occam`` adds up to ``information - dependence``, the information that they share.
    """

    details: pd.DataFrame
    verdict: Verdict
    reference: str
    round_to: RoundTo = "auto"
    occam: pd.DataFrame | None = None

    @property
    def table(self) -> pd.DataFrame:
        """Rank, log evidence, error, log Bayes factor, probability and verdict of each model."""
        narrow = ["rank", "log_evidence", "mcse", "log_bayes_factor", "probability", "verdict"]
        return self._rounded(self.details[[*narrow[:-1], *self._parts, narrow[-1]]])

    @property
    def arviz(self) -> pd.DataFrame:
        """The table with the names of :func:`arviz.compare`, for code that was written for it.

        ``rank``, ``dse``, ``p_worse`` (``p_better`` if the reference is not the best model),
        ``se``, ``weight`` and ``warning`` are as there, with the log evidence in the place of the
        expected log predictive density: ``log_evidence`` for ``elpd``, ``log_evidence_diff`` for
        ``elpd_diff``, in nats. A weight is the posterior probability of the model, and ``p_worse``
        the probability, under the Monte Carlo errors alone, that its evidence is below that of the
        reference; ``warning`` is whether its verdict is not "trust".
        """
        details, best = self.details, self.details.index[0]
        difference, error = details["log_bayes_factor"], details["log_bayes_factor_mcse"]
        name, sign = ("p_worse", -1) if self.reference == best else ("p_better", 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            probability = ndtr(sign * difference / error)
        columns = {
            "rank": details["rank"],
            "log_evidence_diff": difference,
            "dse": error,
            name: probability.where(details.index != self.reference),
            "log_evidence": details["log_evidence"],
            "se": details["mcse"],
            "weight": details["probability"],
            "warning": details["verdict"] != "trust",
        }
        return self._rounded(pd.DataFrame(columns))

    def _rounded(self, table: pd.DataFrame) -> pd.DataFrame:
        """Round the columns of real numbers, if decimals are asked for."""
        if not isinstance(self.round_to, int):
            return table
        real = table.select_dtypes("float").columns
        return table.assign(**{str(name): table[name].round(self.round_to) for name in real})

    @property
    def _parts(self) -> list[str]:
        return [name for name in _PARTS if name in self.details]

    @property
    def _header(self) -> list[str]:
        best = self.reference == self.details.index[0]
        names = [*_HEADER[:-1], *(part.replace("_", " ") for part in self._parts), _HEADER[-1]]
        return names if best else [_against(name, self.reference) for name in names]

    def __repr__(self) -> str:
        """Return the narrow table as text, and the verdict."""
        cells = pd.DataFrame(
            self._cells(lambda status, examined: status), columns=self._header
        ).set_index("model")
        return f"{cells.to_string()}\n\nverdict: {self.verdict}"

    def _repr_html_(self) -> str:
        """Return the narrow table for notebooks, with the verdicts in colour."""
        table = html_table(self._cells(html_status), header=self._header)
        return f"{table}<p>{html_verdict(self.verdict.status, self.verdict.reasons)}</p>"

    def _cells(self, status: Callable[[str, bool], str]) -> list[tuple[str, ...]]:
        """Return the narrow table as text, its numbers rounded to their errors or as asked for.

        One evidence that is not trusted leaves all probabilities unknown: it stands in their sum.
        """
        write, known = _writer(self.round_to), self.details["rank"].notna()
        trusted = bool(known[self.reference]), bool(known.all())
        return [
            (
                str(name),
                *(_known(row, write, *trusted) if known[name] else _unknown(row, write)),
                *(_part(row, part, write) for part in self._parts),
                status(row["verdict"], row["examined"]),
            )
            for name, row in self.details.iterrows()
        ]


# From a number and its error to text.
_Write: TypeAlias = Callable[[float, float], str]


def _writer(round_to: RoundTo) -> _Write:
    """Return how numbers become text."""
    if round_to == "auto":
        return round_to_error
    if isinstance(round_to, int):
        return lambda value, error: f"{value:.{round_to}f}"
    return lambda value, error: repr(float(value))


def _against(name: str, reference: str) -> str:
    return f"log BF against {reference}" if name == "log BF" else name


def _known(row: pd.Series, write: _Write, against: bool, every: bool) -> tuple[str, ...]:
    """Return the cells of an evidence that is trusted.

    `against` and `every`: whether that of the reference is, and whether all are.
    """
    factor = write(row["log_bayes_factor"], row["log_bayes_factor_mcse"])
    return (
        str(row["rank"]),
        write(row["log_evidence"], row["mcse"]),
        _write_error(row["mcse"], write),
        factor if against else "-",
        _write_probability(row["probability"], write) if every else "-",
    )


def _write_error(error: float, write: _Write) -> str:
    return f"{error:.2g}" if write is round_to_error else write(error, error)


def probability_text(value: float) -> str:
    """Write a probability so that one below 1 does not look like 1: 0.9998."""
    rest = 1.0 - value
    if not 0 < rest < 0.01:
        return f"{value:.3g}"
    if rest < _LEAST_REST:
        return f"> {1 - _LEAST_REST:g}"
    return f"{value:.{-int(np.floor(np.log10(rest)))}f}"


def _write_probability(value: float, write: _Write) -> str:
    return probability_text(value) if write is round_to_error else write(value, 0.0)


def _unknown(row: pd.Series, write: _Write) -> tuple[str, ...]:
    """Return the cells of an evidence that is not trusted: its error and place are not known."""
    value = row["log_evidence"]
    return "-", f"{value:.2f}" if write is round_to_error else write(value, 0.0), "-", "-", "-"


def _part(row: pd.Series, name: str, write: _Write) -> str:
    """Return the cell of a part of the evidence."""
    error = f"{name}_mcse"
    return write(row[name], row[error]) if error in row else str(row[name])

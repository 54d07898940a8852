"""The table of compared models: a narrow one to read, and all of its columns on request.

A model whose evidence is not trusted has no rank. It is listed below the others, because a run that
fails reports too little evidence: its place among them is not known, nor is any probability.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from pymc_anneal.base.html import (
    html_status,
    html_table,
    html_verdict,
    probability_text,
    round_to_error,
)
from pymc_anneal.evidence.verdict import Verdict

_HEADER = ("model", "rank", "log evidence", "error", "log BF", "probability", "verdict")
# Columns of a comparison with ``decompose=True``.
_PARTS = ("fit", "information", "dimension")


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """Models ranked by their evidence; the result of :func:`compare`.

    Attributes
    ----------
    details : pandas.DataFrame
        One row for each model, the best first: ``rank`` from 0 (missing if the evidence is not
        trusted); ``log_evidence`` and its ``mcse``; ``log_bayes_factor`` of the model against the
        first row, with its ``log_bayes_factor_mcse`` and the ends of its 95 % interval,
        ``log_bayes_factor_lower`` and ``log_bayes_factor_upper``; posterior ``probability`` and the
        ends of its 95 % interval, ``probability_lower`` and ``probability_upper``; ``verdict``, the
        status of the evidence, ``reasons`` for it, and ``examined``, whether anything looked for
        what the run may have missed. With ``decompose=True`` also ``fit``, the posterior mean of
        the log likelihood, ``information``, the divergence of the posterior from the prior, their
        errors ``fit_mcse`` and ``information_mcse``, and ``dimension``, the number of free
        parameters: ``log_evidence = fit - information``. Everything logarithmic is in nats.
    verdict : Verdict
        Which model is ahead, or that the data favour neither of the first two; ``"more draws
        needed"`` if the precision does not tell which, with the number of particles that would;
        ``"do not trust"`` if any evidence is not trusted.
    """

    details: pd.DataFrame
    verdict: Verdict

    @property
    def table(self) -> pd.DataFrame:
        """Rank, log evidence, error, log Bayes factor, probability and verdict of each model."""
        narrow = ["rank", "log_evidence", "mcse", "log_bayes_factor", "probability", "verdict"]
        return self.details[[*narrow[:-1], *self._parts, narrow[-1]]]

    @property
    def _parts(self) -> list[str]:
        return [name for name in _PARTS if name in self.details]

    @property
    def _header(self) -> list[str]:
        return [*_HEADER[:-1], *self._parts, _HEADER[-1]]

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
        """Return the narrow table as text, its numbers rounded to their errors.

        One evidence that is not trusted leaves all probabilities unknown: it stands in their sum.
        """
        trusted = not self.details["rank"].isna().any()
        return [
            (
                str(name),
                *(_unknown(row) if pd.isna(row["rank"]) else _known(row, trusted)),
                *(_part(row, name) for name in self._parts),
                status(row["verdict"], row["examined"]),
            )
            for name, row in self.details.iterrows()
        ]


def _known(row: pd.Series, trusted: bool) -> tuple[str, ...]:
    return (
        str(row["rank"]),
        round_to_error(row["log_evidence"], row["mcse"]),
        f"{row['mcse']:.2g}",
        round_to_error(row["log_bayes_factor"], row["log_bayes_factor_mcse"]),
        probability_text(row["probability"]) if trusted else "-",
    )


def _unknown(row: pd.Series) -> tuple[str, ...]:
    """Return the cells of an evidence that is not trusted: its error and place are not known."""
    return "-", f"{row['log_evidence']:.2f}", "-", "-", "-"


def _part(row: pd.Series, name: str) -> str:
    """Return the cell of a part of the evidence."""
    error = f"{name}_mcse"
    return round_to_error(row[name], row[error]) if error in row else str(row[name])

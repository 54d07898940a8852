"""The record of Bayes factors over prior scales: a table, and a row for each effect."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from scipy.special import logsumexp

from pymc_anneal.base.html import html_table
from pymc_anneal.results.bayes_factor import factor_text

_HEADER = ("effect", "largest BF", "at scale", "smallest BF", "at scale", "averaged BF", "trusted")


@dataclass(frozen=True, eq=False)
class Robustness:
    """Bayes factors of effects against their nulls, over prior scales; of :func:`robustness`.

    Attributes
    ----------
    table : pandas.DataFrame
        Indexed by ``variable``, the effect, and ``prior``, the scale: ``log_bayes_factor`` of the
        effect against its null with ``log_bayes_factor_mcse`` and the ends of its 95 % interval,
        ``log_bayes_factor_lower`` and ``log_bayes_factor_upper``, in nats; ``draws_at``, the scale
        of the run whose draws gave it; and the ``verdict`` as text.
    own : dict of str to float
        The scale of each effect in the model.
    """

    table: pd.DataFrame
    own: dict[str, float]

    @cached_property
    def summary(self) -> pd.DataFrame:
        """One row for each effect: largest and smallest log Bayes factor, where, and the average.

        ``log_averaged`` is the log of the mean Bayes factor over the scales, each as probable as
        any other; its error ``log_averaged_mcse`` is the most that those of the scales allow.
        ``trusted`` counts the scales whose verdict is "trust"; the others are left out.
        """
        return pd.DataFrame(
            {str(name): _summarise(rows) for name, rows in self.table.groupby("variable")}
        ).T[["largest", "largest_at", "smallest", "smallest_at", *_AVERAGED, "trusted", "scales"]]

    def __repr__(self) -> str:
        """Return the summary as text."""
        frame = pd.DataFrame(self._cells(), columns=_HEADER).set_index("effect")
        return f"Bayes factors of effects against their nulls, over prior scales\n{frame}"

    def _repr_html_(self) -> str:
        """Return the summary for notebooks."""
        return html_table(self._cells(), header=_HEADER)

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                str(name),
                factor_text(row["largest"]),
                f"{row['largest_at']:.3g}",
                factor_text(row["smallest"]),
                f"{row['smallest_at']:.3g}",
                factor_text(row["log_averaged"]),
                f"{row['trusted']:.0f} of {row['scales']:.0f}",
            )
            for name, row in self.summary.iterrows()
        ]


_AVERAGED = ("log_averaged", "log_averaged_mcse")


def _summarise(rows: pd.DataFrame) -> dict[str, float]:
    """Summarise the rows of an effect; those that are not trusted are left out."""
    trusted = rows[rows["verdict"] == "trust"]
    value, scale = trusted["log_bayes_factor"], trusted.index.get_level_values("prior")
    if not len(trusted):
        empty = dict.fromkeys(["largest", "largest_at", "smallest", "smallest_at", *_AVERAGED])
        return {**dict.fromkeys(empty, np.nan), "trusted": 0, "scales": len(rows)}
    weight = np.exp(value - logsumexp(value))
    return {
        "largest": value.max(),
        "largest_at": scale[value.argmax()],
        "smallest": value.min(),
        "smallest_at": scale[value.argmin()],
        "log_averaged": float(logsumexp(value) - np.log(len(value))),
        # The errors may all come from the same draws: they add up.
        "log_averaged_mcse": float(weight @ trusted["log_bayes_factor_mcse"]),
        "trusted": len(trusted),
        "scales": len(rows),
    }

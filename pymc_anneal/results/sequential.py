"""Records of Bayes factors by the number of data: of one study, and of simulated ones."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from pymc_anneal.base.html import html_table
from pymc_anneal.results.bayes_factor import factor_range, factor_text


@dataclass(frozen=True, eq=False)
class Sequential:
    """The Bayes factor of two models after each batch of data; of :func:`sequential`.

    Attributes
    ----------
    table : pandas.DataFrame
        Indexed by ``look``, from 1: ``rows``, the number of data so far; ``log_bayes_factor`` of
        the first model against the second with ``mcse`` and the ends ``lower`` and ``upper`` of its
        95 % interval, in nats; the two log evidences by name; and the ``verdict`` as text.
    stop : float
        Bayes factor at which the study ends, in either direction.
    models : tuple of str
        Names of the two models.
    """

    table: pd.DataFrame
    stop: float
    models: tuple[str, str]

    @property
    def favoured(self) -> str:
        """The model whose threshold was reached; "" if none was."""
        return reached(self.table.iloc[-1], self.stop, self.models)

    def __repr__(self) -> str:
        """Return the table as text, and what was reached."""
        frame = pd.DataFrame(self._cells(), columns=self._header).set_index("look")
        return f"{frame.to_string()}\n\n{self._sentence()}"

    def _repr_html_(self) -> str:
        """Return the table for notebooks."""
        return html_table(self._cells(), header=self._header) + f"<p>{self._sentence()}</p>"

    @property
    def _header(self) -> tuple[str, ...]:
        return ("look", "rows", f"BF {' : '.join(self.models)}", "95 % interval", "verdict")

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                str(look),
                str(row["rows"]),
                factor_text(row["log_bayes_factor"]),
                factor_range((row["lower"], row["upper"])),
                row["verdict"],
            )
            for look, row in self.table.iterrows()
        ]

    def _sentence(self) -> str:
        last = self.table.iloc[-1]
        if not self.favoured:
            return f"neither {self.stop:g} : 1 nor 1 : {self.stop:g} after {last['rows']} rows"
        return f"{self.stop:g} : 1 for {self.favoured} after {last['rows']} rows"


def reached(row: pd.Series, stop: float, models: tuple[str, str]) -> str:
    """Return the model whose threshold a Bayes factor has passed with its whole interval."""
    if not str(row["verdict"]).startswith("trust"):
        return ""
    if row["lower"] >= np.log(stop):
        return models[0]
    return models[1] if row["upper"] <= -np.log(stop) else ""


@dataclass(frozen=True, eq=False)
class Design:
    """How often simulated studies reach a Bayes factor, by their size; of :func:`design`.

    Attributes
    ----------
    log_bayes_factor : ndarray, shape (draws, looks)
        Of the first model against the second, of each simulated study at each size, in nats.
    mcse : ndarray, shape (draws, looks)
        Their Monte Carlo errors.
    n : ndarray of int, shape (looks,)
        The sizes.
    threshold : float
    models : tuple of str
    untrusted : int
        Number of Bayes factors whose verdict is "do not trust"; they are counted as they are.
    """

    log_bayes_factor: np.ndarray
    mcse: np.ndarray
    n: np.ndarray
    threshold: float
    models: tuple[str, str]
    untrusted: int = 0

    @property
    def table(self) -> pd.DataFrame:
        """Shares of studies, one row for each size.

        Of those that look once, at this size, the share that reaches the threshold for each model
        and for neither; of those that look at each size and stop, the share that has reached it by
        this size, ``by_n`` for each model. The standard error of a share ``p`` is
        ``sqrt(p (1 - p) / draws)``.
        """
        passed = {
            self.models[0]: self.log_bayes_factor >= np.log(self.threshold),
            self.models[1]: self.log_bayes_factor <= -np.log(self.threshold),
        }
        first, second = passed.values()
        columns = {name: hit.mean(axis=0) for name, hit in passed.items()}
        columns["neither"] = 1 - sum(columns.values())
        for name, own, other in zip(passed, (first, second), (second, first), strict=True):
            columns[f"{name}, by n"] = _first(own, other).mean(axis=0)
        return pd.DataFrame(columns, index=pd.Index(self.n, name="n"))

    def __repr__(self) -> str:
        """Return the table as text."""
        return f"{self._sentence()}\n{self.table.round(3).to_string()}"

    def _repr_html_(self) -> str:
        """Return the table for notebooks."""
        rows = [(str(n), *(f"{v:.3f}" for v in row)) for n, row in self.table.iterrows()]
        return html_table(rows, header=("n", *self.table.columns)) + f"<p>{self._sentence()}</p>"

    def _sentence(self) -> str:
        doubt = f"; {self.untrusted} Bayes factors are not trusted" if self.untrusted else ""
        return (
            f"share of {len(self.log_bayes_factor)} simulated studies with a Bayes factor of "
            f"{self.threshold:g} : 1 or more{doubt}"
        )


def _first(own: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Whether studies, shape ``(draws, looks)``, have passed a threshold and no other before."""
    beaten = np.cumsum(other, axis=1) > 0
    return np.asarray(np.cumsum(own & ~beaten, axis=1) > 0)

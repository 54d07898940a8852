"""Plot of the evidence against the prior."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pymc_anneal.results.plot_axes import BAND, Figsize, make_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_prior_sensitivity(
    table: pd.DataFrame,
    *,
    axes: "Iterable[Axes] | None" = None,
    figsize: Figsize | None = None,
) -> np.ndarray:
    """Plot a table of :func:`prior_sensitivity`, with one panel for each variable.

    Parameters
    ----------
    table : pandas.DataFrame
        Result of :func:`prior_sensitivity`.
    axes : array of matplotlib Axes, optional
        One for each variable.
    figsize : (float, float), optional
        Width and height in inches.

    Returns
    -------
    ndarray of matplotlib Axes
        Log Bayes factors if the table has them, otherwise changes of the log evidence, with 95 %
        intervals, against the values or labels of the prior. Estimates that are not trusted are
        hollow.

    Raises
    ------
    ValueError
        The number of axes is wrong.
    """
    variables = table.index.unique("variable")
    panels = make_axes(axes, figsize or (4.8 * len(variables), 3.6), len(variables))
    for axis, variable in zip(panels, variables, strict=True):
        _draw(axis, table.loc[variable], str(variable))
    return panels


def _draw(axis: "Axes", rows: pd.DataFrame, variable: str) -> None:
    factor = "log_bayes_factor" in rows
    value, low, high = (
        rows[column].to_numpy()
        for column in (
            ("log_bayes_factor", "log_bayes_factor_lower", "log_bayes_factor_upper")
            if factor
            else ("log_ratio", "lower", "upper")
        )
    )
    numbers = all(isinstance(label, int | float) for label in rows.index)
    x = np.array(rows.index, dtype=float) if numbers else np.arange(len(rows), dtype=float)
    trusted = rows["verdict"].to_numpy() == "trust"
    order = np.argsort(x)
    if numbers:
        axis.fill_between(x[order], low[order], high[order], color="C0", alpha=BAND, lw=0)
        axis.plot(x[order], value[order], color="C0")
    else:
        axis.errorbar(x, value, [value - low, high - value], fmt="none", color="C0", capsize=3)
        axis.set_xticks(x, [str(label) for label in rows.index])
    axis.plot(x[trusted], value[trusted], "o", color="C0")
    axis.plot(x[~trusted], value[~trusted], "o", color="0.5", mfc="white", label="do not trust")
    axis.axhline(0, color="0.6", lw=0.8, zorder=0)
    if not trusted.all():
        axis.legend()
    ylabel = "log Bayes factor (nats)" if factor else "change of the log evidence (nats)"
    axis.set(xlabel=f"prior: {variable}", ylabel=ylabel)

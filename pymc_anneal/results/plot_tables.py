"""Plots of tables: compared models, and summaries of power posteriors."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from scipy.stats import norm

from pymc_anneal.base.arviz_compat import Container
from pymc_anneal.results.plot_axes import BAND, Figsize, make_axes, make_axis
from pymc_anneal.results.sensitivity import power_sensitivity

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_compare(
    table: pd.DataFrame, *, ax: "Axes | None" = None, figsize: Figsize | None = None
) -> "Axes":
    """Plot a table of :func:`compare`: log Bayes factors against the best, and probabilities.

    Parameters
    ----------
    table : pandas.DataFrame
        Result of :func:`compare`.
    ax : matplotlib Axes, optional
    figsize : (float, float), optional
        Width and height in inches.

    Returns
    -------
    matplotlib Axes
        The best model is on top, with the 95 % interval of its own log evidence.
    """
    axis = make_axis(ax, figsize or (6.4, 1.2 + 0.5 * len(table)))
    row = np.arange(len(table))[::-1]
    value = table["log_bayes_factor"].to_numpy()
    low, high = (table[f"log_bayes_factor_{e}"].to_numpy() for e in ("lower", "upper"))
    first = norm.ppf(0.975) * table["mcse"].to_numpy()[0]
    errors = [np.r_[first, (value - low)[1:]], np.r_[first, (high - value)[1:]]]
    axis.errorbar(value, row, xerr=errors, fmt="o", color="C0", capsize=3)
    axis.axvline(0, color="0.6", lw=0.8, zorder=0)
    labels = [f"{n}\nP = {p:.3g}" for n, p in zip(table.index, table["probability"], strict=True)]
    axis.set_yticks(row, labels)
    axis.set(xlabel="log Bayes factor against the best (nats)", ylim=(-0.6, len(table) - 0.4))
    return axis


def plot_sensitivity(
    data: Container,
    var_names: Sequence[str] | str | None = None,
    *,
    axes: "Iterable[Axes] | None" = None,
    figsize: Figsize | None = None,
) -> np.ndarray:
    """Plot mean and 94 % interval of variables against the inverse temperature.

    Parameters
    ----------
    data : InferenceData or DataTree
        Result of :func:`power_posterior`.
    var_names : str or sequence of str, optional
        Variables to show. Default: all.
    axes : array of matplotlib Axes, optional
        One for each variable, and for each entry of an array.
    figsize : (float, float), optional
        Width and height in inches.

    Returns
    -------
    ndarray of matplotlib Axes
        The posterior is marked by a dashed line.

    Raises
    ------
    ValueError
        It is not a result of :func:`power_posterior`, has no variable of that name, or the number
        of axes is wrong.
    """
    table = power_sensitivity(data, var_names)
    labels = table.index.unique("variable")
    panels = make_axes(axes, figsize or (3.2 * len(labels), 3.0), len(labels))
    for axis, label in zip(panels, labels, strict=True):
        rows = table.loc[label]
        power = rows.index.to_numpy()
        axis.fill_between(power, rows["lower"], rows["upper"], color="C0", alpha=BAND, lw=0)
        axis.plot(power, rows["mean"], color="C0", marker="o")
        axis.axvline(1.0, color="0.5", ls="--", lw=0.8)
        axis.set(xlabel=r"inverse temperature $\beta$", ylabel=label)
    return panels

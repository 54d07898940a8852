"""Plots of Bayes factors by the number of data."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_anneal.results.plot_axes import BAND, Figsize, make_axis
from pymc_anneal.results.sequential import Design, Sequential

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_sequential(
    found: Sequential, *, ax: "Axes | None" = None, figsize: Figsize | None = None
) -> "Axes":
    """Plot the Bayes factor after each batch of data, with its 95 % interval and the thresholds.

    Parameters
    ----------
    found : Sequential
        Result of :func:`sequential`.
    ax : matplotlib Axes, optional
    figsize : (float, float), optional
        Width and height in inches.

    Returns
    -------
    matplotlib Axes
        The Bayes factor on a logarithmic axis against the number of rows.
    """
    axis = make_axis(ax, figsize)
    table, (first, second) = found.table, found.models
    rows = table["rows"].to_numpy()
    value, low, high = (np.exp(table[c].to_numpy()) for c in ("log_bayes_factor", "lower", "upper"))
    axis.fill_between(rows, low, high, color="C0", alpha=BAND, lw=0, label="95 % interval")
    axis.plot(rows, value, "o-", color="C0", ms=4)
    for line, name in ((found.stop, first), (1 / found.stop, second)):
        axis.axhline(line, color="C3", ls="--", lw=1)
        where: dict[str, Any] = {
            "va": "bottom" if line > 1 else "top",
            "color": "C3",
            "fontsize": "small",
        }
        axis.annotate(f"stop for {name}", (rows[0], line), **where)
    axis.axhline(1, color="0.6", lw=0.8, zorder=0)
    axis.set_yscale("log")
    axis.set_ylim(min(low.min(), 1 / found.stop) / 2, max(high.max(), found.stop) * 5)
    axis.set(xlabel="rows of data", ylabel=f"Bayes factor: {first} against {second}")
    axis.legend(fontsize="small", loc="upper left", frameon=False)
    return axis


def plot_design(
    found: Design, *, ax: "Axes | None" = None, figsize: Figsize | None = None
) -> "Axes":
    """Plot how often simulated studies reach the threshold, by their size.

    Parameters
    ----------
    found : Design
        Result of :func:`design`.
    ax : matplotlib Axes, optional
    figsize : (float, float), optional
        Width and height in inches.

    Returns
    -------
    matplotlib Axes
        Shares of studies of one look with their 95 % intervals, and dashed those of studies that
        stop at the first look beyond the threshold.
    """
    axis = make_axis(ax, figsize)
    table, draws = found.table, len(found.log_bayes_factor)
    for i, name in enumerate((*found.models, "neither")):
        share = table[name].to_numpy()
        half = 1.96 * np.sqrt(share * (1 - share) / draws)
        axis.errorbar(found.n, share, half, fmt="o-", color=f"C{i}", capsize=3, label=name)
        if name in found.models:
            axis.plot(found.n, table[f"{name}, by n"], "--", color=f"C{i}", lw=1)
    axis.set_ylim(-0.03, 1.03)
    axis.set(xlabel="size of the study", ylabel=f"share with {found.threshold:g} : 1 or more")
    axis.legend(fontsize="small")
    return axis

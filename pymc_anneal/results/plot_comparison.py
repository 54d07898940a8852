"""Plots of both directions, of compared models and of power posteriors."""

from typing import Any

import numpy as np
import pandas as pd

from pymc_anneal.results.log_evidence import log_evidence
from pymc_anneal.results.plot_parts import (
    BAND,
    QUANTILE,
    both_log_weights,
    draw_histogram,
    histogram_range,
    make_axes,
)
from pymc_anneal.results.sensitivity import power_sensitivity


def plot_forward_reverse(idata: Any, *, ax: Any = None, figsize: Any = None, bins: int = 40) -> Any:
    """Plot the log weights of both directions, as histograms.

    Their densities are in the ratio ``e^w / Z``: they cross at the log evidence (Crooks 1998). How
    much they overlap is how much each direction knows of what the other has found.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais` with ``reverse_from``.
    ax : matplotlib Axes, optional
    figsize : (float, float), optional
    bins
        Number of bins.

    Returns
    -------
    matplotlib Axes
    """
    forward, reverse = both_log_weights(idata)
    lows, highs = zip(histogram_range(forward), histogram_range(reverse), strict=True)
    edges = np.linspace(min(lows), max(highs), bins + 1)
    (axis,) = make_axes(ax, figsize)
    draw_histogram(axis, forward, edges, "C0", "forward")
    draw_histogram(axis, reverse, edges, "C1", "reverse")
    axis.axvline(log_evidence(idata).log_evidence, color="k", ls="--", label="log evidence")
    axis.set(xlabel="log weight (nats)", ylabel="density")
    axis.legend()
    return axis


def plot_bounds(idata: Any, *, ax: Any = None, figsize: Any = None) -> Any:
    """Plot the stochastic bounds from both directions against the number of particles.

    In expectation the forward estimate lies below the log evidence and the reverse one above it
    (Grosse, Ghahramani & Adams 2015), and both close in on it.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais` with ``reverse_from``.
    ax : matplotlib Axes, optional
    figsize : (float, float), optional

    Returns
    -------
    matplotlib Axes
        The combined estimate is a dashed line in its 95 % interval.
    """
    forward, reverse = both_log_weights(idata)
    found = log_evidence(idata)
    (axis,) = make_axes(ax, figsize)
    for log_weight, sign, color, label in (
        (forward, 1, "C0", "forward"),
        (reverse, -1, "C1", "reverse"),
    ):
        count = np.arange(1, len(log_weight) + 1)
        running = sign * (np.logaddexp.accumulate(sign * log_weight) - np.log(count))
        axis.plot(count, running, color=color, label=label)
    axis.axhline(found.log_evidence, color="k", ls="--", lw=0.8, label="both")
    axis.axhspan(*found.interval, color="k", alpha=BAND / 2, lw=0)
    axis.set(xlabel="particles", ylabel="log evidence (nats)", xscale="log")
    axis.legend()
    return axis


def plot_compare(table: pd.DataFrame, *, ax: Any = None, figsize: Any = None) -> Any:
    """Plot what :func:`compare` returns: log Bayes factors against the best, and probabilities.

    Parameters
    ----------
    table : pandas.DataFrame
        Result of :func:`compare`.
    ax : matplotlib Axes, optional
    figsize : (float, float), optional

    Returns
    -------
    matplotlib Axes
        The best model on top, its own error drawn on it.
    """
    (axis,) = make_axes(ax, figsize or (6.4, 1.2 + 0.5 * len(table)))
    row = np.arange(len(table))[::-1]
    value = table["log_bayes_factor"].to_numpy()
    low, high = (table[f"log_bayes_factor_{e}"].to_numpy() for e in ("lower", "upper"))
    first = QUANTILE * table["mcse"].to_numpy()[0]
    errors = [np.r_[first, (value - low)[1:]], np.r_[first, (high - value)[1:]]]
    axis.errorbar(value, row, xerr=errors, fmt="o", color="C0", capsize=3)
    axis.axvline(0, color="0.6", lw=0.8, zorder=0)
    labels = [f"{n}\nP = {p:.3g}" for n, p in zip(table.index, table["probability"], strict=True)]
    axis.set_yticks(row, labels)
    axis.set(xlabel="log Bayes factor against the best (nats)", ylim=(-0.6, len(table) - 0.4))
    return axis


def plot_sensitivity(
    data: Any, var_names: Any = None, *, axes: Any = None, figsize: Any = None
) -> Any:
    """Plot mean and 94 % interval of variables against the inverse temperature.

    Parameters
    ----------
    data : InferenceData or DataTree
        Result of :func:`power_posterior`.
    var_names
        Variables to show. Default: all.
    axes : array of matplotlib Axes, optional
        As many as there are variables, the entries of an array counted apart.
    figsize : (float, float), optional

    Returns
    -------
    ndarray of matplotlib Axes
        The posterior is marked by a dashed line.
    """
    table = power_sensitivity(data, var_names)
    labels = table.index.unique("variable")
    axes = make_axes(axes, figsize or (3.2 * len(labels), 3.0), len(labels))
    for axis, label in zip(axes, labels, strict=True):
        rows = table.loc[label]
        power = rows.index.to_numpy()
        axis.fill_between(power, rows["lower"], rows["upper"], color="C0", alpha=0.2, lw=0)
        axis.plot(power, rows["mean"], color="C0", marker="o")
        axis.axvline(1.0, color="0.5", ls="--", lw=0.8)
        axis.set(xlabel=r"inverse temperature $\beta$", ylabel=label)
    return axes

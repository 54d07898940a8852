"""Plots of a run and of a comparison, in ArviZ's manner: data first, axes returned.

They read the container alone, so a saved result plots like a fresh one.
"""

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from scipy.special import logsumexp
from scipy.stats import norm

from pymc_anneal.compat import group, has_group
from pymc_anneal.results import log_evidence
from pymc_anneal.sensitivity import sensitivity

__all__ = [
    "plot_annealing",
    "plot_compare",
    "plot_log_weights",
    "plot_running_evidence",
    "plot_schedule",
    "plot_sensitivity",
    "plot_thermodynamic",
]

_BAND = 0.2
_QUANTILE = norm.ppf(0.975)
_IQR_OF_NORMAL = 1.349
_SPAN = 6.0  # robust standard deviations of the log weights that a histogram shows


def plot_log_weights(idata: Any, *, ax: Any = None, figsize: Any = None, bins: int = 40) -> Any:
    """Plot a histogram of the log weights with its normal approximation and the estimate.

    For normal log weights the estimate lies half a variance above their mean; an estimate that
    hangs on the right tail of the histogram hangs on few particles.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais`.
    ax : matplotlib Axes, optional
    figsize : (float, float), optional
    bins
        Number of bins.

    Returns
    -------
    matplotlib Axes
    """
    log_weight = np.ravel(_annealing(idata)["log_weight"])
    low, centre, high = np.quantile(log_weight[np.isfinite(log_weight)], [0.25, 0.5, 0.75])
    sd = (high - low) / _IQR_OF_NORMAL
    # A few particles of no weight, from the tails of a prior, may lie millions of nats below.
    span = (centre - _SPAN * sd, centre + _SPAN * sd) if sd > 0 else (centre - 1, centre + 1)
    shown = log_weight[(log_weight >= span[0]) & (log_weight <= span[1])]
    outside = len(log_weight) - len(shown)
    label = "particles" + (f" ({outside} outside)" if outside else "")
    (axis,) = _axes(ax, figsize)
    axis.hist(shown, bins=bins, density=True, color="C0", alpha=0.5, label=label)
    if sd > 0:
        grid = np.linspace(*span, 200)
        axis.plot(grid, norm.pdf(grid, centre, sd), color="C1", label="normal")
    axis.axvline(log_evidence(idata).log_evidence, color="k", ls="--", label="log evidence")
    axis.set(xlabel="log weight (nats)", ylabel="density")
    axis.legend()
    return axis


def plot_schedule(idata: Any, *, axes: Any = None, figsize: Any = None) -> Any:
    """Plot the Fisher information ``g(beta)`` of the path, and the schedule laid along it.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais`.
    axes : array of two matplotlib Axes, optional
    figsize : (float, float), optional

    Returns
    -------
    ndarray of two matplotlib Axes
    """
    by_step = _annealing(idata)
    beta, share = _beta(by_step), by_step["step"] / by_step["step"].max()
    axes = _axes(axes, figsize, 2)
    fisher = by_step["fisher_information"]
    _log_log(axes[0], beta, fisher.mean("chain"))
    axes[0].set(xlabel=r"inverse temperature $\beta$", ylabel=r"Fisher information $g(\beta)$")
    axes[1].plot(share, beta, color="C0")
    axes[1].set(xlabel="share of the steps", ylabel=r"inverse temperature $\beta$")
    if beta[beta > 0].min() < 1e-2:
        axes[1].set_yscale("log")
    return axes


def plot_annealing(idata: Any, *, axes: Any = None, figsize: Any = None) -> Any:
    """Plot the effective sample size of the weights and the acceptance along the run.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais`.
    axes : array of two matplotlib Axes, optional
    figsize : (float, float), optional

    Returns
    -------
    ndarray of two matplotlib Axes
        Thin lines are chains.
    """
    by_step = _annealing(idata)
    share = by_step["step"] / by_step["step"].max()
    axes = _axes(axes, figsize, 2)
    for name, axis, label in (
        ("ess", axes[0], "effective sample size of a chain"),
        ("accept_rate", axes[1], "acceptance probability"),
    ):
        values = by_step[name].transpose("step", "chain")
        axis.plot(share, values, color="C0", alpha=0.3, lw=0.8)
        axis.plot(share, values.mean("chain"), color="C0")
        axis.set(xlabel="share of the steps", ylabel=label)
        axis.set_ylim(bottom=0)
    axes[1].set_ylim(top=1.02)
    return axes


def plot_running_evidence(idata: Any, *, ax: Any = None, figsize: Any = None) -> Any:
    """Plot the log evidence of the power posteriors along beta, with a 95 % band.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais`.
    ax : matplotlib Axes, optional
    figsize : (float, float), optional

    Returns
    -------
    matplotlib Axes
        Thin lines are chains.
    """
    by_step = _annealing(idata)
    log_z = by_step["log_z"].transpose("step", "chain").values
    ess = by_step["ess"].transpose("step", "chain").values
    n = by_step.sizes["particle"]
    pooled = logsumexp(log_z, axis=1) - np.log(log_z.shape[1])
    share = np.exp(log_z - pooled[:, None]) / log_z.shape[1]
    with np.errstate(divide="ignore"):
        variance = (share**2 * np.maximum(1 / ess - 1 / n, 0.0)).sum(axis=1)
    error = _QUANTILE * np.sqrt(np.log1p(variance))
    (axis,) = _axes(ax, figsize)
    beta = _beta(by_step)
    axis.plot(beta, log_z, color="C0", alpha=0.3, lw=0.8)
    axis.plot(beta, pooled, color="C0")
    axis.fill_between(beta, pooled - error, pooled + error, color="C0", alpha=_BAND, lw=0)
    axis.set(xlabel=r"inverse temperature $\beta$", ylabel=r"$\log Z_\beta$ (nats)")
    return axis


def plot_thermodynamic(idata: Any, *, ax: Any = None, figsize: Any = None) -> Any:
    """Plot the integrand of thermodynamic integration, ``E_beta[v_beta]``, against beta.

    The area under the curve is the log evidence; on the geometric path from the prior the
    integrand is the mean log likelihood, and it increases.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais`.
    ax : matplotlib Axes, optional
    figsize : (float, float), optional

    Returns
    -------
    matplotlib Axes
    """
    by_step = _annealing(idata)
    (axis,) = _axes(ax, figsize)
    beta, mean = _beta(by_step), by_step["velocity"].mean("chain")
    axis.plot(beta, mean, color="C0")
    axis.fill_between(beta, 0, mean, color="C0", alpha=_BAND, lw=0)
    axis.set(xlabel=r"inverse temperature $\beta$", ylabel=r"$E_\beta[v_\beta]$ (nats)")
    if beta[beta > 0].min() < 1e-2:
        axis.set_xscale("log")
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
    (axis,) = _axes(ax, figsize or (6.4, 1.2 + 0.5 * len(table)))
    row = np.arange(len(table))[::-1]
    value = table["log_bayes_factor"].to_numpy()
    low, high = (table[f"log_bayes_factor_{e}"].to_numpy() for e in ("lower", "upper"))
    first = _QUANTILE * table["mcse"].to_numpy()[0]
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
    table = sensitivity(data, var_names)
    labels = table.index.unique("variable")
    axes = _axes(axes, figsize or (3.2 * len(labels), 3.0), len(labels))
    for axis, label in zip(axes, labels, strict=True):
        rows = table.loc[label]
        power = rows.index.to_numpy()
        axis.fill_between(power, rows["lower"], rows["upper"], color="C0", alpha=0.2, lw=0)
        axis.plot(power, rows["mean"], color="C0", marker="o")
        axis.axvline(1.0, color="0.5", ls="--", lw=0.8)
        axis.set(xlabel=r"inverse temperature $\beta$", ylabel=label)
    return axes


def _annealing(idata: Any) -> xr.Dataset:
    """Return the group that the plots read."""
    if not has_group(idata, "annealing"):
        raise ValueError(
            f"Expected a result of pymc_anneal.sample_ais with a group 'annealing', found "
            f"{type(idata).__name__}."
        )
    return group(idata, "annealing")


def _beta(by_step: xr.Dataset) -> np.ndarray:
    return by_step["beta"].isel(chain=0).values


def _log_log(axis: Any, beta: np.ndarray, value: xr.DataArray) -> None:
    """Plot what is positive, on the scales on which it can be read."""
    shown = (beta > 0) & (value.values > 0)
    axis.plot(beta[shown], value.values[shown], color="C0")
    axis.set_yscale("log")
    if shown.any() and beta[shown].min() < 1e-2:
        axis.set_xscale("log")


def _axes(given: Any, figsize: Any, count: int = 1) -> Any:
    """Return the axes given, or new ones side by side."""
    if given is None:
        from matplotlib import pyplot

        figsize = figsize or (6.4 if count == 1 else 9.6, 3.6)
        given = pyplot.subplots(1, count, figsize=figsize, layout="constrained", squeeze=False)[1]
    axes = np.ravel(np.asarray(given, dtype=object))
    if len(axes) != count:
        raise ValueError(f"Expected {count} axes to plot on, found {len(axes)}.")
    return axes

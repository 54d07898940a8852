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
    "plot_overlap",
    "plot_running_evidence",
    "plot_sandwich",
    "plot_schedule",
    "plot_sensitivity",
    "plot_thermodynamic",
    "plot_velocity",
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
    centre, sd = _robust(log_weight)
    span = _span(log_weight)
    (axis,) = _axes(ax, figsize)
    _histogram(axis, log_weight, np.linspace(*span, bins + 1), "C0", "particles")
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


def plot_velocity(idata: Any, *, ax: Any = None, figsize: Any = None) -> Any:
    """Plot how the posterior forms along beta: by how much velocities fall short of the highest.

    On the geometric path from the prior the velocity is the log likelihood, and for a regular model
    of ``d`` parameters the shortfall is about ``d / (2 beta)``: a straight line. A band that jumps,
    or splits into two at some temperature, shows where the run needs its steps.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais`.
    ax : matplotlib Axes, optional
    figsize : (float, float), optional

    Returns
    -------
    matplotlib Axes
        Median, and the central 50 and 94 %, of the weighted particles at the rungs of the ladder.
    """
    ladder = _group(idata, "ladder")
    velocity, log_weight = (
        ladder[name].transpose("rung", ...).values.reshape(ladder.sizes["rung"], -1)
        for name in ("velocity", "log_weight")
    )
    pairs = zip(velocity.max() - velocity, log_weight, strict=True)
    bands = np.array([_weighted_quantile(*pair, [0.03, 0.25, 0.5, 0.75, 0.97]) for pair in pairs])
    # On a log scale the prior has no place: it would be infinitely far to the left.
    beta, bands = ladder["beta"].values[1:], bands[1:].T
    (axis,) = _axes(ax, figsize)
    axis.plot(beta, bands[2], color="C0", label="median")
    for low, high, label in ((1, 3, "50 %"), (0, 4, "94 %")):
        axis.fill_between(beta, bands[low], bands[high], color="C0", alpha=_BAND, lw=0, label=label)
    axis.set(
        xlabel=r"inverse temperature $\beta$",
        ylabel=r"highest velocity minus $v_\beta$ (nats)",
        xscale="log",
        yscale="log",
    )
    axis.invert_yaxis()
    axis.legend(loc="upper left")
    return axis


def plot_overlap(idata: Any, *, ax: Any = None, figsize: Any = None, bins: int = 40) -> Any:
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
    forward, reverse = _directions(idata)
    lows, highs = zip(_span(forward), _span(reverse), strict=True)
    edges = np.linspace(min(lows), max(highs), bins + 1)
    (axis,) = _axes(ax, figsize)
    _histogram(axis, forward, edges, "C0", "forward")
    _histogram(axis, reverse, edges, "C1", "reverse")
    axis.axvline(log_evidence(idata).log_evidence, color="k", ls="--", label="log evidence")
    axis.set(xlabel="log weight (nats)", ylabel="density")
    axis.legend()
    return axis


def plot_sandwich(idata: Any, *, ax: Any = None, figsize: Any = None) -> Any:
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
    forward, reverse = _directions(idata)
    found = log_evidence(idata)
    (axis,) = _axes(ax, figsize)
    for log_weight, sign, color, label in (
        (forward, 1, "C0", "forward"),
        (reverse, -1, "C1", "reverse"),
    ):
        count = np.arange(1, len(log_weight) + 1)
        running = sign * (np.logaddexp.accumulate(sign * log_weight) - np.log(count))
        axis.plot(count, running, color=color, label=label)
    axis.axhline(found.log_evidence, color="k", ls="--", lw=0.8, label="both")
    axis.axhspan(*found.interval, color="k", alpha=_BAND / 2, lw=0)
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
    return _group(idata, "annealing")


def _group(idata: Any, name: str, hint: str = "") -> xr.Dataset:
    """Return a group that a plot reads."""
    if not has_group(idata, name):
        raise ValueError(
            f"Expected a result of pymc_anneal.sample_ais with a group '{name}', found "
            f"{type(idata).__name__}.{hint}"
        )
    return group(idata, name)


def _directions(idata: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return log weights of the last forward round and of the reverse runs, as forward weights.

    In turn from all chains, and on the scale of the log evidence: their log mean, and minus the log
    mean of their negatives, are the bounds.
    """
    backward = _group(idata, "reverse_annealing", " Run sample_ais with `reverse_from`.")
    by_step, numbers = _annealing(idata), group(idata, "evidence")
    last = by_step["log_weight"].sel(particle=by_step["round"] == by_step["round"].max())
    a, b = (x.transpose("particle", "chain").values.ravel() for x in (last, backward["log_weight"]))
    lower, upper = (float(numbers[f"{name}_bound"]) for name in ("lower", "upper"))
    log_mean_a, log_mean_b = (logsumexp(x) - np.log(len(x)) for x in (a, b))
    return a + lower - log_mean_a, upper + log_mean_b - b


def _robust(log_weight: np.ndarray) -> tuple[float, float]:
    """Return median and standard deviation of the bulk of the log weights."""
    low, centre, high = np.quantile(log_weight[np.isfinite(log_weight)], [0.25, 0.5, 0.75])
    return float(centre), float((high - low) / _IQR_OF_NORMAL)


def _span(log_weight: np.ndarray) -> tuple[float, float]:
    """Return the ends of a histogram of log weights."""
    # A few particles of no weight, from the tails of a prior, may lie millions of nats below.
    centre, sd = _robust(log_weight)
    half = _SPAN * sd if sd > 0 else 1.0
    return centre - half, centre + half


def _histogram(axis: Any, values: np.ndarray, edges: np.ndarray, color: str, label: str) -> None:
    """Draw a histogram with density one over the edges, and count what lies outside."""
    shown = values[(values >= edges[0]) & (values <= edges[-1])]
    outside = len(values) - len(shown)
    label += f" ({outside} outside)" if outside else ""
    axis.hist(shown, edges, density=True, color=color, alpha=0.5, label=label)


def _weighted_quantile(values: np.ndarray, log_weight: np.ndarray, levels: Any) -> np.ndarray:
    order = np.argsort(values)
    mass = np.cumsum(np.exp(log_weight[order] - log_weight.max()))
    index = np.searchsorted(mass, np.asarray(levels) * mass[-1])
    return values[order][index.clip(0, len(values) - 1)]


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

"""Plots of a run along the inverse temperature.

They read the container alone, so a saved result plots like a fresh one.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from scipy.special import logsumexp
from scipy.stats import norm

from pymc_anneal.base.arviz_compat import Container, required_group
from pymc_anneal.results.plot_axes import BAND, Figsize, make_axes, make_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Smallest inverse temperature of a run above which a linear axis is readable.
_LOG_AXIS_BELOW = 1e-2


def plot_schedule(
    idata: Container, *, axes: "Iterable[Axes] | None" = None, figsize: Figsize | None = None
) -> np.ndarray:
    """Plot the Fisher information ``g(beta)`` of the path, and the schedule.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais`.
    axes : array of two matplotlib Axes, optional
    figsize : (float, float), optional
        Width and height in inches.

    Returns
    -------
    ndarray of two matplotlib Axes

    Raises
    ------
    ValueError
        It is not a result of :func:`sample_ais`, or there are not two axes.
    """
    by_step = _by_step(idata)
    beta, share = _betas(by_step), by_step["step"] / by_step["step"].max()
    information, schedule = panels = make_axes(axes, figsize, 2)
    _plot_positive(information, beta, by_step["fisher_information"].mean("chain").values)
    information.set(xlabel=r"inverse temperature $\beta$", ylabel=r"Fisher information $g(\beta)$")
    schedule.plot(share, beta, color="C0")
    schedule.set(xlabel="share of the steps", ylabel=r"inverse temperature $\beta$")
    if beta[beta > 0].min() < _LOG_AXIS_BELOW:
        schedule.set_yscale("log")
    return panels


def plot_annealing(
    idata: Container, *, axes: "Iterable[Axes] | None" = None, figsize: Figsize | None = None
) -> np.ndarray:
    """Plot the effective sample size of the weights and the acceptance along the run.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais`.
    axes : array of two matplotlib Axes, optional
    figsize : (float, float), optional
        Width and height in inches.

    Returns
    -------
    ndarray of two matplotlib Axes
        Thin lines are chains, the thick line is their mean.

    Raises
    ------
    ValueError
        It is not a result of :func:`sample_ais`, or there are not two axes.
    """
    by_step = _by_step(idata)
    share = by_step["step"] / by_step["step"].max()
    panels = make_axes(axes, figsize, 2)
    for name, axis, label in (
        ("ess", panels[0], "effective sample size of a chain"),
        ("accept_rate", panels[1], "acceptance probability"),
    ):
        values = by_step[name].transpose("step", "chain")
        axis.plot(share, values, color="C0", alpha=0.3, lw=0.8)
        axis.plot(share, values.mean("chain"), color="C0")
        axis.set(xlabel="share of the steps", ylabel=label)
        axis.set_ylim(bottom=0)
    panels[1].set_ylim(top=1.02)
    return panels


def plot_running_evidence(
    idata: Container, *, ax: "Axes | None" = None, figsize: Figsize | None = None
) -> "Axes":
    """Plot the log evidence of the power posteriors along beta, with a 95 % band.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais`.
    ax : matplotlib Axes, optional
    figsize : (float, float), optional
        Width and height in inches.

    Returns
    -------
    matplotlib Axes
        Thin lines are chains, the thick line is the estimate from all of them.

    Raises
    ------
    ValueError
        It is not a result of :func:`sample_ais`.
    """
    by_step = _by_step(idata)
    log_z = by_step["log_z"].transpose("step", "chain").values
    ess = by_step["ess"].transpose("step", "chain").values
    n = by_step.sizes["particle"]
    pooled = logsumexp(log_z, axis=1) - np.log(log_z.shape[1])
    share = np.exp(log_z - pooled[:, None]) / log_z.shape[1]
    with np.errstate(divide="ignore"):
        variance = (share**2 * np.maximum(1 / ess - 1 / n, 0.0)).sum(axis=1)
    error = norm.ppf(0.975) * np.sqrt(np.log1p(variance))
    axis = make_axis(ax, figsize)
    beta = _betas(by_step)
    axis.plot(beta, log_z, color="C0", alpha=0.3, lw=0.8)
    axis.plot(beta, pooled, color="C0")
    axis.fill_between(beta, pooled - error, pooled + error, color="C0", alpha=BAND, lw=0)
    axis.set(xlabel=r"inverse temperature $\beta$", ylabel=r"$\log Z_\beta$ (nats)")
    return axis


def plot_ti_integrand(
    idata: Container, *, ax: "Axes | None" = None, figsize: Figsize | None = None
) -> "Axes":
    """Plot the integrand of thermodynamic integration, ``E_beta[v_beta]``, against beta.

    ``v_beta`` is the derivative of ``log f_beta`` in beta. The integral over beta, the area if the
    axis of beta is linear, is the log evidence. On the geometric path from the prior the integrand
    is the mean log likelihood, which increases with beta.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais`.
    ax : matplotlib Axes, optional
    figsize : (float, float), optional
        Width and height in inches.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        It is not a result of :func:`sample_ais`.
    """
    by_step = _by_step(idata)
    axis = make_axis(ax, figsize)
    beta, mean = _betas(by_step), by_step["velocity"].mean("chain").values
    axis.plot(beta, mean, color="C0")
    axis.fill_between(beta, 0, mean, color="C0", alpha=BAND, lw=0)
    axis.set(xlabel=r"inverse temperature $\beta$", ylabel=r"$E_\beta[v_\beta]$ (nats)")
    if beta[beta > 0].min() < _LOG_AXIS_BELOW:
        axis.set_xscale("log")
    return axis


def plot_path_velocity(
    idata: Container, *, ax: "Axes | None" = None, figsize: Figsize | None = None
) -> "Axes":
    """Plot the velocities of the particles below the highest one, against beta.

    The velocity ``v_beta`` is the derivative of ``log f_beta`` in beta: on the geometric path from
    the prior the log likelihood. For a regular model of ``d`` parameters it falls short of its
    maximum by about ``d / (2 beta)``, a straight line. A band that jumps, or splits into two at
    some temperature, shows the part of the path that needs most steps.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais`.
    ax : matplotlib Axes, optional
    figsize : (float, float), optional
        Width and height in inches.

    Returns
    -------
    matplotlib Axes
        Median, and the central 50 and 94 %, of the weighted particles at the temperatures of the
        group ``ladder``.

    Raises
    ------
    ValueError
        It is not a result of :func:`sample_ais`.
    """
    ladder = required_group(idata, "ladder", "pymc_anneal.sample_ais")
    velocity, log_weight = (
        ladder[name].transpose("rung", ...).values.reshape(ladder.sizes["rung"], -1)
        for name in ("velocity", "log_weight")
    )
    shortfall = velocity.max() - velocity
    bands = np.array([_bands(*pair) for pair in zip(shortfall, log_weight, strict=True)])
    # The logarithmic axis has no place for the prior, beta = 0.
    beta, bands = ladder["beta"].values[1:], bands[1:].T
    axis = make_axis(ax, figsize)
    axis.plot(beta, bands[2], color="C0", label="median")
    for low, high, label, alpha in ((1, 3, "50 %", 2 * BAND), (0, 4, "94 %", BAND)):
        axis.fill_between(beta, bands[low], bands[high], color="C0", alpha=alpha, lw=0, label=label)
    axis.set(
        xlabel=r"inverse temperature $\beta$",
        ylabel=r"highest velocity minus $v_\beta$ (nats)",
        xscale="log",
        yscale="log",
    )
    axis.invert_yaxis()
    axis.legend(loc="upper left")
    return axis


def _by_step(idata: Container) -> xr.Dataset:
    return required_group(idata, "annealing", "pymc_anneal.sample_ais")


def _betas(by_step: xr.Dataset) -> np.ndarray:
    """Return the inverse temperatures of the steps, shape ``(steps,)``."""
    return np.asarray(by_step["beta"].isel(chain=0).values)


def _bands(values: np.ndarray, log_weight: np.ndarray) -> np.ndarray:
    """Return the median and the ends of the central 50 and 94 % of weighted values, shape (n,)."""
    levels = [0.03, 0.25, 0.5, 0.75, 0.97]
    weight = np.exp(log_weight - log_weight.max())
    return np.asarray(np.quantile(values, levels, weights=weight, method="inverted_cdf"))


def _plot_positive(axis: "Axes", beta: np.ndarray, value: np.ndarray) -> None:
    """Plot the positive values on a logarithmic axis, by step."""
    shown = (beta > 0) & (value > 0)
    axis.plot(beta[shown], value[shown], color="C0")
    axis.set_yscale("log")
    if shown.any() and beta[shown].min() < _LOG_AXIS_BELOW:
        axis.set_xscale("log")

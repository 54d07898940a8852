"""Plots of a run and of a comparison, in ArviZ's manner: data first, axes returned.

They read the container alone, so a saved result plots like a fresh one.
"""

from typing import Any

import numpy as np

from scipy.special import logsumexp
from scipy.stats import norm

from pymc_anneal.results.log_evidence import log_evidence
from pymc_anneal.results.plot_parts import (
    BAND,
    QUANTILE,
    annealing_group,
    draw_histogram,
    histogram_range,
    make_axes,
    plot_positive,
    required_group,
    robust_centre_and_sd,
    step_betas,
    weighted_quantile,
)


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
    log_weight = np.ravel(annealing_group(idata)["log_weight"])
    centre, sd = robust_centre_and_sd(log_weight)
    span = histogram_range(log_weight)
    (axis,) = make_axes(ax, figsize)
    draw_histogram(axis, log_weight, np.linspace(*span, bins + 1), "C0", "particles")
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
    by_step = annealing_group(idata)
    beta, share = step_betas(by_step), by_step["step"] / by_step["step"].max()
    axes = make_axes(axes, figsize, 2)
    fisher = by_step["fisher_information"]
    plot_positive(axes[0], beta, fisher.mean("chain"))
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
    by_step = annealing_group(idata)
    share = by_step["step"] / by_step["step"].max()
    axes = make_axes(axes, figsize, 2)
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
    by_step = annealing_group(idata)
    log_z = by_step["log_z"].transpose("step", "chain").values
    ess = by_step["ess"].transpose("step", "chain").values
    n = by_step.sizes["particle"]
    pooled = logsumexp(log_z, axis=1) - np.log(log_z.shape[1])
    share = np.exp(log_z - pooled[:, None]) / log_z.shape[1]
    with np.errstate(divide="ignore"):
        variance = (share**2 * np.maximum(1 / ess - 1 / n, 0.0)).sum(axis=1)
    error = QUANTILE * np.sqrt(np.log1p(variance))
    (axis,) = make_axes(ax, figsize)
    beta = step_betas(by_step)
    axis.plot(beta, log_z, color="C0", alpha=0.3, lw=0.8)
    axis.plot(beta, pooled, color="C0")
    axis.fill_between(beta, pooled - error, pooled + error, color="C0", alpha=BAND, lw=0)
    axis.set(xlabel=r"inverse temperature $\beta$", ylabel=r"$\log Z_\beta$ (nats)")
    return axis


def plot_ti_integrand(idata: Any, *, ax: Any = None, figsize: Any = None) -> Any:
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
    by_step = annealing_group(idata)
    (axis,) = make_axes(ax, figsize)
    beta, mean = step_betas(by_step), by_step["velocity"].mean("chain")
    axis.plot(beta, mean, color="C0")
    axis.fill_between(beta, 0, mean, color="C0", alpha=BAND, lw=0)
    axis.set(xlabel=r"inverse temperature $\beta$", ylabel=r"$E_\beta[v_\beta]$ (nats)")
    if beta[beta > 0].min() < 1e-2:
        axis.set_xscale("log")
    return axis


def plot_path_velocity(idata: Any, *, ax: Any = None, figsize: Any = None) -> Any:
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
    ladder = required_group(idata, "ladder")
    velocity, log_weight = (
        ladder[name].transpose("rung", ...).values.reshape(ladder.sizes["rung"], -1)
        for name in ("velocity", "log_weight")
    )
    pairs = zip(velocity.max() - velocity, log_weight, strict=True)
    bands = np.array([weighted_quantile(*pair, [0.03, 0.25, 0.5, 0.75, 0.97]) for pair in pairs])
    # On a log scale the prior has no place: it would be infinitely far to the left.
    beta, bands = ladder["beta"].values[1:], bands[1:].T
    (axis,) = make_axes(ax, figsize)
    axis.plot(beta, bands[2], color="C0", label="median")
    for low, high, label in ((1, 3, "50 %"), (0, 4, "94 %")):
        axis.fill_between(beta, bands[low], bands[high], color="C0", alpha=BAND, lw=0, label=label)
    axis.set(
        xlabel=r"inverse temperature $\beta$",
        ylabel=r"highest velocity minus $v_\beta$ (nats)",
        xscale="log",
        yscale="log",
    )
    axis.invert_yaxis()
    axis.legend(loc="upper left")
    return axis

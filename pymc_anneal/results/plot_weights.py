"""Plots of the log weights of a run, forward and reverse."""

from typing import TYPE_CHECKING

import numpy as np

from scipy.special import logsumexp
from scipy.stats import norm

from pymc_anneal.base.arviz_compat import Container, required_group
from pymc_anneal.evidence.diagnostics import median_and_robust_sd
from pymc_anneal.results.log_evidence import log_evidence
from pymc_anneal.results.plot_axes import BAND, Figsize, make_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Half the range of a histogram, in robust standard deviations of the log weights.
_HALF_RANGE = 6.0


def plot_log_weights(
    idata: Container, *, ax: "Axes | None" = None, figsize: Figsize | None = None, bins: int = 40
) -> "Axes":
    """Plot a histogram of the log weights with its normal approximation and the estimate.

    For normal log weights the estimate lies half a variance above their mean. An estimate in the
    right tail of the histogram depends on few particles.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais`.
    ax : matplotlib Axes, optional
    figsize : (float, float), optional
        Width and height in inches.
    bins : int
        Number of bins.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        It is not a result of :func:`sample_ais`.
    """
    annealing = required_group(idata, "annealing", "pymc_anneal.sample_ais")
    log_weight = np.ravel(annealing["log_weight"])
    centre, sd = _median_and_sd(log_weight)
    low, high = _histogram_range(log_weight)
    axis = make_axis(ax, figsize)
    _draw_histogram(axis, log_weight, np.linspace(low, high, bins + 1), "C0", "particles")
    if sd > 0:
        grid = np.linspace(low, high, 200)
        axis.plot(grid, norm.pdf(grid, centre, sd), color="C1", label="normal")
    _finish_histogram(axis, idata)
    return axis


def plot_forward_reverse(
    idata: Container, *, ax: "Axes | None" = None, figsize: Figsize | None = None, bins: int = 40
) -> "Axes":
    """Plot the log weights of both directions, as histograms.

    The ratio of their densities is ``e^w / Z``: they cross at the log evidence (Crooks 1998). The
    more they overlap, the more of the trajectories of each direction are typical of the other.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais` with ``reverse_from``.
    ax : matplotlib Axes, optional
    figsize : (float, float), optional
        Width and height in inches.
    bins : int
        Number of bins.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        It is not a result of :func:`sample_ais`, or has no reverse runs.

    References
    ----------
    Crooks (1998), Nonequilibrium measurements of free energy differences for microscopically
    reversible Markovian systems.
    """
    forward, reverse = _both_log_weights(idata)
    lows, highs = zip(_histogram_range(forward), _histogram_range(reverse), strict=True)
    edges = np.linspace(min(lows), max(highs), bins + 1)
    axis = make_axis(ax, figsize)
    _draw_histogram(axis, forward, edges, "C0", "forward")
    _draw_histogram(axis, reverse, edges, "C1", "reverse")
    _finish_histogram(axis, idata)
    return axis


def plot_bounds(
    idata: Container, *, ax: "Axes | None" = None, figsize: Figsize | None = None
) -> "Axes":
    """Plot the stochastic bounds from both directions against the number of particles.

    In expectation the forward estimate lies below the log evidence and the reverse one above it
    (Grosse, Ghahramani & Adams 2015), and both converge to it.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais` with ``reverse_from``.
    ax : matplotlib Axes, optional
    figsize : (float, float), optional
        Width and height in inches.

    Returns
    -------
    matplotlib Axes
        The combined estimate is a dashed line, its 95 % interval a band.

    Raises
    ------
    ValueError
        It is not a result of :func:`sample_ais`, or has no reverse runs.

    References
    ----------
    Grosse, Ghahramani & Adams (2015), Sandwiching the marginal likelihood using bidirectional
    Monte Carlo.
    """
    forward, reverse = _both_log_weights(idata)
    found = log_evidence(idata)
    axis = make_axis(ax, figsize)
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


def _both_log_weights(idata: Container) -> tuple[np.ndarray, np.ndarray]:
    """Return the log weights of the forward and of the reverse runs, shape ``(n,)``.

    Both are in the forward sense, from all chains in turn, and on the scale of the log evidence:
    their log mean, and minus the log mean of their negatives, are the bounds.
    """
    made_by = "pymc_anneal.sample_ais(reverse_from=...)"
    reverse = required_group(idata, "reverse_annealing", made_by)
    forward = required_group(idata, "annealing", made_by)
    evidence = required_group(idata, "evidence", made_by)
    weights = (group["log_weight"] for group in (forward, reverse))
    a, b = (x.transpose("particle", "chain").values.ravel() for x in weights)
    lower, upper = (float(evidence[f"{name}_bound"]) for name in ("lower", "upper"))
    log_mean_a, log_mean_b = (logsumexp(x) - np.log(len(x)) for x in (a, b))
    return a + lower - log_mean_a, upper + log_mean_b - b


def _median_and_sd(log_weight: np.ndarray) -> tuple[float, float]:
    """Return median and standard deviation of the bulk of the non-zero weights, in nats."""
    return median_and_robust_sd(log_weight[np.isfinite(log_weight)])


def _histogram_range(log_weight: np.ndarray) -> tuple[float, float]:
    """Return the ends of a histogram of log weights."""
    # From the tails of a prior a few particles of negligible weight may lie millions of nats below.
    centre, sd = _median_and_sd(log_weight)
    half = _HALF_RANGE * sd if sd > 0 else 1.0
    return centre - half, centre + half


def _draw_histogram(
    axis: "Axes", values: np.ndarray, edges: np.ndarray, color: str, label: str
) -> None:
    """Draw a histogram of area one between the edges, and count the values outside of them."""
    shown = values[(values >= edges[0]) & (values <= edges[-1])]
    outside = len(values) - len(shown)
    label += f" ({outside} outside)" if outside else ""
    axis.hist(shown, edges.tolist(), density=True, color=color, alpha=0.5, label=label)


def _finish_histogram(axis: "Axes", idata: Container) -> None:
    """Add the estimate, labels and a legend."""
    axis.axvline(log_evidence(idata).log_evidence, color="k", ls="--", label="log evidence")
    axis.set(xlabel="log weight (nats)", ylabel="density")
    axis.legend()

"""Parts that the plots share: groups of a container, axes, histograms."""

from typing import Any

import numpy as np
import xarray as xr

from scipy.special import logsumexp
from scipy.stats import norm

from pymc_anneal.base.arviz_compat import group, has_group

BAND = 0.2


QUANTILE = norm.ppf(0.975)


_IQR_OF_NORMAL = 1.349


_SPAN = 6.0  # robust standard deviations of the log weights that a histogram shows


def annealing_group(idata: Any) -> xr.Dataset:
    return required_group(idata, "annealing")


def required_group(idata: Any, name: str, hint: str = "") -> xr.Dataset:
    """Return a group that a plot reads."""
    if not has_group(idata, name):
        raise ValueError(
            f"Expected a result of pymc_anneal.sample_ais with a group '{name}', found "
            f"{type(idata).__name__}.{hint}"
        )
    return group(idata, name)


def both_log_weights(idata: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return log weights of the last forward round and of the reverse runs, as forward weights.

    In turn from all chains, and on the scale of the log evidence: their log mean, and minus the log
    mean of their negatives, are the bounds.
    """
    backward = required_group(idata, "reverse_annealing", " Run sample_ais with `reverse_from`.")
    by_step, numbers = annealing_group(idata), group(idata, "evidence")
    last = by_step["log_weight"].sel(particle=by_step["round"] == by_step["round"].max())
    a, b = (x.transpose("particle", "chain").values.ravel() for x in (last, backward["log_weight"]))
    lower, upper = (float(numbers[f"{name}_bound"]) for name in ("lower", "upper"))
    log_mean_a, log_mean_b = (logsumexp(x) - np.log(len(x)) for x in (a, b))
    return a + lower - log_mean_a, upper + log_mean_b - b


def robust_centre_and_sd(log_weight: np.ndarray) -> tuple[float, float]:
    """Return median and standard deviation of the bulk of the log weights."""
    low, centre, high = np.quantile(log_weight[np.isfinite(log_weight)], [0.25, 0.5, 0.75])
    return float(centre), float((high - low) / _IQR_OF_NORMAL)


def histogram_range(log_weight: np.ndarray) -> tuple[float, float]:
    """Return the ends of a histogram of log weights."""
    # A few particles of no weight, from the tails of a prior, may lie millions of nats below.
    centre, sd = robust_centre_and_sd(log_weight)
    half = _SPAN * sd if sd > 0 else 1.0
    return centre - half, centre + half


def draw_histogram(
    axis: Any, values: np.ndarray, edges: np.ndarray, color: str, label: str
) -> None:
    """Draw a histogram with density one over the edges, and count what lies outside."""
    shown = values[(values >= edges[0]) & (values <= edges[-1])]
    outside = len(values) - len(shown)
    label += f" ({outside} outside)" if outside else ""
    axis.hist(shown, edges, density=True, color=color, alpha=0.5, label=label)


def weighted_quantile(values: np.ndarray, log_weight: np.ndarray, levels: Any) -> np.ndarray:
    order = np.argsort(values)
    mass = np.cumsum(np.exp(log_weight[order] - log_weight.max()))
    index = np.searchsorted(mass, np.asarray(levels) * mass[-1])
    return values[order][index.clip(0, len(values) - 1)]


def step_betas(by_step: xr.Dataset) -> np.ndarray:
    return by_step["beta"].isel(chain=0).values


def plot_positive(axis: Any, beta: np.ndarray, value: xr.DataArray) -> None:
    """Plot what is positive, on the scales on which it can be read."""
    shown = (beta > 0) & (value.values > 0)
    axis.plot(beta[shown], value.values[shown], color="C0")
    axis.set_yscale("log")
    if shown.any() and beta[shown].min() < 1e-2:
        axis.set_xscale("log")


def make_axes(given: Any, figsize: Any, count: int = 1) -> Any:
    """Return the axes given, or new ones side by side."""
    if given is None:
        from matplotlib import pyplot

        figsize = figsize or (6.4 if count == 1 else 9.6, 3.6)
        given = pyplot.subplots(1, count, figsize=figsize, layout="constrained", squeeze=False)[1]
    axes = np.ravel(np.asarray(given, dtype=object))
    if len(axes) != count:
        raise ValueError(f"Expected {count} axes to plot on, found {len(axes)}.")
    return axes

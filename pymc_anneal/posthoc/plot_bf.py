"""Plot of a point null: the densities of prior and posterior there, and their ratio with its error.

ArviZ's `plot_bf` reads both densities off a kernel estimate, which has no error and is too low at
an edge. Here the points are the densities of the Savage-Dickey ratio (`savage_dickey.py`),

    BF = p(b_0) / p(b_0 | y),

and the histograms behind them are there to look at.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pymc as pm

from pymc_anneal.base.arviz_compat import Container
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import RandomSeed, seed_sequence, spawned
from pymc_anneal.evidence.mean_ratio import MeanRatio
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.posthoc.edge import find_edge
from pymc_anneal.posthoc.null_point import locate_null
from pymc_anneal.posthoc.savage_dickey import (
    Densities,
    densities_at,
    densities_at_edge,
    describe_null,
)
from pymc_anneal.results.bayes_factor import LogBayesFactor, factor_range, factor_text
from pymc_anneal.results.plot_axes import BAND, Figsize, make_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Prior draws of the histogram, its bars, and the share of the prior beyond each end of the axis.
_PRIOR_DRAWS, _BARS, _BEYOND = 20_000, 60, 0.05
# Widths of the posterior, from its 0.1 % to its 99.9 % point, that the axis may extend.
_WIDTHS = 3.0
# Step of the derivative of the variable by its coordinate, in standard deviations of the draws.
_STEP = 1e-4


class _Shown(NamedTuple):
    """What is drawn, in the space of the variable.

    Attributes
    ----------
    name : str
    value : float
        The null.
    prior, posterior : ndarray, shape (n,)
        Draws.
    at_prior, at_posterior : MeanRatio
        Log densities at the null.
    """

    name: str
    value: float
    prior: np.ndarray
    posterior: np.ndarray
    at_prior: MeanRatio
    at_posterior: MeanRatio


@double_precision
def plot_bf(
    idata: Container,
    null: Mapping[str, Any],
    *,
    model: pm.Model | CompiledModel | None = None,
    random_seed: RandomSeed = None,
    ax: "Axes | None" = None,
    figsize: Figsize | None = None,
) -> tuple[LogBayesFactor, "Axes"]:
    """Plot prior and posterior of one parameter, and the Bayes factor against a value of it.

    As :func:`arviz.plot_bf`, with densities at the null that are not smoothed, and their errors.

    Parameters
    ----------
    idata, null, model, random_seed
        As for :func:`savage_dickey`; the null is the value of one number, at the edge of its
        support as well: a variable, or an entry of an array whose others are NaN.
    ax : matplotlib Axes, optional
    figsize : (float, float), optional
        Width and height in inches.

    Returns
    -------
    factor : LogBayesFactor
        As of :func:`savage_dickey`, with the same seed.
    axes : matplotlib Axes
        Points are the densities at the null, with 95 % intervals; histograms of draws are behind
        them. The title is the Bayes factor with its 95 % interval. If it is not trusted, the
        points are grey and hollow and the title says so.

    Raises
    ------
    ValueError
        The null is of more than one number, or as :func:`savage_dickey`.
    NotImplementedError
        As :func:`savage_dickey`.

    References
    ----------
    Dickey (1971), The weighted likelihood ratio, linear hypotheses on normal location parameters.

    Examples
    --------
    >>> factor, axes = pymc_anneal.plot_bf(idata, {"effect": 0}, model=model)
    """
    compiled, seed = as_compiled(model), seed_sequence(random_seed)
    edge = find_edge(compiled, null)
    if edge is None:
        point = locate_null(compiled, null)
        if len(point.coordinates) != 1:
            raise ValueError(
                f"`null` is {dict(null)}, of {len(point.coordinates)} numbers, expected one: leave "
                "the other entries of an array free by NaN."
            )
        found = densities_at(idata, compiled, null, seed)
        ((name, mask),) = point.fixed.items()
        column = int(point.coordinates[0])
    else:
        found = densities_at_edge(idata, compiled, edge, seed)
        name, mask, column = edge.name, np.array(True), None
    value = float(np.asarray(null[name], dtype=float)[mask].item())
    shown = _shown(compiled, found, name, value, mask, column, spawned(seed, 1))
    factor = found.factor(describe_null(null))
    return factor, _draw(make_axis(ax, figsize), shown, factor)


def _shown(
    compiled: CompiledModel,
    found: Densities,
    name: str,
    value: float,
    mask: np.ndarray,
    column: int | None,
    seed: np.random.SeedSequence,
) -> _Shown:
    """Return draws and densities in the space of the variable; no column: they are there."""

    def values(x: np.ndarray) -> np.ndarray:
        return np.asarray(compiled.constrain(x)[name][:, mask], dtype=float).ravel()

    x = found.draws.reshape(-1, compiled.ndim)
    change = 0.0 if column is None else _log_slope(compiled, values, x, name, value, mask, column)
    at = (d._replace(log_mean=d.log_mean - change) for d in (found.prior, found.posterior.density))
    return _Shown(name, value, values(compiled.sample_prior(seed, _PRIOR_DRAWS)), values(x), *at)


def _log_slope(
    compiled: CompiledModel,
    values: Any,
    x: np.ndarray,
    name: str,
    value: float,
    mask: np.ndarray,
    column: int,
) -> float:
    """Return the log derivative of the variable by its coordinate at the null."""
    free = compiled.constrain(x[:1])
    free[name] = np.where(mask, value, free[name])
    pair, step = np.repeat(compiled.unconstrain(free), 2, axis=0), _STEP * x[:, column].std()
    pair[:, column] += step * np.array([-1.0, 1.0])
    low, high = values(pair)
    return float(np.log(abs(high - low) / (2 * step)))


def _draw(axis: "Axes", shown: _Shown, factor: LogBayesFactor) -> "Axes":
    edges = np.linspace(*_limits(shown), _BARS + 1)
    for draws, colour, name in ((shown.prior, "C0", "prior"), (shown.posterior, "C1", "posterior")):
        weight = np.full(len(draws), 1 / len(draws) / (edges[1] - edges[0]))
        style: dict[str, Any] = {"histtype": "stepfilled", "color": colour, "alpha": BAND}
        axis.hist(draws, edges.tolist(), weights=weight, label=name, **style)
    trusted = factor.verdict.status != "do not trust"
    axis.axvline(shown.value, color="0.6", lw=0.8, zorder=0)
    for density, colour in ((shown.at_prior, "C0"), (shown.at_posterior, "C1")):
        ends, height = np.exp(density.interval), np.exp(density.log_mean)
        bar = np.abs(ends - height)[:, None]
        point: dict[str, Any] = {"color": colour} if trusted else {"color": "0.5", "mfc": "white"}
        axis.errorbar(shown.value, height, yerr=bar, fmt="o", capsize=4, **point)
    axis.set(xlabel=shown.name, ylabel="density")
    axis.margins(x=0.03)
    axis.set_ylim(bottom=0)
    axis.set_title(_title(shown, factor, trusted), fontsize="medium")
    axis.legend(fontsize="small")
    return axis


def _limits(shown: _Shown) -> tuple[float, float]:
    """Return the ends of the axis: posterior and null, and of the prior what is near."""
    low, high = np.quantile(shown.posterior, [0.001, 0.999])
    reach = _WIDTHS * (high - low)
    prior = np.quantile(shown.prior, [_BEYOND, 1 - _BEYOND])
    ends = [max(prior[0], low - reach), min(prior[1], high + reach), low, high, shown.value]
    return float(min(ends)), float(max(ends))


def _title(shown: _Shown, factor: LogBayesFactor, trusted: bool) -> str:
    against = f"BF against {shown.name} = {shown.value:g}"
    if not trusted:
        return f"{against}: {factor_text(factor.log_bayes_factor)}, do not trust"
    text = f"{factor_text(factor.log_bayes_factor)} ({factor_range(factor.interval)})"
    return f"{against}: {text}"

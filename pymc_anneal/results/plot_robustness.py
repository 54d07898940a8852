"""Plot of Bayes factors over prior scales, in the manner of JASP."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_anneal.results.plot_axes import BAND, Figsize, make_axes
from pymc_anneal.results.robustness import Robustness

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Factors at which the words of Jeffreys (1961, appendix B) change, up to "strong" at 10 and beyond.
_LINES = (1 / 100, 1 / 30, 1 / 10, 1 / 3, 1, 3, 10, 30, 100)


def plot_robustness(
    robustness: Robustness,
    *,
    axes: "Iterable[Axes] | None" = None,
    figsize: Figsize | None = None,
) -> np.ndarray:
    """Plot Bayes factors over prior scales, with one panel for each effect.

    Parameters
    ----------
    robustness : Robustness
        Result of :func:`robustness`.
    axes : array of matplotlib Axes, optional
        One for each effect.
    figsize : (float, float), optional
        Width and height in inches.

    Returns
    -------
    ndarray of matplotlib Axes
        Bayes factors on a logarithmic axis, with 95 % intervals; a line marks the scale of the
        model, and grey lines the factors 3, 10, 30 and 100 in either direction. Estimates that are
        not trusted are hollow.

    Raises
    ------
    ValueError
        The number of axes is wrong.
    """
    effects = robustness.table.index.unique("variable")
    panels = make_axes(axes, figsize or (4.8 * len(effects), 3.6), len(effects))
    for axis, effect in zip(panels, effects, strict=True):
        _draw(axis, robustness, str(effect))
    return panels


def _draw(axis: "Axes", robustness: Robustness, effect: str) -> None:
    rows = robustness.table.loc[effect].sort_index()
    scale = rows.index.to_numpy(dtype=float)
    columns = ("log_bayes_factor", "log_bayes_factor_lower", "log_bayes_factor_upper")
    value, low, high = (np.exp(rows[column].to_numpy()) for column in columns)
    trusted = rows["verdict"].to_numpy() == "trust"
    axis.fill_between(scale, low, high, color="C0", alpha=BAND, lw=0, label="95 % interval")
    axis.plot(scale, value, color="C0")
    axis.plot(scale[trusted], value[trusted], "o", color="C0", ms=4)
    if not trusted.all():
        hollow: dict[str, Any] = {"color": "0.5", "mfc": "white", "label": "do not trust"}
        axis.plot(scale[~trusted], value[~trusted], "o", **hollow)
    axis.axvline(robustness.own[effect], color="0.4", ls=":", label="scale of the model")
    axis.set_yscale("log")
    axis.set_xscale("log")
    lower, upper = min(1 / 3, value.min() / 1.5), max(3, value.max() * 1.5)
    shown = [line for line in _LINES if lower <= line <= upper]
    for line in shown:
        axis.axhline(line, color="0.6", lw=1.2 if line == 1 else 0.6, zorder=0)
    axis.set_yticks(shown, [f"{f:g}" if f >= 1 else f"1/{1 / f:.0f}" for f in shown])
    axis.minorticks_off()
    axis.set_ylim(lower, upper)
    ticks = np.unique([*scale[[0, -1]], robustness.own[effect]])
    axis.set_xticks(ticks, [f"{tick:.3g}" for tick in ticks])
    axis.set(xlabel=f"prior scale of {effect}", ylabel=f"Bayes factor: {effect} against null")
    axis.legend(fontsize="small")

"""Plot of compared models: probabilities and Bayes factors, both with their errors."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from scipy.stats import norm

from pymc_anneal.base.html import round_to_error
from pymc_anneal.results.model_comparison import ModelComparison
from pymc_anneal.results.plot_axes import Figsize, make_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Log Bayes factors, in nats, beyond which a model is marked at the edge: its probability is below
# 1e-8, and its place on the axis would hide the differences of the others.
_FAR = 20.0

# Styles of models whose evidence is trusted, and of those whose evidence is not.
_FILLED: dict[str, Any] = {"color": "C0"}
_HOLLOW: dict[str, Any] = {"color": "0.5", "mfc": "white"}
_BAR: dict[str, Any] = {"color": "C0", "alpha": 0.4}
_HOLLOW_BAR: dict[str, Any] = {"color": "none", "edgecolor": "0.5", "hatch": "///"}

# Half the width of a point, as a share of the axis: shorter error bars cannot be seen.
_HALF_POINT = 0.015


def plot_compare(
    comparison: ModelComparison,
    *,
    axes: "Iterable[Axes] | None" = None,
    figsize: Figsize | None = None,
) -> np.ndarray:
    """Plot a comparison: model probabilities, and log Bayes factors against the reference.

    Parameters
    ----------
    comparison : ModelComparison
        Result of :func:`compare`.
    axes : array of matplotlib Axes, optional
        Two axes.
    figsize : (float, float), optional
        Width and height in inches.

    Returns
    -------
    ndarray of matplotlib Axes, shape (2,)
        Error bars are 95 % intervals; that of the reference, the best model by default, on the
        right is the interval of its own log evidence. Models whose evidence is not trusted are grey
        and hollow. A model more than 20 nats below the best is marked at the edge, with its value
        in words.
    """
    table = comparison.details
    panels = make_axes(axes, figsize or (9.6, 1.4 + 0.5 * len(table)), 2)
    row = np.arange(len(table))[::-1]
    _draw_probabilities(panels[0], table, row)
    _draw_factors(panels[1], table, row, comparison.reference)
    for axis in panels:
        axis.set(ylim=(-0.6, len(table) - 0.4))
    panels[0].set_yticks(row, [_label(name, doubt) for name, doubt in _doubtful(table).items()])
    panels[1].set_yticks(row, [""] * len(table))
    return panels


def _doubtful(table: pd.DataFrame) -> dict[str, bool]:
    """Return whether the evidence of each model is not trusted."""
    return {str(name): bool(rank) for name, rank in table["rank"].isna().items()}


def _label(name: str, doubtful: bool) -> str:
    return f"{name}\n(do not trust)" if doubtful else name


def _draw_probabilities(axis: "Axes", table: pd.DataFrame, row: np.ndarray) -> None:
    value = table["probability"].to_numpy()
    errors = _errors(table, "probability")
    for i, doubtful in enumerate(_doubtful(table).values()):
        axis.barh(row[i], value[i], 0.5, **(_HOLLOW_BAR if doubtful else _BAR))
        _draw_point(axis, value[i], row[i], errors[:, i : i + 1], doubtful)
    axis.set(xlim=(-0.02, 1.02), xlabel="posterior probability" + _remark(errors.max(), 1.04))


def _draw_factors(axis: "Axes", table: pd.DataFrame, row: np.ndarray, reference: str) -> None:
    value, own = table["log_bayes_factor"].to_numpy(), table.index.get_loc(reference)
    errors = _errors(table, "log_bayes_factor")
    errors[:, own] = norm.ppf(0.975) * table["mcse"].iloc[own]
    near = value >= value[0] - _FAR
    low, high = (value - errors[0])[near].min(), (value + errors[1])[near].max()
    margin = 0.08 * (high - low) + 1e-3
    low -= margin if near.all() else 5 * margin
    for i, doubtful in enumerate(_doubtful(table).values()):
        if near[i]:
            _draw_point(axis, value[i], row[i], errors[:, i : i + 1], doubtful)
        else:
            _draw_at_edge(axis, low, row[i], table.iloc[i], doubtful)
    axis.axvline(0, color="0.6", lw=0.8, zorder=0)
    remark = _remark(errors[:, near].max(), high + margin - low)
    whom = "the best" if own == 0 else reference
    axis.set(xlim=(low, high + margin), xlabel=f"log Bayes factor against {whom} (nats){remark}")


def _errors(table: pd.DataFrame, name: str) -> np.ndarray:
    """Return the lengths of the error bars to the left and to the right, shape ``(2, n)``."""
    value, low, high = (table[f"{name}{end}"].to_numpy() for end in ("", "_lower", "_upper"))
    return np.maximum([value - low, high - value], 0.0)


def _draw_point(axis: "Axes", x: float, y: float, errors: np.ndarray, doubtful: bool) -> None:
    axis.errorbar(x, y, xerr=errors, fmt="o", capsize=3, **(_HOLLOW if doubtful else _FILLED))


def _draw_at_edge(axis: "Axes", x: float, y: float, row: pd.Series, doubtful: bool) -> None:
    """Mark a model far to the left by a triangle at the edge, and its value in words."""
    style = _HOLLOW if doubtful else _FILLED
    axis.plot(x, y, "<", clip_on=False, **style)
    value, error = row["log_bayes_factor"], row["log_bayes_factor_mcse"]
    text = f"{round_to_error(value, error)} ± {error:.2g}"
    axis.annotate(
        text, (x, y), (8, 0), textcoords="offset points", va="center", color=style["color"]
    )


def _remark(largest: float, width: float) -> str:
    """Say so if no error bar is wider than the points."""
    if largest > _HALF_POINT * width:
        return "\nwith 95 % intervals"
    return "\n95 % intervals are smaller than the points"

"""Plot of the summaries of power posteriors."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pymc_anneal.base.arviz_compat import Container
from pymc_anneal.results.plot_axes import BAND, Figsize, make_axes
from pymc_anneal.results.sensitivity import power_sensitivity

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_sensitivity(
    data: Container,
    var_names: Sequence[str] | str | None = None,
    *,
    axes: "Iterable[Axes] | None" = None,
    figsize: Figsize | None = None,
) -> np.ndarray:
    """Plot mean and 94 % interval of variables against the inverse temperature.

    Parameters
    ----------
    data : InferenceData or DataTree
        Result of :func:`power_posterior`.
    var_names : str or sequence of str, optional
        Variables to show. Default: all.
    axes : array of matplotlib Axes, optional
        One for each variable, and for each entry of an array.
    figsize : (float, float), optional
        Width and height in inches.

    Returns
    -------
    ndarray of matplotlib Axes
        The posterior is marked by a dashed line.

    Raises
    ------
    ValueError
        It is not a result of :func:`power_posterior`, has no variable of that name, or the number
        of axes is wrong.
    """
    table = power_sensitivity(data, var_names)
    labels = table.index.unique("variable")
    panels = make_axes(axes, figsize or (3.2 * len(labels), 3.0), len(labels))
    for axis, label in zip(panels, labels, strict=True):
        rows = table.loc[label]
        power = rows.index.to_numpy()
        axis.fill_between(power, rows["lower"], rows["upper"], color="C0", alpha=BAND, lw=0)
        axis.plot(power, rows["mean"], color="C0", marker="o")
        axis.axvline(1.0, color="0.5", ls="--", lw=0.8)
        axis.set(xlabel=r"inverse temperature $\beta$", ylabel=label)
    return panels

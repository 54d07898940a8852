"""Axes of the plots, made in ArviZ's manner: data first, axes returned.

Matplotlib is an optional dependency and is imported only when axes are made.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Width and height in inches.
Figsize: TypeAlias = tuple[float, float]

# Opacity of intervals and of areas under a curve.
BAND = 0.2


def make_axis(ax: "Axes | None", figsize: Figsize | None) -> "Axes":
    """Return the axes given, or new ones."""
    axis: Axes = make_axes(ax, figsize, 1)[0]
    return axis


def make_axes(
    axes: "Axes | Iterable[Axes] | None", figsize: Figsize | None, count: int
) -> np.ndarray:
    """Return the axes given, or new ones side by side, shape ``(count,)``.

    Raises
    ------
    ValueError
        The number of axes given is not ``count``.
    """
    if axes is None:
        from matplotlib import pyplot

        figsize = figsize or (6.4 if count == 1 else 9.6, 3.6)
        axes = pyplot.subplots(1, count, figsize=figsize, layout="constrained", squeeze=False)[1]
    found = np.ravel(np.asarray(axes, dtype=object))
    if len(found) != count:
        raise ValueError(f"Expected {count} axes to plot on, found {len(found)}.")
    return found

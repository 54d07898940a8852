"""What a container can hold: names of variables and dimensions, and coordinates.

xarray keeps variables and dimensions of a group under one set of names, and netCDF and zarr reserve
the slash. A name or coordinate that does not fit must not end a run after its last step.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd

# Leading dimensions of groups of draws.
DRAW_DIMS = ("chain", "draw")


def find_unstorable(names: Iterable[str], dims: Iterable[str]) -> dict[str, str]:
    """Return the variables that a group cannot hold, with the reasons."""
    taken = set(dims)
    reasons = {}
    for name in names:
        if name in taken:
            reasons[name] = "its name is that of a dimension"
        elif "/" in name or name in {"", "."}:
            reasons[name] = "files cannot hold its name"
    return reasons


def name_dimensions(
    shapes: Mapping[str, Sequence[int | None]],
    given: Mapping[str, Sequence[str | None]],
    leading: Sequence[str] = (),
) -> dict[str, list[str]]:
    """Name the dimensions of variables: those given, or ``x_dim_0``, ``x_dim_1``, ...

    A name that is given is not used if it belongs to a leading dimension, to a variable, twice to
    one variable, or to dimensions of two lengths.

    Parameters
    ----------
    shapes
        Shapes of the variables, without the leading dimensions; lengths may be None, unknown.
    given
        Names by variable; missing names and None stand for automatic ones.
    leading
        Leading dimensions of all variables.
    """
    lengths: dict[str, int | None] = {}
    named = {}
    for name, shape in shapes.items():
        dims: list[str] = []
        wanted = [*(given.get(name) or []), *[None] * len(shape)]
        for i, (dim, length) in enumerate(zip(wanted, shape, strict=False)):
            fits = dim is not None and lengths.setdefault(dim, length) == length
            taken = dim in {*leading, *shapes, *dims}
            dims.append(dim if dim is not None and fits and not taken else f"{name}_dim_{i}")
        named[name] = dims
    return named


def as_coordinate(values: Any) -> np.ndarray | None:
    """Return the labels of a dimension as a one-dimensional array, None if there are none.

    Tuples, the entries of a ``MultiIndex`` and other objects, but not times, become strings.
    """
    if values is None or isinstance(values, str) or not hasattr(values, "__len__"):
        return None
    labels = list(values)
    if not any(np.ndim(v) or isinstance(v, tuple) for v in labels):
        array = np.asarray(values) if labels else np.arange(0)
        if array.dtype == object and all(isinstance(v, datetime | timedelta) for v in labels):
            array = pd.Index(labels).to_numpy()
        if array.dtype != object:
            return array
    return np.array([str(v) for v in labels])

"""Entries of array variables, by label."""

from collections.abc import Iterator, Sequence

import numpy as np
import xarray as xr


def labelled_entries(
    values: xr.DataArray, leading: Sequence[str]
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield ``"name[label]"`` of each entry of a variable, and its values.

    Parameters
    ----------
    values : DataArray
    leading : sequence of str
        Dimensions of the values of an entry, in their order; the others number the entries.
    """
    ordered = values.transpose(*leading, ...)
    own = ordered.dims[len(leading) :]
    for index in np.ndindex(*ordered.shape[len(leading) :]):
        labels = [str(ordered[d].values[i]) for d, i in zip(own, index, strict=True)]
        label = f"{values.name}[{', '.join(labels)}]" if labels else str(values.name)
        yield label, ordered.values[(..., *index)]

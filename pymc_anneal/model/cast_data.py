"""Values of ``pm.Data`` in the type of the model's, unless that would change them."""

from typing import Any

import numpy as np


def cast_data(name: str, values: Any, dtype: Any) -> np.ndarray:
    """Return values of ``pm.Data`` in its type.

    Raises
    ------
    ValueError
        Some are masked, or are no integers where the model's are.
    """
    given = without_mask(name, values)
    with np.errstate(invalid="ignore"):  # NaN as an integer
        cast = given.astype(dtype)
    if np.dtype(dtype).kind in "iub" and not np.array_equal(cast, given):
        raise ValueError(
            f"pm.Data '{name}' of the model is of type {np.dtype(dtype)}, which would round the "
            "values given for it: build the model with floating-point data there (0.0 for 0)."
        )
    return cast


def without_mask(name: str, values: Any) -> np.ndarray:
    """Return values of ``pm.Data`` as an array, or raise if some are masked."""
    if np.ma.is_masked(values):
        raise ValueError(
            f"Values of pm.Data '{name}' are masked, and what is below the mask would count as "
            "data: leave these rows out."
        )
    return np.asarray(values)

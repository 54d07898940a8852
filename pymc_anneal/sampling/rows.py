"""Checks of data whose rows a call divides among several runs, made before the first of them."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pymc_anneal.model.cast_data import without_mask
from pymc_anneal.model.other_data import Data


def check_rows(subject: str, data: Any) -> None:
    """Raise unless data are a dict of arrays of numbers with at least one row.

    Parameters
    ----------
    subject : str
        What the data are, for messages.
    data
        To be checked.

    Raises
    ------
    TypeError
        They are no dict.
    ValueError
        The dict is empty, or a value has no rows, or entries that are masked, missing or no
        numbers.
    """
    if not isinstance(data, Mapping):
        raise TypeError(f"{subject} is {_kind(data)}, expected a dict of pm.Data by name.")
    if not data:
        raise ValueError(f"{subject} is empty, expected arrays of pm.Data by name.")
    for name, values in data.items():
        _check_array(f"'{name}' in {subject}", _as_numbers(name, values, subject))


def _kind(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"


def _as_numbers(name: str, values: Any, subject: str) -> np.ndarray:
    given = without_mask(name, values)
    try:
        return given if given.dtype.kind in "biuf" else given.astype(float)
    except (TypeError, ValueError):
        raise ValueError(
            f"'{name}' in {subject} has entries of type {given.dtype}, expected numbers."
        ) from None


def _check_array(subject: str, values: np.ndarray) -> None:
    if not values.ndim or not len(values):
        found = "an array without rows" if values.ndim else "a single number"
        raise ValueError(f"{subject} is {found}, expected rows along the first axis: [1.5, ...].")
    missing = int(np.isnan(values).sum())
    if missing:
        raise ValueError(
            f"{subject} has {missing} NaN of {values.size} entries, and rows with missing values "
            "cannot be added to a model: leave them out, or impute them first."
        )


def check_same_rows(batches: Iterable[Data]) -> None:
    """Raise unless batches have the same names, and rows of the same shapes."""
    first, *others = ({n: np.shape(v)[1:] for n, v in batch.items()} for batch in batches)
    for other in others:
        if set(other) != set(first):
            raise ValueError(f"The batches have data of different names, expected {sorted(first)}.")
        if other != first:
            raise ValueError(
                f"Rows of the batches have different shapes by name, {first} and {other}, expected "
                "equal ones."
            )

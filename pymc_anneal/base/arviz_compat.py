"""The differences between ArviZ 0.23 (PyMC 5) and ArviZ 1 (PyMC 6).

Of ArviZ 1 only its statistics are imported: its plots take half a second, for Matplotlib.
"""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

# InferenceData (ArviZ 0.23) or DataTree (ArviZ 1): no type covers both.
Container: TypeAlias = Any

_IS_TREE = int(version("arviz").split(".")[0]) >= 1

if _IS_TREE:
    import arviz_stats as az
else:
    import arviz as az


def container(datasets: Mapping[str, xr.Dataset]) -> Container:
    """Build an ``InferenceData`` (ArviZ 0.23) or a ``DataTree`` (ArviZ 1) from datasets."""
    if _IS_TREE:
        return xr.DataTree.from_dict(dict(datasets))
    return az.InferenceData(**datasets)


def has_group(data: object, name: str) -> bool:
    """Return whether an object is a container with a group of this name."""
    return name in _group_names(data)


def group(data: Container, name: str) -> xr.Dataset:
    """Return a group of a container as a dataset."""
    found: xr.Dataset = data[name].to_dataset() if isinstance(data, xr.DataTree) else data[name]
    return found


def required_group(data: object, name: str, made_by: str) -> xr.Dataset:
    """Return a group that a function needs.

    Raises
    ------
    ValueError
        The object is no container, or lacks the group.
    """
    if has_group(data, name):
        return group(data, name)
    names = _group_names(data)
    found = f" with the groups {names}" if names else ""
    raise ValueError(
        f"Expected a result of {made_by} with a group '{name}', found {type(data).__name__}{found}."
    )


def _group_names(data: object) -> list[str]:
    if isinstance(data, xr.DataTree):
        return list(data.children)
    return list(data.groups()) if hasattr(data, "groups") else []


# Weights that are equal to the largest one, from which on it is the end of their distribution.
_AT_THE_END = 10


def pareto_k(log_weight: np.ndarray) -> float:
    """Fit a generalised Pareto distribution to the largest weights and return its shape.

    Parameters
    ----------
    log_weight : ndarray, shape (n,)
        Finite log weights.

    Returns
    -------
    float
        NaN if there are fewer than 25 weights, or if all are equal; -inf if ten are the largest.
    """
    if len(log_weight) < 25 or np.ptp(log_weight) < 1e-8:
        return float("nan")
    tail = int(min(0.2 * len(log_weight), 3 * np.sqrt(len(log_weight))))  # ArviZ's, at most
    ordered = np.sort(log_weight)
    if np.ptp(ordered[-min(tail, _AT_THE_END) :]) < 1e-8:
        return float("-inf")
    if ordered[-tail] == ordered[-tail - 1]:
        log_weight = _spread_ties(ordered)
    with np.errstate(over="ignore"):  # of tails that are far from any Pareto distribution
        if _IS_TREE:
            from arviz_stats.base import array_stats

            return float(array_stats.psislw(-log_weight)[1])  # takes the negative of log weights
        return float(az.psislw(log_weight)[1])


def _spread_ties(ordered: np.ndarray) -> np.ndarray:
    """Spread equal numbers evenly down to the next lower one: no law fits a tail of ties."""
    values, inverse, count = np.unique(ordered, return_inverse=True, return_counts=True)
    above = np.cumsum(count)[inverse] - 1 - np.arange(len(ordered))
    gap = np.diff(values, prepend=2 * values[0] - values[1])[inverse]
    return np.asarray(ordered - gap * above / count[inverse])


def draws_ess(values: np.ndarray) -> float:
    """Return the effective sample size for the mean of values of shape (chains, draws)."""
    return float(az.ess(values, method="mean"))


def draws_rhat(values: np.ndarray) -> float:
    """Return the rank-normalised split R-hat of values of shape (chains, draws)."""
    return float(az.rhat(values))


def posterior_summary(data: Container, **kwargs: Any) -> Any:
    """Return ArviZ's table of the posterior, a ``pandas.DataFrame``."""
    # Draws that are all as far from their median (a binary variable of mean 1/2) have no R-hat.
    with np.errstate(invalid="ignore", divide="ignore"):
        return az.summary(data, **kwargs)

"""What differs between ArviZ 0.23 (PyMC 5) and ArviZ 1 (PyMC 6)."""

from typing import Any

import arviz as az
import numpy as np
import xarray as xr

# Not hasattr: ArviZ 1 warns about the name.
_IS_TREE = "InferenceData" not in vars(az)


def container(datasets: dict[str, xr.Dataset]) -> Any:
    """Return an ``InferenceData`` (ArviZ 0.23) or a ``DataTree`` (ArviZ 1) of datasets."""
    if _IS_TREE:
        return xr.DataTree.from_dict(datasets)
    return az.InferenceData(**datasets)


def has_group(data: Any, name: str) -> bool:
    """Whether something is a container with a group of that name."""
    if not hasattr(data, "groups"):
        return False
    return name in (data.children if isinstance(data, xr.DataTree) else data.groups())


def group(data: Any, name: str) -> xr.Dataset:
    """Return a group of a container as a dataset."""
    return data[name].to_dataset() if isinstance(data, xr.DataTree) else data[name]


def pareto_k(log_weight: np.ndarray) -> float:
    """Shape of the generalised Pareto distribution fitted to the largest weights.

    Parameters
    ----------
    log_weight : ndarray, shape (n,)
        Finite log weights.

    Returns
    -------
    float
        NaN where there are too few, or equal, weights for a fit.
    """
    if len(log_weight) < 25 or np.ptp(log_weight) < 1e-8:
        return float("nan")
    if _IS_TREE:
        from arviz_stats.base import array_stats

        return float(array_stats.psislw(-log_weight)[1])  # takes the negative of log weights
    return float(az.psislw(log_weight)[1])


def draws_ess(values: np.ndarray) -> float:
    """Effective number of draws for the mean of autocorrelated values, shape (chains, draws)."""
    return float(az.ess(values, method="mean"))


def draws_rhat(values: np.ndarray) -> float:
    """Rank-normalised split R-hat of values of shape (chains, draws)."""
    return float(az.rhat(values))


def posterior_summary(data: Any, **kwargs: Any) -> Any:
    """Return ArviZ's table of the posterior."""
    return az.summary(data, **kwargs)

"""Results of `pymc.sample_smc` as rectangular arrays, with an error of the evidence.

PyMC stores the stages of its chains as lists of different lengths, which cannot be saved, and gives
the log evidence of each chain without an error. The chains are independent and the evidence of each
is nearly unbiased, so their mean estimates ``Z``, and their spread the error of the mean. The
weights are not stored, so nothing else is known about the error; the interval is Student's.
"""

from typing import Any

import numpy as np
import xarray as xr

from scipy.special import logsumexp

from pymc_anneal.base.arviz_compat import Container, container, group, has_group, required_group
from pymc_anneal.evidence.ais import student_interval
from pymc_anneal.evidence.estimate import EvidenceEstimate
from pymc_anneal.evidence.verdict import verdict_from

# Groups that are copied unchanged.
_COPIED = ("posterior", "observed_data", "constant_data", "log_likelihood", "prior")

# Diagnostics that need the weights.
_UNKNOWN = ("ess", "pareto_k", "barrier")


def from_sample_smc(idata: Container) -> Container:
    """Convert a result of :func:`pymc.sample_smc` to the container of :func:`sample_ais`.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`pymc.sample_smc` of PyMC 5 or 6, of at least two chains.

    Returns
    -------
    InferenceData or DataTree
        All its variables are rectangular arrays of numbers. ``sample_stats`` holds the
        ``log_marginal_likelihood`` of each chain in nats, and ``beta`` and ``accept_rate`` by
        chain and stage, NaN after the last stage of a chain; ``evidence`` holds the log of the
        mean evidence and its error, for :func:`log_evidence` and :func:`compare`.

    Raises
    ------
    ValueError
        It is not such a result, or has a single chain.

    See Also
    --------
    bridge_evidence : Draws of :func:`pymc.sample`.

    Examples
    --------
    >>> idata = pymc_anneal.from_sample_smc(pymc.sample_smc(model=model))
    >>> idata.to_netcdf("result.nc")
    """
    stats = _stats(idata)
    by_stage = {str(name): _rows(values) for name, values in stats.data_vars.items()}
    final = np.array([_last(row) for row in by_stage.pop("log_marginal_likelihood")])
    if len(final) < 2:
        raise ValueError(
            "The result has one chain, and its error cannot be estimated. Run "
            "pymc.sample_smc(chains=4), better sample_ais."
        )
    values: dict[str, Any] = {"log_marginal_likelihood": ("chain", final)}
    values |= {name: (("chain", "stage"), _padded(rows)) for name, rows in by_stage.items()}
    copied = {name: group(idata, name) for name in _COPIED if has_group(idata, name)}
    attrs = {k: v for k, v in stats.attrs.items() if isinstance(v, str | int | float)}
    converted = {
        **copied,
        "sample_stats": xr.Dataset(values, coords={"chain": np.arange(len(final))}, attrs=attrs),
        "evidence": _evidence(final),
    }
    return container(converted)


def _stats(idata: Container) -> xr.Dataset:
    stats = required_group(idata, "sample_stats", "pymc.sample_smc")
    if "log_marginal_likelihood" not in stats or has_group(idata, "annealing"):
        raise ValueError(
            "Expected a result of pymc.sample_smc, whose sample_stats hold "
            "'log_marginal_likelihood' as PyMC writes it; found "
            f"{sorted(map(str, stats.data_vars))}."
        )
    return stats


def _rows(values: xr.DataArray) -> list[np.ndarray]:
    """Return one row of stages for each chain, whether or not they are of equal length."""
    array = values.values
    if array.dtype == object and isinstance(array.flat[0], list | np.ndarray):
        return [np.asarray(row, dtype=float) for row in array.flat]
    return list(array.reshape(-1, array.shape[-1]).astype(float))


def _last(row: np.ndarray) -> float:
    """Return the last number of a row; PyMC writes NaN before it."""
    return float(row[~np.isnan(row)][-1])


def _padded(rows: list[np.ndarray]) -> np.ndarray:
    """Return rows of different lengths as an array, NaN after the end of each."""
    table = np.full((len(rows), max(map(len, rows))), np.nan)
    for line, row in zip(table, rows, strict=True):
        line[: len(row)] = row
    return table


def _evidence(final: np.ndarray) -> xr.Dataset:
    """Return the group ``evidence`` from the log evidences of the chains, shape ``(chains,)``."""
    chains = len(final)
    log_z = float(logsumexp(final) - np.log(chains))
    relative = np.exp(final - log_z)
    mcse = float(np.sqrt(np.log1p(relative.var(ddof=1) / chains)))
    lower, upper = student_interval(EvidenceEstimate(log_z, mcse, np.nan), chains)
    scalars = {
        "log_evidence": log_z,
        "mcse": mcse,
        "interval_lower": lower,
        "interval_upper": upper,
        **dict.fromkeys(_UNKNOWN, np.nan),
    }
    shortfall = (
        f"the error is the spread of {chains} chains; pymc.sample_smc keeps no weights by which to "
        "check the estimate"
    )
    verdict = verdict_from([], [shortfall], "more evidence needed")
    return xr.Dataset(scalars, attrs={**verdict.to_attrs(), "unit": "nats", "notes": ""})

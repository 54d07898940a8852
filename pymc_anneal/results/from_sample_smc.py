"""Results of `pymc.sample_smc`, made rectangular, with an error of the evidence.

PyMC keeps what its chains did as lists of different lengths, which cannot be saved, and gives the
log evidence of each chain without an error. The chains are independent and each one's evidence is
nearly unbiased, so their mean estimates ``Z`` and their spread its error: ``C`` numbers, and all
there is, since the weights are not kept. Their interval is Student's.
"""

from typing import Any

import numpy as np
import xarray as xr

from scipy.special import logsumexp
from scipy.stats import t as student_t

from pymc_anneal.base.arviz_compat import container, group, has_group

_KEPT = ("posterior", "observed_data", "constant_data", "log_likelihood", "prior")


_UNKNOWN = ("ess", "pareto_k", "barrier")


def from_sample_smc(idata: Any) -> Any:
    """Read a result of :func:`pymc.sample_smc` into the container of :func:`sample_ais`.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`pymc.sample_smc` on either line of PyMC, of at least two chains.

    Returns
    -------
    InferenceData or DataTree
        All its variables are rectangular numbers. ``sample_stats`` holds the
        ``log_marginal_likelihood`` of each chain, and ``beta`` and ``accept_rate`` by chain and
        stage, NaN after a chain's last; ``evidence`` the mean and its error, for
        :func:`log_evidence` and :func:`compare`.

    Raises
    ------
    ValueError
        It is not such a result, or has a single chain.

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
            "The result has one chain: there is nothing to tell its error from. Run "
            "pymc.sample_smc(chains=4), better sample_ais."
        )
    values: dict[str, Any] = {"log_marginal_likelihood": ("chain", final)}
    values |= {name: (("chain", "stage"), _padded(rows)) for name, rows in by_stage.items()}
    kept = {name: group(idata, name) for name in _KEPT if has_group(idata, name)}
    attrs = {k: v for k, v in stats.attrs.items() if isinstance(v, str | int | float)}
    repaired = {
        **kept,
        "sample_stats": xr.Dataset(values, coords={"chain": np.arange(len(final))}, attrs=attrs),
        "evidence": _evidence(final),
    }
    return container(repaired)


def _stats(idata: Any) -> xr.Dataset:
    if not has_group(idata, "sample_stats"):
        raise ValueError(f"Expected a result of pymc.sample_smc, found {type(idata).__name__}.")
    stats = group(idata, "sample_stats")
    if "log_marginal_likelihood" not in stats or has_group(idata, "annealing"):
        raise ValueError(
            "Expected a result of pymc.sample_smc, whose sample_stats hold "
            "'log_marginal_likelihood' as PyMC writes it; found "
            f"{sorted(map(str, stats.data_vars))}."
        )
    return stats


def _rows(values: xr.DataArray) -> list[np.ndarray]:
    """Return one row of stages for each chain, whether they were of equal length or not."""
    array = values.values
    if array.dtype == object and isinstance(array.flat[0], list | np.ndarray):
        return [np.asarray(row, dtype=float) for row in array.flat]
    return list(array.reshape(-1, array.shape[-1]).astype(float))


def _last(row: np.ndarray) -> float:
    """Return the last number of a row; PyMC writes NaN before it."""
    return float(row[~np.isnan(row)][-1])


def _padded(rows: list[np.ndarray]) -> np.ndarray:
    table = np.full((len(rows), max(map(len, rows))), np.nan)
    for line, row in zip(table, rows, strict=True):
        line[: len(row)] = row
    return table


def _evidence(final: np.ndarray) -> xr.Dataset:
    chains = len(final)
    log_z = float(logsumexp(final) - np.log(chains))
    relative = np.exp(final - log_z)
    mcse = float(np.sqrt(np.log1p(relative.var(ddof=1) / chains)))
    half_width = float(student_t.ppf(0.975, chains - 1)) * mcse
    numbers = {
        "log_evidence": log_z,
        "mcse": mcse,
        "interval_lower": log_z - half_width,
        "interval_upper": log_z + half_width,
        **dict.fromkeys(_UNKNOWN, np.nan),
    }
    verdict = (
        f"more evidence needed: the error is the spread of {chains} chains; pymc.sample_smc keeps "
        "no weights by which to check the estimate"
    )
    return xr.Dataset(numbers, attrs={"verdict": verdict, "unit": "nats", "notes": ""})

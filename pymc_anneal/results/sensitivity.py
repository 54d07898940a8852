"""Sensitivity of posterior summaries to the weight of the likelihood.

Under the power posterior ``f_beta ~ prior L^beta``, with ``V = log L``,

    d/dbeta E_beta[g] = Cov_beta(g, V),

so one sample gives the slope of every mean. It is reported per doubling of the data, in posterior
standard deviations: ``log(2) beta Cov_beta(g, V) / sd_beta(g)``. A mean that the prior hardly
influences has a slope near zero.

These are runs at several powers, not the importance weighting of one sample by which ArviZ's
``psense`` measures power-scaling sensitivity (Kallioinen et al. 2024).
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from pymc_anneal.base.arviz_compat import Container, group, required_group
from pymc_anneal.results.entries import labelled_entries

# Probability outside the interval on either side: 94 %, as in ArviZ 0.23.
_TAIL = 0.03
# Dimensions of the values of an entry.
_LEADING = ("chain", "draw", "power")


def power_sensitivity(
    data: Container, var_names: Sequence[str] | str | None = None
) -> pd.DataFrame:
    """Summarise power posteriors by variable and inverse temperature.

    Parameters
    ----------
    data : InferenceData or DataTree
        Result of :func:`power_posterior`.
    var_names : str or sequence of str, optional
        Variables to show. Default: all of the group ``posterior``.

    Returns
    -------
    pandas.DataFrame
        Indexed by ``variable`` (``"name[label]"`` for the entries of an array) and ``power``, the
        inverse temperature, with columns ``mean``, ``sd``, ``lower`` and ``upper`` (a 94 %
        interval by quantiles), and ``slope``: the change of the mean per doubling of the data, to
        first order, in standard deviations.

    Raises
    ------
    ValueError
        It is not such a result, or has no variable of that name.

    References
    ----------
    Kallioinen, Paananen, Bürkner & Vehtari (2024), Detecting and diagnosing prior and likelihood
    sensitivity with power-scaling.

    Examples
    --------
    >>> pymc_anneal.power_sensitivity(pymc_anneal.power_posterior([0.5, 1, 2], model=model))
    """
    posterior, log_likelihood = _groups(data)
    rows = []
    for name in _chosen(posterior, var_names):
        for label, values in labelled_entries(posterior[name], _LEADING):
            for i, power in enumerate(posterior["power"].values):
                row = _row(values[..., i].ravel(), log_likelihood[..., i].ravel(), float(power))
                rows.append({"variable": label, "power": float(power), **row})
    return pd.DataFrame(rows).set_index(["variable", "power"])


def _groups(data: Container) -> tuple[xr.Dataset, np.ndarray]:
    """Return the posterior, and the log likelihood of shape ``(chains, draws, powers)``."""
    required_group(data, "power", "pymc_anneal.power_posterior")
    statistics = group(data, "sample_stats")["log_likelihood"]
    return group(data, "posterior"), statistics.transpose(*_LEADING).values


def _chosen(posterior: xr.Dataset, var_names: Sequence[str] | str | None) -> list[str]:
    known = [str(name) for name in posterior.data_vars]
    wanted = [var_names] if isinstance(var_names, str) else list(var_names or known)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ValueError(f"There are no variables {unknown}; expected some of {known}.")
    return wanted


def _row(values: np.ndarray, log_likelihood: np.ndarray, power: float) -> dict[str, float]:
    """Summarise draws of an entry, shape ``(n,)``, with their log likelihoods."""
    lower, upper = np.quantile(values, [_TAIL, 1 - _TAIL])
    sd = values.std()
    covariance = ((values - values.mean()) * (log_likelihood - log_likelihood.mean())).mean()
    slope = np.log(2) * power * covariance / sd if sd > 0 else 0.0
    return {"mean": values.mean(), "sd": sd, "lower": lower, "upper": upper, "slope": slope}

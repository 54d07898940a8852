"""The log evidence and the posterior in one table."""

from typing import Any

import numpy as np
import pandas as pd

from pymc_anneal.base.arviz_compat import Container, posterior_summary
from pymc_anneal.results.log_evidence import log_evidence

# Decimals of the evidence in the table.
_DIGITS = 3


def summary(idata: Container, **kwargs: Any) -> pd.DataFrame:
    """Summarise a result: a row for the log evidence on top of :func:`arviz.summary`.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais`.
    **kwargs
        Passed to :func:`arviz.summary`.

    Returns
    -------
    pandas.DataFrame
        The first row, ``log_evidence``, has the estimate as ``mean``, its Monte Carlo standard
        error as ``mcse_mean``, both in nats, and the effective sample size of the weights as
        ``ess_bulk``; its other columns are empty, and the error of an estimate that is not trusted.
        ``attrs["verdict"]`` is the verdict as text.

    Raises
    ------
    ValueError
        It is not a result of :func:`sample_ais`.

    Examples
    --------
    >>> pymc_anneal.summary(idata)
    """
    evidence = log_evidence(idata)
    table = posterior_summary(idata, **kwargs)
    doubtful = evidence.verdict.status == "do not trust"
    values = {
        "mean": round(evidence.log_evidence, _DIGITS),
        "mcse_mean": "" if doubtful else round(evidence.mcse, _DIGITS),
        "ess_bulk": "" if np.isnan(evidence.ess) else round(evidence.ess),
    }
    row = pd.DataFrame(
        [{c: values.get(c, "") for c in table.columns}], index=["log_evidence"], dtype=object
    )
    result = pd.concat([row, table.astype(object)])
    result.attrs["verdict"] = str(evidence.verdict)
    return result

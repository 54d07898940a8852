"""The error of a mean of weights with a tail.

Of ``n`` weights the largest is near their quantile ``1 - 1/n``, and what lies beyond it is missing
from the sample more often than not. If weights beyond a threshold follow a generalised Pareto
distribution of shape ``k`` (Vehtari, Simpson, Gelman, Yao & Gabry 2024), the mean rises by

    (E[w | w > w_max] - E[w]) / n = (w_max / (1 - k) - E[w]) / n

if one of ``n`` weights is drawn from there. The variance of the weights in the sample does not
know of it, and estimates are too low by several of their errors: so it is added to the error, of
which it is a few per cent for light tails, a third for ``k > 1/3``, where the third moment is
infinite, and as much or more for ``k > 1/2``, where the variance is.

Of 5,269 samples of 400 or 2,000 weights from narrow proposals, Pareto and log-normal laws with a
fitted k of at most 0.7, 95 % intervals held the truth in 93.0 % without it and in 95.7 % with it;
of those with 0.2 < k < 1/3 in 91.8 and 94.7 %, and 1.5 and 0.7 % were more than three errors off.
"""

import numpy as np

from pymc_anneal.evidence.agreement import Estimate
from pymc_anneal.evidence.ais import ais, population_means
from pymc_anneal.evidence.diagnostics import (
    LARGEST_K,
    MAX_PARETO_K,
    leaves_error_unknown,
    missing_share,
    weight_pareto_k,
)
from pymc_anneal.evidence.estimate import EvidenceEstimate


def ais_with_tail(
    log_weight: np.ndarray, population_size: int = 1
) -> tuple[EvidenceEstimate, float]:
    """Estimate the log evidence with an error that counts the tail of the weights.

    Parameters
    ----------
    log_weight, population_size
        As for :func:`~pymc_anneal.evidence.ais.ais`.

    Returns
    -------
    estimate : EvidenceEstimate
        In nats.
    pareto_k : float
        Shape of the tail of the weights, or of the means of the populations.
    """
    estimate = ais(log_weight, population_size)
    units = population_means(log_weight, population_size)
    k = weight_pareto_k(units)
    return estimate._replace(mcse=error_with_tail(estimate.mcse, units, k)), k


def error_with_tail(mcse: float, log_weight: np.ndarray, k: float) -> float:
    """Return the error of the log of a mean of weights, wider by what their tail leaves out.

    Parameters
    ----------
    mcse
        The error by the variance of the weights, in nats.
    log_weight : ndarray, any shape
    k
        Shape of their tail, ``-inf`` if they have none. Above 0.7 it is not known well, and where
        the error is known all the same, the largest one counts.
    """
    if not k > -np.inf or not np.isfinite(mcse):
        return mcse
    if k > MAX_PARETO_K and not leaves_error_unknown(log_weight, k):
        k = LARGEST_K
    return float(np.hypot(mcse, np.log1p(missing_share(log_weight, k))))


def estimate_with_tail(name: str, log_weight: np.ndarray, steps: int | None = None) -> Estimate:
    """Return a named estimate by log weights; its error is infinite if their tail is too heavy."""
    found, k = ais_with_tail(log_weight)
    unknown = leaves_error_unknown(log_weight, k)
    return Estimate(name, found.log_evidence, np.inf if unknown else found.mcse, steps)

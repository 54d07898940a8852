"""The error of a mean of weights with a heavy tail.

If the weights beyond a threshold follow a generalised Pareto distribution of shape ``k`` (Vehtari,
Simpson, Gelman, Yao & Gabry 2024), the largest of ``n`` weights is near its quantile ``1 - 1/n``,
and the mean of what lies beyond it,

    E[w; w > w_max] = w_max / (n (1 - k)) + ...,

is missing from the sample more often than not. For ``k > 1/3`` the third moment is infinite, the
mean so skewed that estimates are too low by several of their errors, and for ``k > 1/2`` the
variance is infinite; the missing mass, as large as the error or larger, is added to it. (Of 325
samples of 2,000 weights from narrow proposals, Pareto and log-normal laws with a fitted k of 1/3
to 1/2, 95 % intervals held the truth in 88 % without it and in 93 % with it, and 4.0 and 1.8 % were
more than three errors off.)
"""

import numpy as np

from pymc_anneal.evidence.agreement import Estimate
from pymc_anneal.evidence.ais import ais, population_means
from pymc_anneal.evidence.diagnostics import MAX_PARETO_K, weight_pareto_k
from pymc_anneal.evidence.estimate import EvidenceEstimate

# Pareto k above which the third moment of the weights is infinite, and the largest one for which
# the mean is taken to exist.
_INFINITE_SKEWNESS, _LARGEST = 1 / 3, 0.95


def ais_with_tail(
    log_weight: np.ndarray, population_size: int = 1
) -> tuple[EvidenceEstimate, float]:
    """Estimate the log evidence with an error that counts a heavy tail of the weights.

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
    """Return the error of the log of a mean of weights, wider if their tail has shape ``k > 1/3``.

    Parameters
    ----------
    mcse
        The error by the variance of the weights, in nats.
    log_weight : ndarray, any shape
    k
        Shape of their tail.
    """
    if not k > _INFINITE_SKEWNESS or not np.isfinite(mcse):
        return mcse
    return float(np.hypot(mcse, np.log1p(missing_share(log_weight, k))))


def estimate_with_tail(
    name: str, log_weight: np.ndarray, steps: int | None = None, population_size: int = 1
) -> Estimate:
    """Return a named estimate by log weights; its error is infinite if their tail is too heavy."""
    found, k = ais_with_tail(log_weight, population_size=population_size)
    return Estimate(name, found.log_evidence, np.inf if k > MAX_PARETO_K else found.mcse, steps)


def missing_share(log_weight: np.ndarray, k: float) -> float:
    """Return the expected mass beyond the largest weight, as a share of the sum of all.

    Parameters
    ----------
    log_weight : ndarray, any shape
    k : float
        Shape of their tail.
    """
    mean = np.exp(log_weight - log_weight.max()).mean()
    return float(1 / (log_weight.size * (1 - min(k, _LARGEST)) * mean))

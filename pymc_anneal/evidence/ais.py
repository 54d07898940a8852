"""Annealed importance sampling: the estimate of the log evidence and its error.

With ``N`` log weights ``log w_i`` and a normalised reference (Neal 2001),

    log Z = log mean_i w_i,    ESS = (sum w)^2 / sum w^2,    RSE^2 = 1/ESS - 1/N,
    MCSE(log Z) = sqrt(log(1 + RSE^2)),

where the ESS is that of Kiwaki (2015), eq. 5, and the MCSE the standard deviation of the log of a
log-normal variable with this RSE. ``E[w] = Z`` for any schedule and any mixing, so the estimate of
``Z`` is unbiased, and that of ``log Z`` is at most ``log Z`` in expectation.
"""

import numpy as np

from scipy.special import logsumexp
from scipy.stats import norm
from scipy.stats import t as student_t

from pymc_anneal.evidence.estimate import EvidenceEstimate

# Groups of particles that a jackknife leaves out in turn: the relative error of a standard error
# from 40 groups is 1 / sqrt(2 * 39), 11 %.
JACKKNIFE_GROUPS = 40

# Standard errors above an estimate up to which the evidence may be, when something else finds more.
_ERRORS = 3.0

# Bootstrap draws that are held in memory at a time.
_MAX_DRAWS = 1_000_000


def effective_sample_size(log_weight: np.ndarray) -> float:
    """Return ``(sum w)^2 / sum w^2``; 0 if all weights are zero."""
    log_weight = np.ravel(log_weight)
    return float(ess_from_log_sums(logsumexp(log_weight), logsumexp(2 * log_weight)))


def ess_from_log_sums(log_sum: np.ndarray, log_sum_of_squares: np.ndarray) -> np.ndarray:
    """Return the effective sample size from ``log sum w`` and ``log sum w^2``, any shape."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.nan_to_num(np.exp(2 * log_sum - log_sum_of_squares)))  # NaN: all 0


def population_means(log_weight: np.ndarray, population_size: int = 1) -> np.ndarray:
    """Return the log mean weights of populations of consecutive particles.

    Parameters
    ----------
    log_weight : ndarray, shape (..., n)
        Log weights; the particles of a population are consecutive along the last axis.
    population_size : int
        Number of particles in a population; divides ``n``.

    Returns
    -------
    ndarray, shape (..., n / population_size)
    """
    if population_size == 1:
        return log_weight
    rows = log_weight.reshape(*log_weight.shape[:-1], -1, population_size)
    means: np.ndarray = logsumexp(rows, axis=-1) - np.log(population_size)
    return means


def ais(log_weight: np.ndarray, population_size: int = 1) -> EvidenceEstimate:
    """Estimate the log evidence by annealed importance sampling.

    Parameters
    ----------
    log_weight : ndarray, any shape
        Log weights of independent particles; -inf is a weight of zero.
    population_size : int
        Number of consecutive particles along the last axis that were resampled together. Above 1
        the error is that of the mean over populations.

    Returns
    -------
    EvidenceEstimate
        ``-inf`` with an infinite error if all weights are zero.

    Raises
    ------
    ValueError
        There are no weights, or one is NaN or +inf.

    References
    ----------
    Neal (2001), Annealed importance sampling.
    """
    log_weight = np.asarray(log_weight)
    _check_weights(log_weight)
    n, ess = log_weight.size, effective_sample_size(log_weight)
    if ess == 0:
        return EvidenceEstimate(-np.inf, np.inf, 0.0)
    units = population_means(log_weight, population_size)
    rse_squared = _relative_variance(np.exp(units - units.max()))
    if population_size > 1:
        rse_squared *= units.size / (units.size - 1)  # unbiased: there are few populations
        ess = 1 / (rse_squared + 1 / n)
    return EvidenceEstimate(
        log_evidence=float(logsumexp(log_weight) - np.log(n)),
        mcse=float(np.sqrt(np.log1p(rse_squared))),
        ess=float(ess),
    )


def highest_log_evidence(log_weight: np.ndarray) -> float:
    """Return how high the log evidence may be, in nats, by the weights of a run.

    Parameters
    ----------
    log_weight : ndarray, shape (chains, n)
    """
    estimate = ais(log_weight)
    return float(estimate.log_evidence + _ERRORS * estimate.mcse)


def _check_weights(log_weight: np.ndarray) -> None:
    if log_weight.size == 0 or np.isnan(log_weight).any() or np.isposinf(log_weight).any():
        raise ValueError(
            f"Expected log weights that are finite or -inf, found {log_weight.size} of which "
            f"{int(np.isnan(log_weight).sum())} are NaN and "
            f"{int(np.isposinf(log_weight).sum())} are +inf."
        )


def _relative_variance(weight: np.ndarray) -> float:
    """Return the variance of the mean weight, relative to its square."""
    # Differences first: equal weights give an error of exactly zero.
    relative: float = ((weight - weight.mean()) ** 2).sum() / weight.sum() ** 2
    return relative


def student_interval(estimate: EvidenceEstimate, count: int) -> tuple[float, float]:
    """Return the 95 % interval of an estimate that is the mean of a few independent values.

    Parameters
    ----------
    estimate : EvidenceEstimate
        Its error is taken from the spread of the values.
    count : int
        Number of values: populations, or chains.

    Returns
    -------
    lower, upper : float
        In nats.
    """
    half_width = float(student_t.ppf(0.975, count - 1)) * estimate.mcse
    return estimate.log_evidence - half_width, estimate.log_evidence + half_width


def widened(interval: tuple[float, float], estimate: float, error: float) -> tuple[float, float]:
    """Return a 95 % interval about an estimate that counts a further, independent error."""
    below, above = (np.hypot(end - estimate, norm.ppf(0.975) * error) for end in interval)
    return float(estimate - below), float(estimate + above)


def jackknife_error(left_out: np.ndarray) -> float:
    """Return the standard error from the estimates without one group each, shape (groups,)."""
    return float(np.sqrt((len(left_out) - 1) * np.var(left_out)))


def bootstrap_interval(
    log_weight: np.ndarray,
    probability: float = 0.95,
    *,
    resamples: int = 1000,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Compute a bias-corrected and accelerated bootstrap interval of the log evidence, in nats.

    Weights have a long right tail; the acceleration, a sixth of the skewness of the mean, shifts
    the interval to account for it. It is known in closed form, which takes ``O(n)`` operations;
    ``scipy.stats.bootstrap`` finds it by a jackknife in ``O(n^2)``. The ends are infinite if all
    weights are zero.

    References
    ----------
    Efron (1987), Better bootstrap confidence intervals.
    """
    shift = np.max(log_weight)
    if not np.isfinite(shift):
        return -np.inf, np.inf
    weight = np.exp(np.ravel(log_weight) - shift)
    mean = weight.mean()
    if np.ptp(weight) <= 1e-12 * mean:
        return float(np.log(mean) + shift), float(np.log(mean) + shift)
    means = np.sort(_resampled_means(weight, resamples, rng))
    centre = norm.ppf((np.searchsorted(means, mean) + 0.5) / (resamples + 1))
    deviation = weight - mean
    acceleration = (deviation**3).sum() / (6 * (deviation**2).sum() ** 1.5)
    quantile = norm.ppf([0.5 - probability / 2, 0.5 + probability / 2]) + centre
    adjusted = norm.cdf(centre + quantile / (1 - acceleration * quantile))
    with np.errstate(divide="ignore"):  # a bootstrap sample may miss the only weight above zero
        lower, upper = np.log(np.quantile(means, adjusted)) + shift
    return float(lower), float(upper)


def _resampled_means(values: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return the means of bootstrap samples of values of shape ``(n,)``, shape ``(count,)``."""
    rows = max(1, _MAX_DRAWS // values.size)
    sizes = [min(rows, count - i) for i in range(0, count, rows)]

    def draw(rows: int) -> np.ndarray:
        index = rng.integers(0, values.size, (rows, values.size), dtype=np.uint32)
        means: np.ndarray = values[index].mean(axis=1)
        return means

    return np.concatenate([draw(n) for n in sizes])

"""Annealed importance sampling: the estimate and its error, functions of arrays.

With ``N`` log weights ``log w_i`` and a normalised reference (Neal 2001),

    log Z = log mean_i w_i,    ESS = (sum w)^2 / sum w^2,    RSE^2 = 1/ESS - 1/N,
    MCSE(log Z) = sqrt(log(1 + RSE^2)),

the last by matching a log-normal. ``E[w] = Z`` for any schedule and any mixing, so the estimate
of ``Z`` is unbiased and ``E[log Z estimate] <= log Z``.
"""

from collections.abc import Sequence

import numpy as np

from scipy.special import logsumexp
from scipy.stats import norm
from scipy.stats import t as student_t

from pymc_anneal.evidence.estimate import EvidenceEstimate


def effective_sample_size(log_weight: np.ndarray) -> float:
    """Return ``(sum w)^2 / sum w^2``; 0 where all weights are zero."""
    log_weight = np.ravel(log_weight)
    log_sum = logsumexp(log_weight)
    return float(np.exp(2 * log_sum - logsumexp(2 * log_weight))) if np.isfinite(log_sum) else 0.0


def population_means(log_weight: np.ndarray, population_size: int = 1) -> np.ndarray:
    """Log mean weights of independent populations, neighbours along the last axis.

    Parameters
    ----------
    log_weight : ndarray, shape (..., n)
    population_size
        Particles in each; divides ``n``.

    Returns
    -------
    ndarray, shape (..., n / population_size)
    """
    if population_size == 1:
        return log_weight
    rows = log_weight.reshape(*log_weight.shape[:-1], -1, population_size)
    return logsumexp(rows, axis=-1) - np.log(population_size)


def ais(
    log_weight: np.ndarray, strata: np.ndarray | None = None, population_size: int = 1
) -> EvidenceEstimate:
    """Estimate the log evidence by annealed importance sampling.

    Parameters
    ----------
    log_weight : ndarray, any shape
        Log weights of independent particles; -inf is a weight of zero.
    strata : ndarray of int, broadcast to the shape of the weights, optional
        Which of several rounds a particle belongs to. What the rounds' mean weights differ by is
        then not counted as error: their sizes were fixed, not drawn.
    population_size
        Particles, neighbours along the last axis, that share ancestors because they were
        resampled: the error is then that of the mean over populations.

    Returns
    -------
    EvidenceEstimate
        ``-inf`` with an infinite error where all weights are zero.

    Raises
    ------
    ValueError
        There are no weights, or one is NaN or +inf.
    """
    log_weight = np.asarray(log_weight)
    if log_weight.size == 0 or np.isnan(log_weight).any() or np.isposinf(log_weight).any():
        raise ValueError(
            f"Expected log weights that are finite or -inf, found {log_weight.size} of which "
            f"{int(np.isnan(log_weight).sum())} are NaN and "
            f"{int(np.isposinf(log_weight).sum())} are +inf."
        )
    n, ess = log_weight.size, effective_sample_size(log_weight)
    if ess == 0:
        return EvidenceEstimate(-np.inf, np.inf, 0.0)
    units = population_means(log_weight, population_size)
    strata = strata if strata is None else np.asarray(strata)[..., ::population_size]
    # Differences first: equal weights give an error of exactly zero.
    relative = np.exp(units - units.max())
    deviation = np.concatenate([r - r.mean() for r in _by_stratum(relative, strata)])
    rse_squared = (deviation**2).sum() / relative.sum() ** 2
    if population_size > 1:
        rse_squared *= units.size / (units.size - 1)  # they are few
        ess = 1 / (rse_squared + 1 / n)
    return EvidenceEstimate(
        log_evidence=float(logsumexp(log_weight) - np.log(n)),
        mcse=float(np.sqrt(np.log1p(rse_squared))),
        ess=ess,
    )


def population_interval(estimate: EvidenceEstimate, populations: int) -> tuple[float, float]:
    """95 % interval of an estimate whose error is the spread of a few populations: Student's."""
    half_width = float(student_t.ppf(0.975, populations - 1)) * estimate.mcse
    return estimate.log_evidence - half_width, estimate.log_evidence + half_width


def jackknife_error(left_out: np.ndarray) -> float:
    """Return the standard error from the values with one group left out at a time."""
    return float(np.sqrt((len(left_out) - 1) * np.var(left_out)))


def _by_stratum(values: np.ndarray, strata: np.ndarray | None) -> list[np.ndarray]:
    """Split values by stratum; each part flat."""
    if strata is None:
        return [np.ravel(values)]
    labels = np.broadcast_to(strata, values.shape)
    return [values[labels == label] for label in np.unique(strata)]


def bootstrap_interval(
    log_weight: np.ndarray,
    probability: float = 0.95,
    *,
    strata: np.ndarray | None = None,
    resamples: int = 1000,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Bias-corrected and accelerated bootstrap interval of the log evidence (Efron 1987).

    Weights have a long right tail; the acceleration, a sixth of the skewness of the mean, moves
    the interval to where the truth then lies.

    Parameters
    ----------
    log_weight : ndarray, any shape
        Log weights of independent particles.
    probability
        Coverage.
    strata : ndarray of int, broadcast to the shape of the weights, optional
        Which of several rounds a particle belongs to; each is resampled by itself.
    resamples
        Bootstrap resamples.
    rng
        Source of randomness.

    Returns
    -------
    lower, upper : float
        In nats.
    """
    shift = np.max(log_weight)
    if not np.isfinite(shift):
        return -np.inf, np.inf
    parts = _by_stratum(np.exp(log_weight - shift), strata)
    mean = np.concatenate(parts).mean()
    if all(np.ptp(part) <= 1e-12 * mean for part in parts):
        return float(np.log(mean) + shift), float(np.log(mean) + shift)
    shares = [part.size / np.size(log_weight) for part in parts]
    resampled = [_resampled_means(part, resamples, rng) for part in parts]
    means = np.sort(np.average(resampled, axis=0, weights=shares))
    centre = norm.ppf((np.searchsorted(means, mean) + 0.5) / (resamples + 1))
    deviation = np.concatenate([part - part.mean() for part in parts])
    acceleration = (deviation**3).sum() / (6 * (deviation**2).sum() ** 1.5)
    quantile = norm.ppf([0.5 - probability / 2, 0.5 + probability / 2]) + centre
    adjusted = norm.cdf(centre + quantile / (1 - acceleration * quantile))
    with np.errstate(divide="ignore"):  # a resample may miss the only weight above zero
        lower, upper = np.log(np.quantile(means, adjusted)) + shift
    return float(lower), float(upper)


def _resampled_means(values: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    rows = max(1, 1_000_000 // values.size)  # bounds the memory, saves the loop
    sizes = [min(rows, count - i) for i in range(0, count, rows)]

    def draw(rows: int) -> np.ndarray:
        index = rng.integers(0, values.size, (rows, values.size), dtype=np.uint32)
        return values[index].mean(axis=1)

    return np.concatenate([draw(n) for n in sizes])


def combined_log_weights(weights: Sequence[np.ndarray], costs: Sequence[float]) -> np.ndarray:
    """Pool the log weights of several rounds.

    Each round's mean weight is unbiased for Z; their average with shares in proportion to the
    rounds' costs, which are fixed before they run, is the mean of the weights returned.

    Parameters
    ----------
    weights : sequence of ndarray, shapes (chains, n_r)
    costs : sequence of float
        Size of each round.

    Returns
    -------
    ndarray, shape (chains, sum n_r)
    """
    counts = np.array([w.shape[1] for w in weights])
    share = np.asarray(costs, dtype=float) / np.sum(costs)
    scaled = [
        w + np.log(c * counts.sum() / n) for w, c, n in zip(weights, share, counts, strict=True)
    ]
    return np.concatenate(scaled, axis=1)

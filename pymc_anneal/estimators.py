"""Estimates of the log evidence: pure functions of arrays.

Annealed importance sampling (Neal 2001): with ``N`` log weights ``log w_i`` and a normalised
reference,

    log Z = log mean_i w_i,    ESS = (sum w)^2 / sum w^2,    RSE^2 = 1/ESS - 1/N,
    MCSE(log Z) = sqrt(log(1 + RSE^2)),

the last by matching a log-normal. ``E[w] = Z`` for any schedule and any mixing, so the estimate
of ``Z`` is unbiased and ``E[log Z estimate] <= log Z``.

With draws of both ends, ``a_i`` the log weights from the reference to the target and ``b_j`` those
on trajectories that began in the target, the bridge estimate of least variance (Bennett 1976; Meng
& Wong 1996), or Bennett's acceptance ratio, is the solution of

    Z = mean_i[e^{a_i} / (s_F + s_R e^{a_i} / Z)] / mean_j[1 / (s_F + s_R e^{b_j} / Z)],

``s_F = N_F / (N_F + N_R) = 1 - s_R``.
"""

from typing import NamedTuple

import numpy as np

from scipy.optimize import brentq
from scipy.special import expit, logsumexp
from scipy.stats import norm
from scipy.stats import t as student_t

__all__ = [
    "BridgeEstimate",
    "EvidenceEstimate",
    "ais",
    "bar",
    "bootstrap_interval",
    "effective_sample_size",
    "jackknife_error",
    "population_interval",
    "population_means",
]


class EvidenceEstimate(NamedTuple):
    """An estimate of a log evidence, in nats.

    Attributes
    ----------
    log_evidence : float
    mcse : float
        Monte Carlo standard error.
    ess : float
        Effective sample size of the weights.
    """

    log_evidence: float
    mcse: float
    ess: float


def effective_sample_size(log_weight: np.ndarray) -> float:
    """Return ``(sum w)^2 / sum w^2``; 0 where all weights are zero."""
    log_weight = np.ravel(log_weight)
    log_sum = logsumexp(log_weight)
    return float(np.exp(2 * log_sum - logsumexp(2 * log_weight))) if np.isfinite(log_sum) else 0.0


def population_means(log_weight: np.ndarray, population: int = 1) -> np.ndarray:
    """Log mean weights of independent populations, neighbours along the last axis.

    Parameters
    ----------
    log_weight : ndarray, shape (..., n)
    population
        Particles in each; divides ``n``.

    Returns
    -------
    ndarray, shape (..., n / population)
    """
    if population == 1:
        return log_weight
    rows = log_weight.reshape(*log_weight.shape[:-1], -1, population)
    return logsumexp(rows, axis=-1) - np.log(population)


def ais(
    log_weight: np.ndarray, strata: np.ndarray | None = None, population: int = 1
) -> EvidenceEstimate:
    """Estimate the log evidence by annealed importance sampling.

    Parameters
    ----------
    log_weight : ndarray, any shape
        Log weights of independent particles; -inf is a weight of zero.
    strata : ndarray of int, broadcast to the shape of the weights, optional
        Which of several rounds a particle belongs to. What the rounds' mean weights differ by is
        then not counted as error: their sizes were fixed, not drawn.
    population
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
    units = population_means(log_weight, population)
    strata = strata if strata is None else np.asarray(strata)[..., ::population]
    # Differences first: equal weights give an error of exactly zero.
    relative = np.exp(units - units.max())
    deviation = np.concatenate([r - r.mean() for r in _by_stratum(relative, strata)])
    rse_squared = (deviation**2).sum() / relative.sum() ** 2
    if population > 1:
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


class BridgeEstimate(NamedTuple):
    """An estimate of a log evidence from draws of both ends, in nats.

    Attributes
    ----------
    log_evidence : float
    forward_terms, reverse_terms : ndarray, shapes of the log weights
        ``e^a / (s_F Z + s_R e^a)`` and ``1 / (s_F + s_R e^b / Z)``, whose means agree; the error
        of the estimate is that of these two means.
    """

    log_evidence: float
    forward_terms: np.ndarray
    reverse_terms: np.ndarray

    def mcse(self, reverse_ess: float | None = None) -> float:
        """Monte Carlo standard error, by the delta method (Micaletto & Vehtari 2025).

        Parameters
        ----------
        reverse_ess
            Effective number of the reverse draws, if they are not independent.
        """
        f, r = self.forward_terms, self.reverse_terms
        n_reverse = r.size if reverse_ess is None else reverse_ess
        relative = f.var() / (f.size * f.mean() ** 2) + r.var() / (n_reverse * r.mean() ** 2)
        return float(np.sqrt(np.log1p(relative)))

    def interval(self, reverse_ess: float | None = None) -> tuple[float, float]:
        """95 % interval, normal on the log scale; ``reverse_ess`` as for :meth:`mcse`."""
        half_width = float(norm.ppf(0.975)) * self.mcse(reverse_ess)
        return self.log_evidence - half_width, self.log_evidence + half_width


def bar(
    log_forward: np.ndarray, log_reverse: np.ndarray, reverse_ess: float | None = None
) -> BridgeEstimate:
    """Combine log weights of both directions (Bennett 1976; Meng & Wong 1996).

    Parameters
    ----------
    log_forward : ndarray, any shape
        Log weights ``log f_1(x) - log f_0(x)`` of draws of the reference, or of forward runs.
    log_reverse : ndarray, any shape
        The same log ratio at draws of the target, or along reverse runs.
    reverse_ess
        Effective number of the reverse draws, if they are not independent: their share in the
        bridge. The estimate is consistent for any.

    Returns
    -------
    BridgeEstimate

    Raises
    ------
    ValueError
        A log weight is NaN or +inf, a reverse one -inf, or all forward ones are -inf.
    """
    a, b = np.asarray(log_forward, dtype=float), np.asarray(log_reverse, dtype=float)
    sound = np.isfinite(a).any() and (a < np.inf).all() and b.size and np.isfinite(b).all()
    if not sound:
        raise ValueError(
            "Expected forward log weights that are finite or -inf, not all -inf, and finite "
            f"reverse ones; found {a.size} of which {int(np.isfinite(a).sum())} are finite, and "
            f"{b.size} of which {int(np.isfinite(b).sum())} are."
        )
    n_reverse = b.size if reverse_ess is None else reverse_ess
    log_odds = np.log(n_reverse / a.size)  # log s_R / s_F

    def log_terms(log_z: float) -> tuple[np.ndarray, np.ndarray]:
        # log e^x / (1 + e^x) at x = a - log Z + log odds, and log 1 / (1 + e^x) at b.
        return -np.logaddexp(0, log_z - log_odds - a), -np.logaddexp(0, b - log_z + log_odds)

    def gap(log_z: float) -> float:
        forward, reverse = log_terms(log_z)
        log_ratio = logsumexp(forward) - np.log(a.size) - logsumexp(reverse) + np.log(b.size)
        return log_ratio - log_odds

    finite = np.concatenate([a[np.isfinite(a)], np.ravel(b)])
    low, high = finite.min() - 50 - abs(log_odds), finite.max() + 50 + abs(log_odds)
    log_z = brentq(gap, low, high, xtol=1e-12)
    share = n_reverse / (a.size + n_reverse)
    forward = expit(a - log_z + log_odds) / share
    return BridgeEstimate(float(log_z), forward, expit(log_z - b - log_odds) / (1 - share))


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

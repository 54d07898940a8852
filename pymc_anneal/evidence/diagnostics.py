"""Diagnostics of an estimate by annealed importance sampling, and the verdict on it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pymc_anneal.base.arviz_compat import pareto_k
from pymc_anneal.evidence.agreement import Estimate, chain_doubts, excess_doubts, lag
from pymc_anneal.evidence.ais import ais, effective_sample_size, population_means
from pymc_anneal.evidence.verdict import Verdict, verdict_from

# Pareto k above which the error of importance sampling is unusable (Vehtari et al. 2024).
MAX_PARETO_K = 0.7

# Smallest effective sample size of a trusted estimate: the relative error of a standard error from
# 100 draws is 1 / sqrt(2 * 100), 7 %.
MIN_ESS = 100.0

# Standard errors by which two estimates of the same log evidence may differ: false alarms in about
# one comparison of 16,000.
MAX_DISAGREEMENT = 4.0

# Largest k for which the mean is taken to exist, and by how much weights beyond the largest one may
# raise the mean for it if that is to count in the error alone. Of 3,800 samples of 400 to 4,000
# weights from Pareto laws and narrow proposals whose fitted k was above 0.7, 408 left out as
# little, and none was more than three of the errors off that count it.
LARGEST_K, _HARMLESS = 0.95, 0.03

# Largest weight, in units of the mean weight, of weights that are nearly even.
_EVEN_WEIGHTS = 2.0

# Ratio of two estimates of the variance of log weights from which on these are not normal.
_CLUSTERS = 2.0

# Interquartile range of a standard normal variable.
_IQR_OF_NORMAL = 1.349


def weight_pareto_k(log_weight: np.ndarray) -> float:
    """Return the Pareto k of the non-zero weights; -inf if they are nearly even.

    Weights of which none is above twice the mean have no tail to extrapolate. A Pareto fit to them
    follows accidents: a mode whose weights are 10 % above the others looks like a heavy tail.

    Parameters
    ----------
    log_weight : ndarray, any shape
        Log weights; -inf is a weight of zero.

    References
    ----------
    Vehtari, Simpson, Gelman, Yao & Gabry (2024), Pareto smoothed importance sampling.
    """
    finite = np.ravel(log_weight)[np.isfinite(np.ravel(log_weight))]
    if not finite.size:
        return pareto_k(finite)
    return -np.inf if largest_weight(finite) <= _EVEN_WEIGHTS else pareto_k(np.sort(finite))


def largest_weight(log_weight: np.ndarray) -> float:
    """Return the largest weight in units of the mean one."""
    return float(1 / np.exp(log_weight - log_weight.max()).mean())


def missing_share(log_weight: np.ndarray, k: float) -> float:
    """Return by how much a weight beyond the largest would raise the mean, as a share of it.

    Parameters
    ----------
    log_weight : ndarray, any shape
    k : float
        Shape of their tail.
    """
    beyond = 1 / (1 - np.clip(k, 0.0, LARGEST_K))
    return float((beyond * largest_weight(log_weight) - 1) / log_weight.size)


def leaves_error_unknown(log_weight: np.ndarray, k: float) -> bool:
    """Whether a tail of shape `k` leaves the error unknown: heavy, and with large weights.

    Of many weights of which none is large, as where a normal density meets exponential tails, a
    heavy tail hides little, whatever its shape.
    """
    return k > MAX_PARETO_K and missing_share(log_weight, LARGEST_K) > _HARMLESS


def log_weight_variance(log_weight: np.ndarray) -> float:
    """Estimate the effective variance ``S`` of the non-zero log weights: ``n RSE^2 = exp(S) - 1``.

    With perfect transitions the log weights are about normal (Neal 2001), and ``S`` is then their
    variance. A small ``S`` is estimated from the effective sample size and a large one from the
    quartiles. The larger of the two estimates is returned, so that neither a few particles of
    negligible weight nor a right tail that was missed distort it. Where quartiles give more than
    twice as much though the tail of the weights is light, they lie in two clusters of particles,
    such as those in a spike and those that have stayed in the slab, whose distance no longer run
    shortens: the effective sample size decides alone. (512 normal log weights of variance 0.5 to 4:
    taken for clusters in 2 of 300 samples.)

    Parameters
    ----------
    log_weight : ndarray, any shape
        Log weights; -inf is a weight of zero.

    Returns
    -------
    float
        In squared nats; infinite if there are fewer than two non-zero weights.

    References
    ----------
    Neal (2001), Annealed importance sampling, section 4. Grosse, Maddison & Salakhutdinov (2013),
    Annealing between distributions by averaging moments, section 3.
    """
    finite = np.ravel(log_weight)[np.isfinite(np.ravel(log_weight))]
    if finite.size < 2:
        return float("inf")
    by_ess = max(np.log(finite.size / effective_sample_size(finite)), 0.0)  # of equal weights
    with np.errstate(over="ignore"):  # penalties of 1e300 are as good as infinite
        by_quartiles = float(np.square(median_and_robust_sd(finite)[1]))
    if by_quartiles > _CLUSTERS * by_ess and weight_pareto_k(finite) <= MAX_PARETO_K:
        return float(by_ess)
    return float(max(by_ess, by_quartiles))


def median_and_robust_sd(values: np.ndarray) -> tuple[float, float]:
    """Return the median of finite values, and the standard deviation from their quartiles."""
    low, centre, high = np.quantile(values, [0.25, 0.5, 0.75])
    return float(centre), float((high - low) / _IQR_OF_NORMAL)


def assess(
    log_weight: np.ndarray,
    *,
    target_mcse: float,
    steps: int,
    seconds: float = np.nan,
    earlier: Sequence[Estimate] = (),
    interruption: str = "",
    mcse: float | None = None,
    doubts: Sequence[str] = (),
    population_size: int = 1,
) -> Verdict:
    """Return the verdict on an estimate by annealed importance sampling.

    Parameters
    ----------
    log_weight : ndarray, shape (chains, particles)
        Log weights.
    target_mcse : float
        Wanted Monte Carlo standard error, in nats.
    steps : int
        Number of steps of the run.
    seconds : float
        Time of the run, from which that of a longer one is predicted; NaN if it is not known.
    earlier : sequence of Estimate
        Estimates made before the run. One above that of the run raises a doubt; those of annealed
        runs tell, together with that of the run, whether the transitions lag behind the path.
    interruption : str
        What is kept of a run that was stopped; empty if it was not.
    mcse : float, optional
        Error of the estimate in nats, if it is not that of the weights alone.
    doubts : sequence of str
        Further doubts about the estimate.
    population_size : int
        Number of consecutive particles that were resampled together; see
        :func:`~pymc_anneal.evidence.ais.ais`. Above 1 the chains are not compared, because the
        error is already taken from the spread of the populations.
    """
    estimate = ais(log_weight, population_size)
    units = population_means(log_weight, population_size)
    k = weight_pareto_k(units)
    heavy = leaves_error_unknown(units, k)
    run = Estimate("the run", estimate.log_evidence, estimate.mcse, steps)
    found = [
        *doubts,
        *([_doubt_tail(k)] if heavy else []),
        *(chain_doubts(log_weight) if population_size == 1 else []),
        *excess_doubts(run, earlier),
    ]
    error = estimate.mcse if mcse is None else mcse
    shortfalls = _shortfalls(error, estimate.ess, target_mcse, _Size(steps, seconds))
    lagging = None if heavy else lag([*earlier, run])
    if lagging is not None and lagging.matters(error):
        shortfalls.append(lagging.describe(target_mcse))
    stopped = [f"the run was interrupted: {interruption}"] if interruption else []
    # An interruption is named beside doubts too: it may be what they come from.
    return verdict_from([*found, *stopped] if found else [], [*shortfalls, *stopped])


def _doubt_tail(k: float) -> str:
    return (
        f"Pareto k of the weights is {k:.2f} (above {MAX_PARETO_K}): a few particles dominate the "
        "estimate and its error is unreliable; take more steps"
    )


class _Size(NamedTuple):
    """Steps and seconds of a run."""

    steps: int
    seconds: float

    def times(self, factor: float) -> str:
        """Advise a run that is longer by a factor, and say how long it takes."""
        advice, seconds = f"try steps={int(np.ceil(self.steps * factor))}", factor * self.seconds
        return f"{advice} (about {_duration(seconds)})" if seconds > 0 else advice


def _duration(seconds: float) -> str:
    """Return a time in the unit in which it is read."""
    for unit, length in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.2g} seconds"


def _shortfalls(mcse: float, ess: float, target: float, size: _Size) -> list[str]:
    if not np.isfinite(mcse):
        return [f"all weights are zero; {size.times(2)} or more draws"]
    shortfalls = []
    if mcse > target:
        # RSE^2 = (exp(S) - 1)/N with S ~ 1/K: doubling K more than halves the square error.
        factor = max(2.0, (mcse / target) ** 2)
        shortfalls.append(
            f"the error {mcse:.3g} misses the target {target:.3g}; {size.times(factor)}"
        )
    if ess < MIN_ESS:
        shortfalls.append(
            f"the weights amount to {ess:.0f} independent draws (below {MIN_ESS:.0f}); "
            f"{size.times(2)} or more draws"
        )
    return shortfalls

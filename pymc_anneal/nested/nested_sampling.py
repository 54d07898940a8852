"""The log evidence from nested sampling, its error, and checks of a run.

Nested sampling (Skilling 2006) replaces the live point of the lowest likelihood again and again by
a draw of the prior with a higher one. The prior mass ``X_i`` above the likelihood ``L_i`` of the
``i``-th dead point shrinks by a random factor whose distribution is known,

    X_i = X_{i-1} t_i,    t_i ~ Beta(n_i, 1),    Z = sum_i L_i (X_{i-1} - X_{i+1}) / 2

with ``n_i`` live points. The factors are simulated; the spread of ``log Z`` is its error, of about
``sqrt(H / n)`` for an information ``H``. It holds if the new points are independent draws of the
constrained prior: their ranks among the live points are then uniform (Fowlie, Handley & Su 2020).
The reverse does not hold: a fault that is the same at every level, live points included, leaves the
ranks uniform. Independent runs are the other check.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scipy.special import logsumexp
from scipy.stats import chi2, kstest, norm

from pymc_anneal.evidence.ais import effective_sample_size
from pymc_anneal.evidence.diagnostics import MIN_ESS
from pymc_anneal.evidence.verdict import Verdict, verdict_from

# Simulated sequences of prior masses: the relative error of their standard deviation is 5 %.
_SIMULATIONS = 200

# Level of the tests of the ranks and of the agreement of runs: false alarms in one of 10,000.
_LEVEL = 1e-4


class NestedRun(NamedTuple):
    """One run of a nested sampler.

    Attributes
    ----------
    log_evidence, mcse : float
        Estimate and its standard error, in nats.
    position : ndarray, shape (n, d)
        Points in the unconstrained space.
    log_weight : ndarray, shape (n,)
        Their log weights in the posterior, up to a constant.
    information : float
        Information ``H`` of the posterior relative to the prior, in nats.
    evaluations : int
        Evaluations of the likelihood.
    doubts : tuple of str
        Signs that the estimate or its error is wrong.
    """

    log_evidence: float
    mcse: float
    position: np.ndarray
    log_weight: np.ndarray
    information: float
    evaluations: int
    doubts: tuple[str, ...] = ()

    @property
    def ess(self) -> float:
        """Effective sample size of the weights."""
        return effective_sample_size(self.log_weight)


class Shrinkage(NamedTuple):
    """Estimate of ``log Z`` from the likelihoods of the dead points.

    Attributes
    ----------
    log_evidence, mcse : float
        Mean and standard deviation of ``log Z`` over the simulated prior masses, in nats.
    log_weight : ndarray, shape (n,)
        Mean log weights ``log L_i (X_{i-1} - X_{i+1}) / 2``.
    """

    log_evidence: float
    mcse: float
    log_weight: np.ndarray


def simulate_shrinkage(
    log_likelihood: np.ndarray, n_live: np.ndarray, rng: np.random.Generator
) -> Shrinkage:
    """Estimate the log evidence by simulating the prior masses of the dead points.

    Parameters
    ----------
    log_likelihood : ndarray, shape (n,)
        Log likelihoods of the dead points, in increasing order, the last live points included.
    n_live : ndarray of int, shape (n,)
        Number of live points before each of them was removed.
    rng : Generator

    References
    ----------
    Skilling (2006), Nested sampling for general Bayesian computation, section 3.
    """
    shape = len(log_likelihood), _SIMULATIONS
    # Minus log of a Beta(n, 1) variable is exponential with mean 1/n.
    log_mass = -np.cumsum(rng.standard_exponential(shape) / n_live[:, None], axis=0)
    zero = np.zeros((1, _SIMULATIONS))
    before = np.concatenate([zero, log_mass[:-1]])
    after = np.concatenate([log_mass[1:], zero - np.inf])
    log_weight = before + np.log(-np.expm1(after - before)) - np.log(2) + log_likelihood[:, None]
    log_z = logsumexp(log_weight, axis=0)
    mean_weight = logsumexp(log_weight - log_z, axis=1) - np.log(_SIMULATIONS)
    return Shrinkage(float(log_z.mean()), float(log_z.std(ddof=1)), mean_weight)


def count_live(birth: np.ndarray, death: np.ndarray) -> np.ndarray:
    """Count the live points before each death.

    Points that were removed together count as removed one after the other.

    Parameters
    ----------
    birth, death : ndarray, shape (n,)
        Log likelihood above which a point was drawn (-inf for the first ones), and its own, in
        increasing order.
    """
    live: np.ndarray = np.searchsorted(np.sort(birth), death, side="left") - np.arange(len(death))
    return live


def insertion_ranks(birth: np.ndarray, death: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Compute the rank of each new point among the points that were live when it was drawn.

    Parameters
    ----------
    birth, death : ndarray, shape (n,)
        As for :func:`count_live`.
    rng : Generator
        Spreads the ranks, which are whole numbers, evenly.

    Returns
    -------
    ndarray
        Uniform on (0, 1) if the points are draws of the constrained prior.

    References
    ----------
    Fowlie, Handley & Su (2020), Nested sampling cross-checks using order statistics.
    """
    ranks = []
    for threshold in np.unique(birth[np.isfinite(birth)]):
        new = death[birth == threshold]
        live = death[(birth < threshold) & (death > threshold)]
        # Among points of the same likelihood any rank is as likely.
        low, high = (np.searchsorted(live, new, side) for side in ("left", "right"))
        within = rng.uniform(size=len(new)) * (high - low + 1)
        ranks.append((low + within) / (len(live) + 1))
    return np.concatenate(ranks) if ranks else np.empty(0)


def doubt_ranks(ranks: np.ndarray) -> tuple[str, ...]:
    """Name uneven insertion ranks: new points that are no draws of the constrained prior."""
    if not len(ranks) or kstest(ranks, "uniform").pvalue > _LEVEL:
        return ()
    return (
        "the new points are not spread evenly among the live points (insertion ranks, mean "
        f"{ranks.mean():.2f}): they are not independent draws of the constrained prior; take more "
        "live points",
    )


def information(log_likelihood: np.ndarray, log_weight: np.ndarray, log_evidence: float) -> float:
    """Return the information ``H = E[log L] - log Z`` of the posterior, in nats."""
    weight = np.exp(log_weight - logsumexp(log_weight))
    held = weight > 0
    return float((weight[held] * log_likelihood[held]).sum() - log_evidence)


class NestedEstimate(NamedTuple):
    """Log evidence of independent runs, in nats.

    Attributes
    ----------
    log_evidence, mcse : float
    interval : tuple of float
        95 % interval.
    ess : float
        Effective sample size of the weights of all runs.
    verdict : Verdict
    """

    log_evidence: float
    mcse: float
    interval: tuple[float, float]
    ess: float
    verdict: Verdict


def combine_runs(runs: Sequence[NestedRun], target_mcse: float) -> NestedEstimate:
    """Average the log evidences of independent runs.

    If the runs differ by more than their errors, the error is widened by the ratio (Birge 1932).
    """
    values, errors = np.array([(r.log_evidence, r.mcse) for r in runs]).T
    score = float((((values - values.mean()) / _positive(errors)) ** 2).sum())
    freedom = len(runs) - 1
    widened = max(1.0, np.sqrt(score / freedom)) if freedom else 1.0
    mcse = float(np.sqrt((errors**2).sum()) / len(runs) * widened)
    doubts = list(dict.fromkeys(doubt for run in runs for doubt in run.doubts))
    if freedom and chi2.sf(score, freedom) < _LEVEL:
        doubts.append(
            f"the runs disagree by more than their errors ({values.min():.2f} to "
            f"{values.max():.2f}): they do not all find the same modes; take more live points"
        )
    centre, ess = float(values.mean()), float(sum(run.ess for run in runs))
    half_width = float(norm.ppf(0.975)) * mcse
    return NestedEstimate(
        centre,
        mcse,
        (centre - half_width, centre + half_width),
        ess,
        _assess(mcse, target_mcse, ess, doubts),
    )


def _positive(errors: np.ndarray) -> np.ndarray:
    """Return errors that can be divided by: runs without a likelihood agree exactly."""
    return np.asarray(np.maximum(errors, 1e-6))


def _assess(mcse: float, target_mcse: float, ess: float, doubts: Sequence[str]) -> Verdict:
    shortfalls = []
    if mcse > target_mcse:
        factor = (mcse / target_mcse) ** 2
        shortfalls.append(
            f"the error {mcse:.3g} misses the target {target_mcse:.3g}; take {factor:.1f} times "
            "the live points"
        )
    if ess < MIN_ESS:
        shortfalls.append(f"the weights amount to {ess:.0f} draws (below {MIN_ESS:.0f})")
    return verdict_from(doubts, shortfalls, "more draws needed")

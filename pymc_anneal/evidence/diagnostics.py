"""Whether an estimate can be trusted, from arrays, in plain words."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scipy.stats import chi2

from pymc_anneal.base.arviz_compat import pareto_k
from pymc_anneal.evidence.ais import ais, effective_sample_size, population_means

# Vehtari, Simpson, Gelman, Yao & Gabry (2024): above it importance sampling errors are not usable.
MAX_PARETO_K = 0.7


_MIN_ESS = 100.0


# Standard errors by which the pilot and the counted run may differ, and the level at which
# chains of one run are said to disagree: false alarms in about one run of 10,000.
_MAX_DISAGREEMENT = 5.0


_CHAINS_LEVEL = 1e-4


class Verdict(NamedTuple):
    """A judgement and its reasons.

    Attributes
    ----------
    judgement : str
        ``"trust"``, ``"more steps needed"`` or ``"do not trust"``.
    reasons : tuple of str
        What speaks against the estimate.
    """

    judgement: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        """Return the judgement with its reasons."""
        return f"{self.judgement}: {'; '.join(self.reasons)}" if self.reasons else self.judgement


def weight_pareto_k(log_weight: np.ndarray) -> float:
    """Pareto k of the non-zero weights; -inf where the largest are all equal: no tail."""
    finite = np.sort(np.ravel(log_weight)[np.isfinite(np.ravel(log_weight))])
    # The weights that the fit looks at, and the one below them (Vehtari et al. 2024, section 2.4).
    tail = int(np.ceil(min(0.2 * finite.size, 3 * np.sqrt(finite.size)))) + 1
    return -np.inf if finite.size and np.ptp(finite[-tail:]) < 1e-8 else pareto_k(finite)


def log_weight_variance(log_weight: np.ndarray) -> float:
    """Effective variance ``S`` of the non-zero log weights: ``n RSE^2 = exp(S) - 1``.

    For normal log weights this is their variance. Their effective sample size tells it when it
    is small, their quartiles when it is large; the larger of the two is returned, so that neither
    a few stray particles of no weight nor a missed right tail distort it.
    """
    finite = np.ravel(log_weight)[np.isfinite(np.ravel(log_weight))]
    if finite.size < 2:
        return float("inf")
    by_ess = np.log(finite.size / effective_sample_size(finite))
    low, high = np.quantile(finite, [0.25, 0.75])
    return float(max(by_ess, ((high - low) / 1.349) ** 2))


def assess(
    log_weight: np.ndarray,
    strata: np.ndarray | None = None,
    *,
    target_mcse: float,
    steps: int,
    pilots: Sequence[tuple[float, float]] = (),
    interrupted: bool = False,
    mcse: float | None = None,
    doubts: Sequence[str] = (),
    population_size: int = 1,
) -> Verdict:
    """Judge an estimate by annealed importance sampling.

    Parameters
    ----------
    log_weight : ndarray, shape (chains, particles)
        Log weights.
    strata : ndarray of int, shape (particles,), optional
        Which of several rounds a particle belongs to.
    target_mcse
        The error that was asked for.
    steps
        Number of steps of the run.
    pilots
        Log evidences of the pilots and their standard errors.
    interrupted
        The run was stopped before all its particles were done.
    mcse
        Error of the estimate, if it is not that of the weights alone.
    doubts
        What else speaks against the estimate.
    population_size
        See :func:`ais`. Populations are too few for a tail, and the error is their spread: there
        is no other against which chains could disagree.

    Returns
    -------
    Verdict
    """
    estimate = ais(log_weight, strata, population_size)
    doubts = [
        *doubts,
        *_doubt_tail(weight_pareto_k(population_means(log_weight, population_size))),
        *(_doubt_chains(log_weight, strata) if population_size == 1 else []),
        *(d for p in pilots for d in _doubt_pilot(estimate.log_evidence, estimate.mcse, *p)),
    ]
    if doubts:
        return Verdict("do not trust", tuple(doubts))
    error = estimate.mcse if mcse is None else mcse
    wants = _shortfalls(error, estimate.ess, target_mcse, steps)
    if interrupted:
        wants.append("the run was interrupted")
    return Verdict("more steps needed", tuple(wants)) if wants else Verdict("trust", ())


def _doubt_tail(k: float) -> list[str]:
    if k <= MAX_PARETO_K or np.isnan(k):
        return []
    return [
        f"Pareto k of the weights is {k:.2f} (above {MAX_PARETO_K}): a few particles decide, and "
        "the error is not to be believed; take more steps"
    ]


def _doubt_chains(log_weight: np.ndarray, strata: np.ndarray | None) -> list[str]:
    estimates = [ais(row, strata) for row in log_weight]
    values = np.array([e.log_evidence for e in estimates])
    errors = np.array([e.mcse for e in estimates])
    if len(values) < 2 or not np.isfinite(values).all() or not (errors > 0).all():
        return []
    centre = np.average(values, weights=errors**-2)
    score = (((values - centre) / errors) ** 2).sum()
    if chi2.sf(score, len(values) - 1) > _CHAINS_LEVEL:
        return []
    return [
        f"the chains disagree by more than their errors ({values.min():.3f} to "
        f"{values.max():.3f}); take more steps"
    ]


def _doubt_pilot(value: float, error: float, pilot: float, pilot_error: float) -> list[str]:
    if abs(value - pilot) <= _MAX_DISAGREEMENT * np.hypot(error, pilot_error):
        return []
    return [
        f"the pilot found {pilot:.2f} +- {pilot_error:.2f} by another estimator; the transitions "
        "may miss a part of the posterior: take more steps or another transition"
    ]


def _shortfalls(mcse: float, ess: float, target: float, steps: int) -> list[str]:
    wants = []
    if not np.isfinite(mcse):
        return [f"all weights are zero; try steps={2 * steps} or more draws"]
    if mcse > target:
        # RSE^2 = (exp(S) - 1)/N with S ~ 1/K: doubling K more than halves the square error.
        factor = max(2.0, (mcse / target) ** 2)
        wants.append(
            f"the error {mcse:.3g} misses the target {target:.3g}; try "
            f"steps={int(np.ceil(steps * factor))}"
        )
    if ess < _MIN_ESS:
        wants.append(
            f"the weights are worth {ess:.0f} independent draws (below {_MIN_ESS:.0f}); try "
            f"steps={2 * steps} or more draws"
        )
    return wants

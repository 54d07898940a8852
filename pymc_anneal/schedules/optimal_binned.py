"""Optimal binned schedule (Grosse, Maddison & Salakhutdinov 2013, Theorem 3).

Linear between knots, with ``K_j ~ sqrt((eta_{j+1} - eta_j).(s_{j+1} - s_j))`` steps in bin j,
``eta`` natural parameters and ``s`` moments.
"""

import numpy as np

from pymc_anneal.schedules.validate import check_schedule, check_steps
from pymc_anneal.schedules.variational import decelerate


def optimal_binned_schedule(knots: np.ndarray, costs: np.ndarray, steps: int) -> np.ndarray:
    """Linear between knots, steps shared out by Theorem 3 of Grosse et al. (2013).

    Parameters
    ----------
    knots : array_like, shape (m + 1,)
        Temperatures of the knots, from 0 to 1.
    costs : array_like, shape (m,)
        ``(eta_{j+1} - eta_j).(s_{j+1} - s_j)`` of each bin, the symmetrised Kullback-Leibler
        divergence of its ends.
    steps
        Number of steps K, at least one a bin.

    Returns
    -------
    ndarray, shape (K + 1,)

    Raises
    ------
    ValueError
        The knots do not increase from 0 to 1, a cost is negative, or there are fewer steps than
        bins.
    """
    knots, costs = check_schedule(knots), np.asarray(costs, dtype=np.float64)
    if costs.shape != (len(knots) - 1,) or not (costs >= 0).all():
        raise ValueError(
            f"`costs` is {costs}, expected {len(knots) - 1} numbers >= 0, one for each bin."
        )
    if check_steps(steps) < len(costs):
        raise ValueError(
            f"`steps` is {steps}, expected at least one for each of {len(costs)} bins."
        )
    counts = _apportion(np.sqrt(costs), steps)
    pieces = [
        np.linspace(start, stop, n, endpoint=False)
        for start, stop, n in zip(knots[:-1], knots[1:], counts, strict=True)
    ]
    return np.concatenate([*pieces, [1.0]])


def surveyed_bins(
    betas: np.ndarray,
    length: np.ndarray,
    steps: int,
    *,
    bins: int = 10,
    max_step: float | None = None,
) -> np.ndarray:
    """Optimal binned schedule of any path from its lengths: the costs without moments.

    On a path ``eta'(beta).ds = g dbeta``, so the cost of a bin is its width times the integral
    of ``g`` over it, ``sum_k length_k^2 / dbeta_k``. The knots share the length out evenly.

    Parameters
    ----------
    betas, length, steps, max_step
        As for :func:`variational_schedule`.
    bins
        Number of bins, fewer where there are fewer steps or temperatures.

    Returns
    -------
    ndarray, shape (K + 1,)
    """
    betas, length = check_schedule(betas), np.asarray(length, dtype=np.float64)
    share = np.concatenate([[0.0], np.cumsum(length)]) / max(length.sum(), np.finfo(float).tiny)
    wanted = np.linspace(0, 1, min(bins, check_steps(steps)) + 1)[1:-1]
    inner = np.searchsorted(share[1:-1], wanted) + 1
    at = np.unique(np.concatenate([[0], inner.clip(1, len(betas) - 1), [len(betas) - 1]]))
    information = np.concatenate([[0.0], np.cumsum(length**2 / np.diff(betas))])
    costs = np.diff(betas[at]) * np.diff(information[at])
    schedule = optimal_binned_schedule(betas[at], costs, steps)
    return schedule if max_step is None else decelerate(schedule, max_step)


def _apportion(weights: np.ndarray, total: int) -> np.ndarray:
    """Whole numbers >= 1 with a given sum, in proportion to weights (largest remainders)."""
    share = (
        weights / weights.sum() if weights.sum() > 0 else np.full(len(weights), 1 / len(weights))
    )
    ideal = 1 + share * (total - len(weights))
    counts = np.floor(ideal).astype(int)
    order = np.argsort(counts - ideal, kind="stable")
    counts[order[: total - counts.sum()]] += 1
    return counts

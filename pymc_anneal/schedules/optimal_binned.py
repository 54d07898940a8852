"""Optimal binned schedule (Grosse, Maddison & Salakhutdinov 2013, Theorem 3, eq. 20).

Inverse temperatures are linear between knots ``beta_j``. Bin j has

    K_j ~ sqrt((eta_{j+1} - eta_j).(s_{j+1} - s_j))

steps, with natural parameters ``eta_j`` and moments ``s_j`` at the knots.
"""

import numpy as np

from numpy.typing import ArrayLike

from pymc_anneal.schedules.validate import check_schedule, check_steps
from pymc_anneal.schedules.variational import decelerate


def optimal_binned_schedule(knots: ArrayLike, costs: ArrayLike, steps: int) -> np.ndarray:
    """Return a schedule that is linear between knots, with the best number of steps in each bin.

    The number of steps of a bin is proportional to the square root of its cost, rounded by largest
    remainders, and at least one.

    Parameters
    ----------
    knots : array_like, shape (m + 1,)
        Inverse temperatures of the knots, increasing from 0 to 1.
    costs : array_like, shape (m,)
        ``(eta_{j+1} - eta_j).(s_{j+1} - s_j)`` of each bin, in nats: the symmetrised
        Kullback-Leibler divergence between the densities at its ends.
    steps : int
        Number of steps K, at least one for each bin.

    Returns
    -------
    ndarray, shape (K + 1,)

    Raises
    ------
    ValueError
        If the knots do not increase from 0 to 1, a cost is negative or missing, ``steps`` is not a
        positive whole number, or there are fewer steps than bins.

    References
    ----------
    Grosse, Maddison & Salakhutdinov (2013), Annealing between distributions by averaging moments,
    Theorem 3, eq. 20.
    """
    knots, costs = check_schedule(knots), np.asarray(costs, dtype=np.float64)
    if costs.shape != (len(knots) - 1,) or not ((costs >= 0) & (costs < np.inf)).all():
        raise ValueError(
            f"`costs` is {costs}, expected {len(knots) - 1} numbers >= 0, finite, one for each bin."
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


def optimal_binned_from_lengths(
    betas: ArrayLike,
    length: ArrayLike,
    steps: int,
    *,
    bins: int = 10,
    max_step: float | None = None,
) -> np.ndarray:
    """Return the optimal binned schedule of any path from its measured lengths, without moments.

    On a path ``eta'(beta).ds = g dbeta``, so the cost of a bin is its width times the integral of
    the Fisher information ``g`` over it, ``sum_k length_k^2 / dbeta_k``. The knots divide the path
    into bins of equal length, at most one for each step and interval of ``betas``. Other arguments,
    shape and errors are those of :func:`variational_schedule`.
    """
    betas, length = check_schedule(betas), np.asarray(length, dtype=np.float64)
    knots = _equal_length_knots(length, min(bins, check_steps(steps)))
    information = np.concatenate([[0.0], np.cumsum(length**2 / np.diff(betas))])
    costs = np.diff(betas[knots]) * np.diff(information[knots])
    schedule = optimal_binned_schedule(betas[knots], costs, steps)
    return schedule if max_step is None else decelerate(schedule, max_step)


def _equal_length_knots(length: np.ndarray, bins: int) -> np.ndarray:
    """Return indices into ``betas``, increasing from 0, that divide the path evenly."""
    last = len(length)
    share = np.concatenate([[0.0], np.cumsum(length)]) / max(length.sum(), np.finfo(float).tiny)
    inner = np.searchsorted(share[1:-1], np.linspace(0, 1, bins + 1)[1:-1]) + 1
    return np.unique(np.concatenate([[0], inner.clip(1, last), [last]]))


def _apportion(weights: np.ndarray, total: int) -> np.ndarray:
    """Return whole numbers >= 1 of sum ``total`` in proportion to weights (largest remainders)."""
    n = len(weights)
    share = weights / weights.sum() if weights.sum() > 0 else np.full(n, 1 / n)
    ideal = 1 + share * (total - n)
    counts: np.ndarray = np.floor(ideal).astype(int)
    order = np.argsort(counts - ideal, kind="stable")
    counts[order[: total - counts.sum()]] += 1
    return counts

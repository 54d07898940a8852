"""Annealing schedules: increasing arrays from 0 to 1.

Fixed schedules are functions of the number of steps. Data-driven ones take statistics as arrays:

**Variational** (Kiwaki 2015): ``K Var[log w]`` tends to ``J = int beta'(t)^2 g(beta) dt`` (eq. 8),
``g`` the Fisher information of the path. The Euler-Lagrange equation (9),
``beta'' + beta'^2/2 d log g/d beta = 0``, says that ``beta' sqrt(g)`` is constant, so the optimum
inverts

    G(b) = int_0^b sqrt(g),    beta(t) = G^{-1}(t G(1)),    J = G(1)^2.

``G`` is the path length or barrier ``Lambda``; measured from increments between the temperatures
of a pilot it stays well-behaved where ``g`` itself is huge.

**Optimal binned** (Grosse, Maddison & Salakhutdinov 2013, Theorem 3): linear between knots, with
``K_j ~ sqrt((eta_{j+1} - eta_j).(s_{j+1} - s_j))`` steps in bin j, ``eta`` natural parameters and
``s`` moments.
"""

import numpy as np

from scipy.interpolate import PchipInterpolator

__all__ = [
    "check_schedule",
    "decelerate",
    "geometric_schedule",
    "linear_schedule",
    "optimal_binned_schedule",
    "power_schedule",
    "salakhutdinov_murray_schedule",
    "sigmoid_schedule",
    "surveyed_bins",
    "variational_schedule",
]


def check_steps(steps: int) -> int:
    """Return the number of steps, or raise."""
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
        raise ValueError(f"`steps` is {steps!r}, expected a positive whole number.")
    return int(steps)


def check_schedule(betas: np.ndarray) -> np.ndarray:
    """Return a schedule as an array of float64, or say what is wrong with it.

    Parameters
    ----------
    betas : array_like, shape (K + 1,)
        Should increase strictly from exactly 0 to exactly 1.

    Raises
    ------
    ValueError
        It does not.
    """
    betas = np.asarray(betas, dtype=np.float64)
    if betas.ndim != 1 or len(betas) < 2:
        raise ValueError(
            f"A schedule has shape {betas.shape}, expected (K + 1,) inverse temperatures "
            "from 0 to 1, K >= 1."
        )
    if betas[0] != 0 or betas[-1] != 1:
        raise ValueError(
            f"A schedule starts at {betas[0]} and ends at {betas[-1]}, expected exactly 0 and 1."
        )
    steps = np.diff(betas)
    if not (steps > 0).all():
        k = int(np.argmin(steps > 0))
        raise ValueError(
            f"A schedule is not increasing: beta[{k}] = {betas[k]}, beta[{k + 1}] = "
            f"{betas[k + 1]}. Remove repeated values and sort the rest."
        )
    return betas


def linear_schedule(steps: int) -> np.ndarray:
    """Return ``beta_k = k/K``, shape ``(K + 1,)``."""
    return np.linspace(0.0, 1.0, check_steps(steps) + 1)


def power_schedule(steps: int, power: float = 5.0) -> np.ndarray:
    """Return ``beta_k = (k/K)^power`` (Friel & Pettitt 2008), shape ``(K + 1,)``."""
    if not power > 0:
        raise ValueError(f"`power` is {power}, expected a positive number.")
    return linear_schedule(steps) ** power


def geometric_schedule(steps: int, first: float = 1e-4) -> np.ndarray:
    """Return 0 followed by a geometric series from ``first`` to 1, shape ``(K + 1,)``."""
    if not 0 < first < 1:
        raise ValueError(f"`first` is {first}, expected a number between 0 and 1.")
    steps = check_steps(steps)
    return (
        np.concatenate([[0.0], np.geomspace(first, 1.0, steps)])
        if steps > 1
        else linear_schedule(1)
    )


def sigmoid_schedule(steps: int, scale: float = 4.0) -> np.ndarray:
    """Return a logistic curve in k, rescaled to run from 0 to 1 (Grosse et al. 2015).

    Parameters
    ----------
    steps
        Number of steps K.
    scale
        The logistic function is taken on [-scale, scale]; larger: slower at both ends.
    """
    if not scale > 0:
        raise ValueError(f"`scale` is {scale}, expected a positive number.")
    curve = np.tanh(0.5 * scale * (2 * linear_schedule(steps) - 1))
    betas = 0.5 * (1 + curve / curve[-1])
    betas[0], betas[-1] = 0.0, 1.0
    return betas


def salakhutdinov_murray_schedule(steps: int) -> np.ndarray:
    """Piecewise linear schedule of Salakhutdinov & Murray (2008), shape ``(K + 1,)``.

    0 to 0.5, 0.5 to 0.9 and 0.9 to 1 in the proportions 500 : 4000 : 10000.
    """
    share = np.cumsum([0, 500, 4000, 10000]) / 14500
    return np.interp(linear_schedule(steps), share, [0.0, 0.5, 0.9, 1.0])


def variational_schedule(
    betas: np.ndarray, length: np.ndarray, steps: int, *, max_step: float | None = None
) -> np.ndarray:
    """Schedule of constant speed ``beta' sqrt(g)`` (Kiwaki 2015, eq. 9, in closed form).

    Parameters
    ----------
    betas : array_like, shape (m + 1,)
        Temperatures at which the path was measured, increasing from 0 to 1.
    length : array_like, shape (m,)
        Length of the path between neighbours, ``int sqrt(g) dbeta``: from point values,
        ``diff(betas) * sqrt(g)`` at mid-points; from a run, ``sqrt(D_k)``.
    steps
        Number of steps K.
    max_step
        Largest step allowed (see :func:`decelerate`).

    Returns
    -------
    ndarray, shape (K + 1,)

    Raises
    ------
    ValueError
        The temperatures do not increase from 0 to 1, or a length is negative or not finite.
    """
    betas, length = check_schedule(betas), np.asarray(length, dtype=np.float64)
    if length.shape != (len(betas) - 1,) or not np.isfinite(length).all() or (length < 0).any():
        raise ValueError(
            f"`length` has shape {length.shape} and smallest value "
            f"{length.min() if length.size else None}; expected {len(betas) - 1} finite lengths "
            ">= 0, one between each pair of temperatures."
        )
    if length.sum() == 0:  # a constant likelihood: every schedule is as good
        return linear_schedule(steps)
    # A floor keeps the curve invertible where the path stands still.
    length = np.maximum(length, 1e-6 * length.sum() / len(length))
    barrier = np.concatenate([[0.0], np.cumsum(length)])
    inverse = PchipInterpolator(barrier / barrier[-1], betas)
    schedule = _strictly_increasing(inverse(linear_schedule(steps)))
    return schedule if max_step is None else decelerate(schedule, max_step)


def _strictly_increasing(betas: np.ndarray) -> np.ndarray:
    """Repair ties that rounding left, and pin the ends."""
    betas = np.clip(betas, 0.0, 1.0)
    betas[0], betas[-1] = 0.0, 1.0
    if (np.diff(betas) > 0).all():
        return betas
    for k in range(1, len(betas)):
        betas[k] = max(betas[k], np.nextafter(betas[k - 1], 2.0))
    betas[-1] = 1.0
    for k in range(len(betas) - 2, 0, -1):
        betas[k] = min(betas[k], np.nextafter(betas[k + 1], -1.0))
    return betas


def decelerate(schedule: np.ndarray, max_step: float) -> np.ndarray:
    """Clip the steps of a schedule at ``max_step`` and stretch the others (Kiwaki 2015, Alg. 3).

    Fast passages leave the kernels behind; the slower ones pay for them. The steps of the result
    sum to one and none exceeds ``max_step``.

    Parameters
    ----------
    schedule : array_like, shape (K + 1,)
    max_step
        Largest step; at least ``1/K``.

    Returns
    -------
    ndarray, shape (K + 1,)

    Raises
    ------
    ValueError
        ``max_step`` times K is below 1: such steps cannot reach from 0 to 1.
    """
    steps = np.diff(check_schedule(schedule))
    if not max_step * len(steps) >= 1:
        raise ValueError(
            f"`max_step` is {max_step} and the schedule has {len(steps)} steps, which cannot "
            f"reach from 0 to 1. Expected at least {1 / len(steps):.6g}."
        )
    for _ in range(len(steps)):
        clipped = steps >= max_step
        rest = steps[~clipped].sum()
        if not rest > 0:
            break
        steps = np.where(clipped, max_step, steps * (1 - max_step * clipped.sum()) / rest)
        if (steps <= max_step * (1 + 1e-12)).all():
            break
    betas = np.concatenate([[0.0], np.cumsum(steps)])
    return _strictly_increasing(betas / betas[-1])


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

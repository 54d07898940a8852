"""Variational schedule (Kiwaki 2015).

``K Var[log w]`` tends to ``J = int beta'(t)^2 g(beta) dt`` (eq. 8), ``g`` the Fisher information of
the path. The Euler-Lagrange equation (9), ``beta'' + beta'^2/2 d log g/d beta = 0``, says that
``beta' sqrt(g)`` is constant, so the optimum inverts

    G(b) = int_0^b sqrt(g),    beta(t) = G^{-1}(t G(1)),    J = G(1)^2.

``G`` is the path length or barrier ``Lambda``; measured from increments between the temperatures
of a pilot it stays well-behaved where ``g`` itself is huge.
"""

import numpy as np

from scipy.interpolate import PchipInterpolator

from pymc_anneal.schedules.fixed import linear_schedule
from pymc_anneal.schedules.validate import check_schedule


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

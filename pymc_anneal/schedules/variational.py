"""Variational schedule (Kiwaki 2015).

``K Var[log w]`` tends to ``J = int beta'(t)^2 g(beta) dt`` (eq. 8), where ``g`` is the Fisher
information of the path. The Euler-Lagrange equation (eq. 9), ``beta'' + beta'^2/2 d log g/d beta =
0``, says that ``beta' sqrt(g)`` is constant, so the optimum inverts

    G(b) = int_0^b sqrt(g),    beta(t) = G^{-1}(t G(1)),    J = G(1)^2.

``G(1)`` is the length of the path, its barrier ``Lambda``. Summed from increments between the
temperatures of a pilot run, ``G`` is accurate even where ``g`` itself is huge.
"""

import numpy as np

from numpy.typing import ArrayLike
from scipy.interpolate import PchipInterpolator

from pymc_anneal.schedules.fixed import linear_schedule
from pymc_anneal.schedules.validate import check_schedule


def variational_schedule(
    betas: ArrayLike, length: ArrayLike, steps: int, *, max_step: float | None = None
) -> np.ndarray:
    """Return the schedule of constant speed ``beta' sqrt(g)``.

    Parameters
    ----------
    betas : array_like, shape (m + 1,)
        Inverse temperatures at which the path was measured, increasing from 0 to 1.
    length : array_like, shape (m,)
        Length of the path between neighbouring temperatures, ``int sqrt(g) dbeta``. From point
        values of ``g`` at the mid-points it is ``diff(betas) * sqrt(g)``; from the discrepancies
        ``D_k`` of a run, ``sqrt(D_k)``.
    steps : int
        Number of steps K.
    max_step : float, optional
        Largest step in beta (see :func:`decelerate`).

    Returns
    -------
    ndarray, shape (K + 1,)

    Raises
    ------
    ValueError
        If ``betas`` does not increase from 0 to 1, a length is negative or not finite, ``steps`` is
        not a positive whole number, or ``max_step`` times K is below 1.

    References
    ----------
    Kiwaki (2015), Variational optimization of annealing schedules, eq. 8 and 9. The paper solves
    eq. 9 numerically; here its solution is written in closed form.
    """
    betas, length = check_schedule(betas), np.asarray(length, dtype=np.float64)
    if length.shape != (len(betas) - 1,) or not np.isfinite(length).all() or (length < 0).any():
        raise ValueError(
            f"`length` has shape {length.shape} and smallest value "
            f"{length.min() if length.size else None}; expected {len(betas) - 1} finite lengths "
            ">= 0, one between each pair of temperatures."
        )
    if length.sum() == 0:  # The likelihood is constant: all schedules are equally good.
        return linear_schedule(steps)
    # Lower bound on each length, which keeps G invertible if the density does not change.
    length = np.maximum(length, 1e-6 * length.sum() / len(length))
    barrier = np.concatenate([[0.0], np.cumsum(length)])
    inverse = PchipInterpolator(barrier / barrier[-1], betas)
    schedule = _make_strictly_increasing(inverse(linear_schedule(steps)))
    return schedule if max_step is None else decelerate(schedule, max_step)


def decelerate(schedule: ArrayLike, max_step: float) -> np.ndarray:
    """Clip the steps of a schedule at ``max_step`` and stretch the other steps.

    Long steps can outrun the transitions; after clipping, the steps still sum to one and none
    exceeds ``max_step``.

    Parameters
    ----------
    schedule : array_like, shape (K + 1,)
        Inverse temperatures, increasing from 0 to 1.
    max_step : float
        Largest step in beta, at least ``1/K``.

    Returns
    -------
    ndarray, shape (K + 1,)

    Raises
    ------
    ValueError
        If ``schedule`` does not increase from 0 to 1, or ``max_step`` times K is below 1, so that
        K such steps cannot reach from 0 to 1.

    References
    ----------
    Kiwaki (2015), Variational optimization of annealing schedules, Algorithm 3.
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
    return _make_strictly_increasing(betas / betas[-1])


def _make_strictly_increasing(betas: np.ndarray) -> np.ndarray:
    """Set the ends to 0 and 1 and separate values that rounding made equal, shape ``(K + 1,)``."""
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

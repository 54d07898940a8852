"""Checks of schedules and of numbers of steps."""

import numpy as np

from numpy.typing import ArrayLike


def check_steps(steps: int) -> int:
    """Return a number of steps as an int; `ValueError` if it is not a positive whole number."""
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
        raise ValueError(f"`steps` is {steps!r}, expected a positive whole number.")
    return int(steps)


def check_schedule(betas: ArrayLike) -> np.ndarray:
    """Return a schedule, ``(K + 1,)``; `ValueError` unless it rises strictly from 0 to 1."""
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

"""Fixed schedules: functions of the number of steps."""

import numpy as np

from pymc_anneal.schedules.validate import check_steps


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

"""Fixed schedules: functions of the number of steps alone."""

import numpy as np

from pymc_anneal.schedules.validate import check_steps


def linear_schedule(steps: int) -> np.ndarray:
    """Return equally spaced inverse temperatures, ``beta_k = k/K``.

    Parameters
    ----------
    steps : int
        Number of steps K.

    Returns
    -------
    ndarray, shape (K + 1,)

    Raises
    ------
    ValueError
        If ``steps`` is not a positive whole number.
    """
    return np.linspace(0.0, 1.0, check_steps(steps) + 1)


def power_schedule(steps: int, power: float = 5.0) -> np.ndarray:
    """Return powers of equally spaced numbers, ``beta_k = (k/K)^power``.

    Parameters
    ----------
    steps : int
        Number of steps K.
    power : float
        Exponent; above 1 the steps are shortest near the prior.

    Returns
    -------
    ndarray, shape (K + 1,)

    Raises
    ------
    ValueError
        If ``steps`` is not a positive whole number, ``power`` is not positive, or too large.

    References
    ----------
    Friel & Pettitt (2008), Marginal likelihood estimation via power posteriors.
    """
    if not power > 0:
        raise ValueError(f"`power` is {power}, expected a positive number.")
    return _increasing(linear_schedule(steps) ** power, "power", power)


def geometric_schedule(steps: int, first: float = 1e-4) -> np.ndarray:
    """Return 0 followed by a geometric sequence from ``first`` to 1.

    Parameters
    ----------
    steps : int
        Number of steps K.
    first : float
        Smallest positive inverse temperature, between 0 and 1; not used if K = 1.

    Returns
    -------
    ndarray, shape (K + 1,)

    Raises
    ------
    ValueError
        If ``steps`` is not a positive whole number or ``first`` is not between 0 and 1.
    """
    if not 0 < first < 1:
        raise ValueError(f"`first` is {first}, expected a number between 0 and 1.")
    steps = check_steps(steps)
    if steps == 1:
        return linear_schedule(1)
    return np.concatenate([[0.0], np.geomspace(first, 1.0, steps)])


def sigmoid_schedule(steps: int, scale: float = 4.0) -> np.ndarray:
    """Return a logistic function of ``k``, rescaled to run from 0 to 1.

    ``beta_k = (s_k - s_0)/(s_K - s_0)`` with ``s_k = 1/(1 + exp(-scale (2 k/K - 1)))``.

    Parameters
    ----------
    steps : int
        Number of steps K.
    scale : float
        Half-width of the interval on which the logistic function is taken; the larger, the shorter
        the steps at both ends.

    Returns
    -------
    ndarray, shape (K + 1,)

    Raises
    ------
    ValueError
        If ``steps`` is not a positive whole number, ``scale`` is not positive, or too large.

    References
    ----------
    Grosse, Ghahramani & Adams (2015), Sandwiching the marginal likelihood using bidirectional
    Monte Carlo.
    """
    if not scale > 0:
        raise ValueError(f"`scale` is {scale}, expected a positive number.")
    curve = np.tanh(0.5 * scale * (2 * linear_schedule(steps) - 1))
    betas: np.ndarray = 0.5 * (1 + curve / curve[-1])
    betas[0], betas[-1] = 0.0, 1.0
    return _increasing(betas, "scale", scale)


def _increasing(betas: np.ndarray, name: str, value: float) -> np.ndarray:
    """Return a schedule, or raise `ValueError` if rounding makes neighbours equal."""
    if (np.diff(betas) > 0).all():
        return betas
    raise ValueError(
        f"`{name}` is {value}, and some of {len(betas)} temperatures are equal for rounding: take "
        "a smaller one."
    )


def salakhutdinov_murray_schedule(steps: int) -> np.ndarray:
    """Return a schedule that is linear from 0 to 0.5, from 0.5 to 0.9 and from 0.9 to 1.

    The three pieces have numbers of steps in the proportions 500 : 4000 : 10000.

    Parameters
    ----------
    steps : int
        Number of steps K; 14,500 in the paper.

    Returns
    -------
    ndarray, shape (K + 1,)

    Raises
    ------
    ValueError
        If ``steps`` is not a positive whole number.

    References
    ----------
    Salakhutdinov & Murray (2008), On the quantitative analysis of deep belief networks.
    """
    share = np.cumsum([0, 500, 4000, 10000]) / 14500
    betas: np.ndarray = np.interp(linear_schedule(steps), share, [0.0, 0.5, 0.9, 1.0])
    return betas

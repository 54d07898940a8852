"""Estimators from particles recorded at several temperatures.

The run records its particles, with their running weights ``W``, at temperatures ``beta_t``,
``t = 0..T``, the rungs of a ladder. With ``E_t`` the weighted mean over the particles at
``beta_t``:

- **stepping stone** (Xie et al. 2011), forward and backward,

      log Z = sum_t log E_t[f_{t+1} / f_t],      log Z = - sum_t log E_{t+1}[f_t / f_{t+1}];

- **thermodynamic integration** with the second-order correction of Friel, Hurn & Wyse (2014),

      log Z = sum_t h_t (E_t[v] + E_{t+1}[v]) / 2 - h_t^2 (Var_{t+1}[v] - Var_t[v]) / 12,

  whose size is reported as the discretisation error. The integral starts at ``beta_1``, because
  ``v`` need not have a mean under the reference; the step from ``beta_0`` is a stepping stone;
- **MBAR** (Shirts & Chodera 2008), for paths on which ``log f_beta`` is linear in ``beta``: the
  particles of all temperatures are one sample of their mixture, weighted for each end. Written out
  here, because pymbar takes equally weighted samples and is a heavy dependency.

In this module the arrays of a :class:`~pymc_anneal.annealing.block.Ladder` have the shape
``(T + 1, n)``: the particles of all chains together.
"""

import numpy as np

from scipy.special import logsumexp

from pymc_anneal.annealing.block import Ladder

# Largest number of temperatures in MBAR: its cost grows with their square.
_MAX_MBAR_TEMPERATURES = 16

# Limit on the fixed-point iterations of MBAR, whose convergence is linear.
_MAX_ITERATIONS = 500

# Change of the log normalisers, in nats, at which MBAR has converged.
_TOLERANCE = 1e-8


def stepping_stone(ladder: Ladder[np.ndarray], *, backward: bool = False) -> float:
    """Estimate ``log Z_T - log Z_0`` by stepping stones.

    Parameters
    ----------
    ladder : Ladder
        Particles by temperature, arrays of shape ``(T + 1, n)``.
    backward : bool
        Whether to average the ratio of each density to the one before it, over the particles of
        the higher temperature.

    Returns
    -------
    float
        In nats.

    References
    ----------
    Xie, Lewis, Fan, Kuo & Chen (2011), Improving marginal likelihood estimation for Bayesian
    phylogenetic model selection.
    """
    if not backward:
        return float(_log_means(ladder.log_weight[:-1], ladder.log_ratio_up[:-1]).sum())
    # The backward estimator never visits states of zero likelihood: add the log prior mass of the
    # rest.
    return _log_mass(ladder) - float(
        _log_means(ladder.log_weight[1:], -ladder.log_ratio_down[1:]).sum()
    )


def thermodynamic_integration(beta: np.ndarray, ladder: Ladder[np.ndarray]) -> tuple[float, float]:
    """Estimate ``log Z_T - log Z_0`` by thermodynamic integration.

    Parameters
    ----------
    beta : ndarray, shape (T + 1,)
        Inverse temperatures.
    ladder : Ladder
        Particles by temperature, arrays of shape ``(T + 1, n)``.

    Returns
    -------
    estimate, correction : float
        In nats; the estimate includes the second-order correction.

    References
    ----------
    Friel, Hurn & Wyse (2014), Improving power posterior estimation of statistical evidence.
    """
    first = _log_means(ladder.log_weight[:1], ladder.log_ratio_up[:1])[0]
    log_weight, v = ladder.log_weight[1:], ladder.velocity[1:]
    share = np.exp(log_weight - logsumexp(log_weight, axis=1, keepdims=True))
    v = np.where(share > 0, v, 0.0)  # may be -inf if the weight is zero
    mean = (share * v).sum(axis=1)
    variance = (share * (v - mean[:, None]) ** 2).sum(axis=1)
    h = np.diff(beta[1:])
    correction = -float((h**2 * np.diff(variance)).sum()) / 12
    trapezoid = float((h * (mean[1:] + mean[:-1])).sum()) / 2
    return float(first) + trapezoid + correction, correction


def _log_means(log_weight: np.ndarray, log_ratio: np.ndarray) -> np.ndarray:
    """Return the log weighted mean ratio by temperature, shape ``(T + 1, n)`` to ``(T + 1,)``.

    Particles of zero weight are excluded.
    """
    ratio = np.where(np.isfinite(log_weight), log_ratio, -np.inf)
    means: np.ndarray = logsumexp(log_weight + ratio, axis=1) - logsumexp(log_weight, axis=1)
    return means


def _log_mass(ladder: Ladder[np.ndarray]) -> float:
    """Return the log share of the reference on which the likelihood is not zero."""
    alive = np.where(np.isfinite(ladder.velocity[:1]), 0.0, -np.inf)
    return float(_log_means(ladder.log_weight[:1], alive)[0])


def mbar(beta: np.ndarray, ladder: Ladder[np.ndarray]) -> float:
    """Estimate ``log Z_T - log Z_0`` by MBAR, for a path linear in beta.

    Solves ``Z_i = sum_tn c_tn e^{beta_i V_tn} / sum_k N_k e^{beta_k V_tn} / Z_k`` for all
    temperatures ``i``; ``c_tn`` are the normalised weights at a temperature times its effective
    sample size ``N_t``.

    Parameters
    ----------
    beta : ndarray, shape (T + 1,)
        Inverse temperatures.
    ladder : Ladder
        Particles by temperature, arrays of shape ``(T + 1, n)``.

    Returns
    -------
    float
        In nats.

    References
    ----------
    Shirts & Chodera (2008), Statistically optimal analysis of samples from multiple equilibrium
    states.
    """
    size = min(len(beta), _MAX_MBAR_TEMPERATURES)
    chosen = np.unique(np.linspace(0, len(beta) - 1, size).round()).astype(int)
    beta, log_weight, v = beta[chosen], ladder.log_weight[chosen], ladder.velocity[chosen]
    share = np.exp(log_weight - logsumexp(log_weight, axis=1, keepdims=True))
    count = 1 / (share**2).sum(axis=1)
    # Relative to the estimate by stepping stones all numbers are of order one.
    steps = _log_means(log_weight[:-1], np.diff(beta)[:, None] * v[:-1])
    log_guess = np.concatenate([[0.0], np.cumsum(steps)])
    with np.errstate(invalid="ignore"):
        energy = beta[:, None] * v.ravel()
    energy[beta == 0] = 0.0  # also if the likelihood is zero
    energy -= log_guess[:, None]
    density = np.exp(energy - energy.max(axis=0))
    ratio = _solve_mbar(density, (share * count[:, None]).ravel(), count)
    return float(log_guess[-1] + np.log(ratio[-1]))


def _solve_mbar(density: np.ndarray, weight: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Solve the MBAR equations by fixed-point iteration.

    ``density`` has shape ``(temperatures, particles)``, ``weight`` ``(particles,)`` and ``count``
    ``(temperatures,)``. Returns the normalisers relative to the first, shape ``(temperatures,)``.
    """
    ratio = np.ones(len(count))
    for _ in range(_MAX_ITERATIONS):
        new = density @ (weight / ((count / ratio) @ density))
        new /= new[0]
        change, ratio = np.abs(np.log(new / ratio)).max(), new
        if change < _TOLERANCE:
            break
    return ratio

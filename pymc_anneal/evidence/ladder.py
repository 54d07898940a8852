"""Estimators from particles recorded at several temperatures.

The run records its particles, with their running weights ``W``, at temperatures ``beta_t``,
``t = 0..T``. With ``E_t`` the weighted mean over the particles at ``beta_t``:

- **stepping stone** (Xie et al. 2011), forward and backward,

      log Z = sum_t log E_t[f_{t+1} / f_t],      log Z = - sum_t log E_{t+1}[f_t / f_{t+1}];

- **thermodynamic integration** with the second-order correction of Friel, Hurn & Wyse (2014),

      log Z = sum_t h_t (E_t[v] + E_{t+1}[v]) / 2 - h_t^2 (Var_{t+1}[v] - Var_t[v]) / 12,

  whose size is taken for the error of discretisation; it begins above the reference, under which
  ``v`` need not have a mean, and makes the first step by a stepping stone;
- **MBAR** (Shirts & Chodera 2008), for paths on which ``log f_beta`` is linear in ``beta``: the
  particles of all temperatures are one sample of their mixture, weighted for each end.
"""

from typing import NamedTuple

import numpy as np

from scipy.special import logsumexp

_MAX_MBAR_RUNGS = 16


_MAX_ITERATIONS = 500


_TOLERANCE = 1e-8


class Rungs(NamedTuple):
    """Particles at the rungs of a run.

    Attributes
    ----------
    beta : ndarray, shape (T + 1,)
    log_weight, up, down, velocity : ndarray, shape (T + 1, n)
        As in :class:`~pymc_anneal.engine.Ladder`.
    """

    beta: np.ndarray
    log_weight: np.ndarray
    log_ratio_up: np.ndarray
    log_ratio_down: np.ndarray
    velocity: np.ndarray

    def kept(self, particles: np.ndarray) -> "Rungs":
        """Return some of the particles."""
        return Rungs(self.beta, *(v[:, particles] for v in self[1:]))


def stepping_stone(rungs: Rungs, backward: bool = False) -> float:
    """Estimate ``log Z_T - log Z_0`` by stepping stones, in nats."""
    if not backward:
        return float(_log_means(rungs.log_weight[:-1], rungs.log_ratio_up[:-1]).sum())
    # Seen from above, what the likelihood forbids does not exist.
    return _log_mass(rungs) - float(
        _log_means(rungs.log_weight[1:], -rungs.log_ratio_down[1:]).sum()
    )


def thermodynamic_integration(rungs: Rungs) -> tuple[float, float]:
    """Estimate ``log Z_T - log Z_0`` by thermodynamic integration.

    Returns
    -------
    estimate, correction : float
        In nats; the second-order correction is part of the estimate.
    """
    first = _log_means(rungs.log_weight[:1], rungs.log_ratio_up[:1])[0]
    log_weight, v = rungs.log_weight[1:], rungs.velocity[1:]
    share = np.exp(log_weight - logsumexp(log_weight, axis=1, keepdims=True))
    v = np.where(share > 0, v, 0.0)  # -inf where a particle has no weight
    mean = (share * v).sum(axis=1)
    variance = (share * (v - mean[:, None]) ** 2).sum(axis=1)
    h = np.diff(rungs.beta[1:])
    correction = -float((h**2 * np.diff(variance)).sum()) / 12
    trapezoid = float((h * (mean[1:] + mean[:-1])).sum()) / 2
    return float(first) + trapezoid + correction, correction


def _log_means(log_weight: np.ndarray, log_ratio: np.ndarray) -> np.ndarray:
    """Log of the weighted mean ratio at each rung; a particle of no weight has no say."""
    ratio = np.where(np.isfinite(log_weight), log_ratio, -np.inf)
    return logsumexp(log_weight + ratio, axis=1) - logsumexp(log_weight, axis=1)


def _log_mass(rungs: Rungs) -> float:
    """Log share of the reference on which the likelihood is not zero."""
    alive = np.where(np.isfinite(rungs.velocity[:1]), 0.0, -np.inf)
    return float(_log_means(rungs.log_weight[:1], alive)[0])


def mbar(rungs: Rungs) -> float:
    """Estimate ``log Z_T - log Z_0`` from the mixture of all rungs, for a path linear in beta.

    Solves ``Z_i = sum_tn c_tn e^{beta_i V_tn} / sum_k N_k e^{beta_k V_tn} / Z_k`` for all rungs
    ``i``, ``c_tn`` the weights within a rung times its effective sample size ``N_t``.
    """
    keep = np.unique(
        np.linspace(0, len(rungs.beta) - 1, min(len(rungs.beta), _MAX_MBAR_RUNGS)).round()
    ).astype(int)
    beta, log_weight, v = rungs.beta[keep], rungs.log_weight[keep], rungs.velocity[keep]
    share = np.exp(log_weight - logsumexp(log_weight, axis=1, keepdims=True))
    count = 1 / (share**2).sum(axis=1)
    # Relative to the stepping stones' answer all numbers are of order one.
    steps = _log_means(log_weight[:-1], np.diff(beta)[:, None] * v[:-1])
    log_guess = np.concatenate([[0.0], np.cumsum(steps)])
    with np.errstate(invalid="ignore"):
        energy = beta[:, None] * v.ravel()
    energy[beta == 0] = 0.0  # also where the likelihood is zero
    energy -= log_guess[:, None]
    density = np.exp(energy - energy.max(axis=0))
    weight, ratio = (share * count[:, None]).ravel(), np.ones(len(beta))
    for _ in range(_MAX_ITERATIONS):
        new = density @ (weight / ((count / ratio) @ density))
        new /= new[0]
        moved, ratio = np.abs(np.log(new / ratio)).max(), new
        if moved < _TOLERANCE:
            break
    return float(log_guess[-1] + np.log(ratio[-1]))

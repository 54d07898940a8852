"""Moment-average splines (Grosse, Maddison & Salakhutdinov 2013, section 4).

At knots ``beta_j`` a machine is fitted whose moments are

    s(beta_j) = (1 - beta_j) s(0) + beta_j s(1);

between knots natural parameters are linear. By Theorem 2 nothing is lost by the spline, and by
Theorem 3 the best shares of steps are ``K_j ~ sqrt((eta_{j+1} - eta_j).(s_{j+1} - s_j))``.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from scipy.optimize import minimize

from pymc_anneal.options import seed_sequence
from pymc_anneal.rbm.exact import Moments, log_partition_function, moments
from pymc_anneal.rbm.expectations import (
    average_moments,
    check_moments,
    gibbs_moments,
    reference_moments,
)
from pymc_anneal.rbm.model import RBM
from pymc_anneal.rbm.paths import SplineRBMPath
from pymc_anneal.rbm.training import match_moments
from pymc_anneal.schedules import check_schedule, optimal_binned_schedule

__all__ = ["MomentSpline", "match_moments_exactly", "moment_spline"]

_EXACT_UNITS = 20  # in seconds
KNOTS = tuple(np.round(np.arange(0.1, 0.95, 0.1), 1))


class MomentSpline(NamedTuple):
    """A moment-average spline and what it was made of.

    Attributes
    ----------
    path : SplineRBMPath
        To pass to :func:`sample_ais`.
    knots : ndarray, shape (m + 1,)
        Temperatures, 0 and 1 included.
    models : list of RBM
        Machines at the knots.
    moments : list of Moments
        Averaged moments at the knots, which the machines were fitted to.
    """

    path: SplineRBMPath
    knots: np.ndarray
    models: list[RBM]
    moments: list[Moments]

    def optimal_binned_schedule(self, steps: int) -> np.ndarray:
        """Return the schedule of Theorem 3, shape ``(steps + 1,)``."""
        costs = binned_costs(self.models, self.moments)
        return optimal_binned_schedule(self.knots, np.maximum(costs, 0.0), steps)


def moment_spline(
    model: RBM,
    reference: RBM,
    *,
    knots: Sequence[float] = KNOTS,
    target: Moments | None = None,
    method: str = "pcd",
    updates: int = 50_000,
    learning_rate: float = 0.01,
    particles: int = 100,
    random_seed: Any = None,
) -> MomentSpline:
    """Fit a moment-average spline between a reference and a machine.

    Parameters
    ----------
    model
        The machine, at ``beta = 1``.
    reference
        A machine without weights, at ``beta = 0``.
    knots
        Temperatures between 0 and 1, increasing.
    target
        Moments of the machine. Default: exact where a layer has at most 20 units, else from Gibbs
        chains with the defaults of :func:`gibbs_moments`; :func:`data_moments` is the cheap
        substitute.
    method
        "pcd", or "conjugate_gradient" with exact moments, for machines with a small layer.
    updates, learning_rate, particles
        Of "pcd", see :func:`match_moments`.
    random_seed
        Seed.

    Returns
    -------
    MomentSpline

    Raises
    ------
    ValueError
        An argument makes no sense.
    """
    inner = np.asarray(knots, dtype=float)
    every = check_schedule(np.concatenate([[0.0], inner, [1.0]]))
    if method not in ("pcd", "conjugate_gradient"):
        raise ValueError(f'Unknown `method` {method!r}; expected "pcd" or "conjugate_gradient".')
    seed_target, *seeds = seed_sequence(random_seed).spawn(1 + len(inner))
    first = reference_moments(reference)
    last = _target_moments(model, seed_target) if target is None else target
    check_moments(first, model)
    check_moments(last, model)
    averaged = [average_moments(first, last, beta) for beta in every]
    machines, current = [], reference.astype(model.weights.dtype)
    for wanted, seed in zip(averaged[1:-1], seeds, strict=True):
        if method == "pcd":
            current = match_moments(
                wanted,
                current,
                updates=updates,
                learning_rate=learning_rate,
                particles=particles,
                random_seed=seed,
            )
        else:
            current = match_moments_exactly(wanted, current)
        machines.append(current)
    models = [reference.astype(model.weights.dtype), *machines, model]
    return MomentSpline(SplineRBMPath.through(every, models), every, models, averaged)


def match_moments_exactly(target: Moments, start: RBM, *, max_iterations: int = 200) -> RBM:
    """Fit a machine with a small layer to moments, by conjugate gradients on the exact likelihood.

    Maximises ``eta.s - log Z(eta)``, whose gradient is the difference of moments.

    Parameters
    ----------
    target
        Moments to match.
    start
        Machine to begin with.
    max_iterations
        Of SciPy's nonlinear conjugate gradients.
    """
    check_moments(target, start)
    wanted = np.concatenate([np.ravel(x) for x in target])
    shapes = [np.shape(x) for x in jax.tree.leaves(start)]

    def machine(eta: np.ndarray) -> RBM:
        parts = np.split(eta, np.cumsum([int(np.prod(s)) for s in shapes])[:-1])
        return RBM(*(p.reshape(s) for p, s in zip(parts, shapes, strict=True)))

    def loss(eta: np.ndarray) -> tuple[float, np.ndarray]:
        current = machine(eta)
        found = np.concatenate([np.ravel(x) for x in moments(current)])
        return log_partition_function(current) - eta @ wanted, found - wanted

    eta = np.concatenate([np.ravel(x).astype(float) for x in jax.tree.leaves(start)])
    options = {"maxiter": max_iterations, "gtol": 1e-5}
    fitted = minimize(loss, eta, jac=True, method="CG", options=options)
    return machine(fitted.x).astype(start.weights.dtype)


def binned_costs(models: Sequence[RBM], expected: Sequence[Moments]) -> np.ndarray:
    """``(eta_{j+1} - eta_j).(s_{j+1} - s_j)`` of each segment, shape ``(m,)``."""

    def flat(parts: Any) -> np.ndarray:
        return np.concatenate([np.ravel(x).astype(float) for x in parts])

    eta = np.array([flat(jax.tree.leaves(m)) for m in models])
    s = np.array([flat(m) for m in expected])
    return (np.diff(eta, axis=0) * np.diff(s, axis=0)).sum(axis=1)


def _target_moments(model: RBM, seed: np.random.SeedSequence) -> Moments:
    if min(model.weights.shape) <= _EXACT_UNITS:
        return moments(model)
    return gibbs_moments(model, random_seed=seed)

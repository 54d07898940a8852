"""Moment-average splines (Grosse, Maddison & Salakhutdinov 2013, section 4).

At knots ``beta_j`` a machine is fitted whose moments are

    s(beta_j) = (1 - beta_j) s(0) + beta_j s(1);

between knots natural parameters are linear. By Theorem 2 nothing is lost by the spline, and by
Theorem 3 the best shares of steps are ``K_j ~ sqrt((eta_{j+1} - eta_j).(s_{j+1} - s_j))``.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from scipy.optimize import minimize

from pymc_anneal.base.seeds import seed_sequence
from pymc_anneal.rbm.exact import Moments, log_z_and_moments, moments
from pymc_anneal.rbm.model import RBM
from pymc_anneal.rbm.moments import average_moments, check_moments, gibbs_moments, reference_moments
from pymc_anneal.rbm.paths import SplineRBMPath
from pymc_anneal.rbm.training import fit_moments_pcd
from pymc_anneal.schedules.optimal_binned import optimal_binned_schedule
from pymc_anneal.schedules.validate import check_schedule

_EXACT_UNITS = 20  # in seconds


_LEAST_SCALE = 0.01  # units that are hardly ever on, or off


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
    tolerance: float = 1e-5,
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
        "pcd", or "exact" for machines with a small layer, see :func:`fit_moments_exact`.
    updates, learning_rate, particles
        Of "pcd", see :func:`fit_moments_pcd`.
    tolerance
        Of "exact", see :func:`fit_moments_exact`.
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
    if method not in ("pcd", "exact"):
        raise ValueError(f'Unknown `method` {method!r}; expected "pcd" or "exact".')
    seed_target, *seeds = seed_sequence(random_seed).spawn(1 + len(inner))
    first = reference_moments(reference)
    last = _target_moments(model, seed_target) if target is None else target
    check_moments(first, model)
    check_moments(last, model)
    averaged = [average_moments(first, last, beta) for beta in every]
    machines, current = [], reference.astype(model.weights.dtype)
    for wanted, seed in zip(averaged[1:-1], seeds, strict=True):
        if method == "pcd":
            current = fit_moments_pcd(
                wanted,
                current,
                updates=updates,
                learning_rate=learning_rate,
                particles=particles,
                random_seed=seed,
            )
        else:
            current = fit_moments_exact(wanted, current, tolerance=tolerance)
        machines.append(current)
    models = [reference.astype(model.weights.dtype), *machines, model]
    return MomentSpline(SplineRBMPath.through(every, models), every, models, averaged)


def fit_moments_exact(
    target: Moments, start: RBM, *, tolerance: float = 1e-5, max_iterations: int = 300
) -> RBM:
    """Fit a machine with a small layer to moments, by the exact likelihood.

    Maximises ``eta.s - log Z(eta)``, whose gradient is the difference of moments. Grosse et al.
    took conjugate gradients; L-BFGS comes to the same machine in fewer sums over all states. The
    statistics are centred and scaled by the target's moments, ``(v - E[v]) (h - E[h])'`` in place
    of ``v h'``, in which the problem is far better conditioned (Montavon & Mueller 2012).

    Parameters
    ----------
    target
        Moments to match.
    start
        Machine to begin with.
    tolerance
        Largest difference of moments, in standard deviations of units with the target's means.
    max_iterations
        Of SciPy's L-BFGS.
    """
    check_moments(target, start)
    coordinates = _Centred.around(target)
    wanted = np.concatenate([np.ravel(x) for x in target])

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        current = coordinates.machine(theta)
        log_z, found = log_z_and_moments(current)
        residual = Moments(*(f - t for f, t in zip(found, target, strict=True)))
        return log_z - _flat(jax.tree.leaves(current)) @ wanted, coordinates.slope(residual)

    options = {"maxiter": max_iterations, "gtol": tolerance, "ftol": 0.0, "maxcor": 30}
    fitted = minimize(loss, coordinates.of(start), jac=True, method="L-BFGS-B", options=options)
    return coordinates.machine(fitted.x).astype(start.weights.dtype)


class _Centred(NamedTuple):
    """Natural parameters of centred and scaled statistics.

    ``a.v + b.h + v'Wh = (a + W m_h).v + (b + W'm_v).h + (v - m_v)'W(h - m_h) + const``; each is
    divided by the standard deviation of its statistic for independent units of these means.
    """

    visible: np.ndarray
    hidden: np.ndarray
    visible_scale: np.ndarray
    hidden_scale: np.ndarray

    @classmethod
    def around(cls, target: Moments) -> "_Centred":
        v, h = np.asarray(target.visible, float), np.asarray(target.hidden, float)
        scales = (np.maximum(np.sqrt(m * (1 - m)), _LEAST_SCALE) for m in (v, h))
        return cls(v, h, *scales)

    def of(self, model: RBM) -> np.ndarray:
        """Return the coordinates of a machine."""
        a, b, w = (np.asarray(x, float) for x in jax.tree.leaves(model))
        centred = a + w @ self.hidden, b + self.visible @ w, w
        return _flat(x * s for x, s in zip(centred, self._scales, strict=True))

    def machine(self, theta: np.ndarray) -> RBM:
        """Return the machine at some coordinates."""
        a, b, w = (x / s for x, s in zip(self._parts(theta), self._scales, strict=True))
        return RBM(a - w @ self.hidden, b - self.visible @ w, w)

    def slope(self, residual: Moments) -> np.ndarray:
        """Return the derivative by the coordinates, from that by ``a, b, W``."""
        v, h, vh = residual
        centred = v, h, vh - np.outer(v, self.hidden) - np.outer(self.visible, h)
        return _flat(x / s for x, s in zip(centred, self._scales, strict=True))

    @property
    def _scales(self) -> tuple[np.ndarray, ...]:
        v, h = self.visible_scale, self.hidden_scale
        return v, h, np.outer(v, h)

    def _parts(self, theta: np.ndarray) -> tuple[np.ndarray, ...]:
        n, m = len(self.visible), len(self.hidden)
        return theta[:n], theta[n : n + m], theta[n + m :].reshape(n, m)


def _flat(parts: Iterable[Any]) -> np.ndarray:
    return np.concatenate([np.ravel(x).astype(float) for x in parts])


def binned_costs(models: Sequence[RBM], expected: Sequence[Moments]) -> np.ndarray:
    """``(eta_{j+1} - eta_j).(s_{j+1} - s_j)`` of each segment, shape ``(m,)``."""
    eta = np.array([_flat(jax.tree.leaves(m)) for m in models])
    s = np.array([_flat(m) for m in expected])
    return (np.diff(eta, axis=0) * np.diff(s, axis=0)).sum(axis=1)


def _target_moments(model: RBM, seed: np.random.SeedSequence) -> Moments:
    if min(model.weights.shape) <= _EXACT_UNITS:
        return moments(model)
    return gibbs_moments(model, random_seed=seed)

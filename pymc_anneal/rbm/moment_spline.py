"""Moment-average splines (Grosse, Maddison & Salakhutdinov 2013, section 4).

At each knot ``beta_j`` an RBM is fitted to the moments

    s(beta_j) = (1 - beta_j) s(0) + beta_j s(1);

between knots the natural parameters are linear. By Theorem 2 the spline loses nothing, and by
Theorem 3 the best shares of steps are ``K_j ~ sqrt((eta_{j+1} - eta_j).(s_{j+1} - s_j))``.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, get_args

import jax
import numpy as np

from scipy.optimize import minimize

from pymc_anneal.base.seeds import RandomSeed, seed_sequence
from pymc_anneal.rbm.exact import exact_moments, log_z_and_moments
from pymc_anneal.rbm.model import RBM
from pymc_anneal.rbm.moments import average_moments, check_moments, gibbs_moments, reference_moments
from pymc_anneal.rbm.spline_path import SplineRBMPath
from pymc_anneal.rbm.state_sums import Moments
from pymc_anneal.rbm.training import fit_moments_pcd
from pymc_anneal.schedules.optimal_binned import optimal_binned_schedule
from pymc_anneal.schedules.validate import check_schedule

Method = Literal["pcd", "exact"]

# Default inner knots: 0.1, 0.2, ..., 0.9.
KNOTS = tuple(np.round(np.arange(0.1, 0.95, 0.1), 1))

# Largest layer whose exact moments take only seconds.
_EXACT_UNITS = 20

# Lower bound on the standard deviation by which a unit is scaled: some are nearly always 0 or 1.
_MIN_SCALE = 0.01


class MomentSpline(NamedTuple):
    """A moment-average spline.

    Attributes
    ----------
    path : SplineRBMPath
        The path, to pass to :func:`sample_ais`.
    knots : ndarray, shape (m + 1,)
        Temperatures, including 0 and 1.
    models : list of RBM
        The RBMs at the knots.
    moments : list of Moments
        The averaged moments at the knots, to which the RBMs were fitted.
    """

    path: SplineRBMPath
    knots: np.ndarray
    models: list[RBM]
    moments: list[Moments]

    def optimal_binned_schedule(self, steps: int) -> np.ndarray:
        """Return the schedule of Theorem 3 of Grosse et al. (2013), shape ``(steps + 1,)``.

        Raises
        ------
        ValueError
            There are fewer steps than segments.
        """
        costs = binned_costs(self.models, self.moments)
        return optimal_binned_schedule(self.knots, np.maximum(costs, 0.0), steps)


def moment_spline(
    model: RBM,
    reference: RBM,
    *,
    knots: Sequence[float] = KNOTS,
    target: Moments | None = None,
    method: Method = "pcd",
    updates: int = 50_000,
    learning_rate: float = 0.01,
    particles: int = 100,
    tolerance: float = 1e-5,
    random_seed: RandomSeed = None,
) -> MomentSpline:
    """Fit a moment-average spline between a reference and an RBM.

    Parameters
    ----------
    model : RBM
        The RBM at ``beta = 1``.
    reference : RBM
        An RBM with W = 0, at ``beta = 0``.
    knots : sequence of float
        Temperatures between 0 and 1, increasing.
    target : Moments, optional
        Moments of `model`. By default they are exact if a layer has at most 20 units, else
        estimated by :func:`gibbs_moments` with its default arguments; :func:`data_moments` is a
        cheap substitute.
    method : {"pcd", "exact"}
        "pcd" fits by :func:`fit_moments_pcd`, "exact" by :func:`fit_moments_exact`, which needs a
        layer of at most 25 units.
    updates, learning_rate, particles
        For "pcd", see :func:`fit_moments_pcd`.
    tolerance : float
        For "exact", see :func:`fit_moments_exact`.
    random_seed
        Seed: int, sequence of int, numpy SeedSequence or Generator.

    Returns
    -------
    MomentSpline

    Raises
    ------
    ValueError
        An argument is out of range, the shapes of `model`, `reference` and `target` differ, or
        `reference` has nonzero weights.
    """
    inner = np.asarray(knots, dtype=float)
    betas = check_schedule(np.concatenate([[0.0], inner, [1.0]]))
    if method not in get_args(Method):
        raise ValueError(f'Unknown `method` {method!r}; expected "pcd" or "exact".')
    seed_target, *seeds = seed_sequence(random_seed).spawn(1 + len(inner))
    first = reference_moments(reference)
    last = _target_moments(model, seed_target) if target is None else target
    check_moments(first, model)
    check_moments(last, model)

    def fit(wanted: Moments, start: RBM, seed: np.random.SeedSequence) -> RBM:
        if method == "exact":
            return fit_moments_exact(wanted, start, tolerance=tolerance)
        return fit_moments_pcd(
            wanted,
            start,
            updates=updates,
            learning_rate=learning_rate,
            particles=particles,
            random_seed=seed,
        )

    averaged = [average_moments(first, last, beta) for beta in betas]
    models = [reference.astype(model.weights.dtype)]
    for wanted, seed in zip(averaged[1:-1], seeds, strict=True):
        models.append(fit(wanted, models[-1], seed))
    models.append(model)
    return MomentSpline(SplineRBMPath.through(betas, models), betas, models, averaged)


def fit_moments_exact(
    target: Moments, start: RBM, *, tolerance: float = 1e-5, max_iterations: int = 300
) -> RBM:
    """Fit an RBM with a small layer to given moments by exact maximum likelihood.

    Maximises ``eta.s - log Z(eta)``, whose gradient is the difference of moments. Grosse et al.
    (2013) used conjugate gradients; L-BFGS reaches the same RBM with fewer sums over all states.
    The statistics are centred and scaled by the target's moments, ``(v - E[v]) (h - E[h])'``
    instead of ``v h'``, in which the problem is far better conditioned (Montavon & Mueller 2012).

    Parameters
    ----------
    target : Moments
        Moments to match.
    start : RBM
        Initial RBM, with at most 25 visible or 25 hidden units.
    tolerance : float
        Largest difference of moments, in standard deviations of units with the target's means.
    max_iterations : int
        Largest number of iterations of SciPy's L-BFGS-B.

    Returns
    -------
    RBM
        In the floating type of `start`.

    Raises
    ------
    ValueError
        Both layers have more than 25 units, or the shapes of `target` and `start` differ.
    """
    check_moments(target, start)
    coordinates = _CentredCoordinates.of_moments(target)
    wanted = _concatenate(target)

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        current = coordinates.to_rbm(theta)
        log_z, found = log_z_and_moments(current)
        residual = Moments(*(f - t for f, t in zip(found, target, strict=True)))
        return log_z - _concatenate(jax.tree.leaves(current)) @ wanted, coordinates.slope(residual)

    options = {"maxiter": max_iterations, "gtol": tolerance, "ftol": 0.0, "maxcor": 30}
    first = coordinates.from_rbm(start)
    fitted = minimize(loss, first, jac=True, method="L-BFGS-B", options=options)
    return coordinates.to_rbm(fitted.x).astype(start.weights.dtype)


class _CentredCoordinates(NamedTuple):
    """Natural parameters of centred and scaled statistics.

    ``a.v + b.h + v'Wh = (a + W m_h).v + (b + W'm_v).h + (v - m_v)'W(h - m_h) + const``. Statistics
    are divided, and so the parameters multiplied, by the standard deviations that the statistics
    have if units with these means are independent.

    Attributes
    ----------
    visible, visible_scale : ndarray, shape (n_visible,)
        Means ``m_v`` and standard deviations.
    hidden, hidden_scale : ndarray, shape (n_hidden,)
        Means ``m_h`` and standard deviations.
    """

    visible: np.ndarray
    hidden: np.ndarray
    visible_scale: np.ndarray
    hidden_scale: np.ndarray

    @classmethod
    def of_moments(cls, target: Moments) -> "_CentredCoordinates":
        v, h = np.asarray(target.visible, float), np.asarray(target.hidden, float)
        scales = (np.maximum(np.sqrt(m * (1 - m)), _MIN_SCALE) for m in (v, h))
        return cls(v, h, *scales)

    def from_rbm(self, model: RBM) -> np.ndarray:
        """Return the coordinates of an RBM, shape ``(p,)``."""
        a, b, w = (np.asarray(x, float) for x in jax.tree.leaves(model))
        centred = a + w @ self.hidden, b + self.visible @ w, w
        return _concatenate(x * s for x, s in zip(centred, self._scales(), strict=True))

    def to_rbm(self, theta: np.ndarray) -> RBM:
        """Return the RBM with coordinates of shape ``(p,)``."""
        n, m = len(self.visible), len(self.hidden)
        parts = theta[:n], theta[n : n + m], theta[n + m :].reshape(n, m)
        a, b, w = (x / s for x, s in zip(parts, self._scales(), strict=True))
        return RBM(a - w @ self.hidden, b - self.visible @ w, w)

    def slope(self, residual: Moments) -> np.ndarray:
        """Return the gradient in the coordinates, shape ``(p,)``, from that in ``a, b, W``."""
        v, h, vh = (np.asarray(x) for x in residual)
        centred = v, h, vh - np.outer(v, self.hidden) - np.outer(self.visible, h)
        return _concatenate(x / s for x, s in zip(centred, self._scales(), strict=True))

    def _scales(self) -> tuple[np.ndarray, ...]:
        v, h = self.visible_scale, self.hidden_scale
        return v, h, np.outer(v, h)


def binned_costs(models: Sequence[RBM], moments: Sequence[Moments]) -> np.ndarray:
    """Return ``(eta_{j+1} - eta_j).(s_{j+1} - s_j)`` of each segment, shape ``(m,)``."""
    eta = np.array([_concatenate(jax.tree.leaves(m)) for m in models])
    s = np.array([_concatenate(m) for m in moments])
    costs: np.ndarray = (np.diff(eta, axis=0) * np.diff(s, axis=0)).sum(axis=1)
    return costs


def _concatenate(parts: Iterable[Any]) -> np.ndarray:
    """Return the elements of several arrays in one vector, shape ``(p,)``."""
    return np.concatenate([np.ravel(x).astype(float) for x in parts])


def _target_moments(model: RBM, seed: np.random.SeedSequence) -> Moments:
    if min(model.weights.shape) <= _EXACT_UNITS:
        return exact_moments(model)
    return gibbs_moments(model, random_seed=seed)

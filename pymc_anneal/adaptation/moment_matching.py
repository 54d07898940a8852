"""Moment-averaged paths of any model, by particles.

At knots ``beta_j`` the natural parameters of the tilted prior are to give the averaged moments

    E_{eta_j}[T] = (1 - beta_j) s(0) + beta_j s(1)

(Grosse, Maddison & Salakhutdinov 2013, section 4), ``s(0)`` from prior draws and ``s(1)`` from
draws of the posterior; between knots they are linear. Particles climb from knot to knot by damped
Newton steps

    d eta = (G + rho diag G)^-1 (s* - s^),    G = Cov(T),

each cut to a fixed discrepancy; then they are reweighted, resampled and moved. ``rho`` leaves the
nearly collinear directions of ``V`` and the squares, about which particles say little, where they
were. Statistics are clipped to what most draws of both ends span: the likelihood may have no mean
under the prior. Knots lie ever denser towards 1, because the prior's moments still rule the average
where the densities have long left the prior.

Rough moments cost no unbiasedness: any natural parameters between knots make a path.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import numpy as np

from pymc_anneal.adaptation.particles import ParticleSystem
from pymc_anneal.base.contracts import Path, Transition
from pymc_anneal.base.seeds import key_of
from pymc_anneal.paths.moment_spline import MomentSplinePath
from pymc_anneal.paths.tilted_prior import TiltedPrior

_RIDGE = 0.1


_KNOT_RATIO = 0.65  # of the distances from 1 of neighbouring knots


_LAST_GAP = 1 / 3  # of moments, between the last knots, in standard deviations of the posterior


_KNOTS = 4, 60  # least and most


_PADDING = 32  # shapes are compiled in: a few sizes serve any number of knots


_MAX_NEWTON = 12  # steps at a knot


_NOISE = 1.5  # a residual this many times the particles' noise is none


_MISSED = 1.0  # a residual above it, in standard deviations, is a failure


_TAILS = 0.02  # of the statistics at either end, clipped


class MomentMatchingError(ValueError):
    """The averaged moments cannot be matched, or not within the evaluations allowed.

    ``evaluations`` of gradient or density were taken before this was known.
    """

    def __init__(self, message: str, evaluations: int = 0):
        super().__init__(message)
        self.evaluations = evaluations


class MomentSpline(NamedTuple):
    """A moment-average spline of a model.

    Attributes
    ----------
    path : MomentSplinePath
    knots : ndarray, shape (m + 1,)
        Temperatures, 0 and 1 included.
    natural, moments : ndarray, shape (m + 1, p)
        Natural parameters at the knots, and the averaged moments they were fitted to.
    residual : ndarray, shape (m + 1,)
        Distance of the moments reached from those wanted, in standard deviations.
    evaluations : int
        Evaluations of gradient or density it took.
    """

    path: MomentSplinePath
    knots: np.ndarray
    natural: np.ndarray
    moments: np.ndarray
    residual: np.ndarray
    evaluations: int


class _Limits(NamedTuple):
    """Limits that statistics are clipped to."""

    low: np.ndarray
    high: np.ndarray

    @property
    def floor(self) -> np.ndarray:
        """Least standard deviations: particles that have become one are not where they should."""
        return 1e-6 * (self.high - self.low)

    def of(self, terms) -> np.ndarray:
        """Return the clipped statistics, shape ``(n, p)``."""
        return np.clip(np.asarray(terms.statistics), self.low, self.high)


@dataclass(frozen=True)
class _Climber:
    """Particles on their way, at the natural parameters ``natural``."""

    family: TiltedPrior
    limits: _Limits
    natural: np.ndarray
    cloud: ParticleSystem
    key: jax.Array
    rng: np.random.Generator
    allowed: float
    evaluations: int = 0


def fit_moment_spline(
    base: Path,
    transition: Transition,
    first: np.ndarray,
    last: np.ndarray,
    seed: np.random.SeedSequence,
    *,
    statistics: str = "linear",
    max_evaluations: float = np.inf,
) -> MomentSpline:
    """Fit a moment-average spline between the ends of a path.

    Parameters
    ----------
    base
        Geometric path from the reference to the posterior.
    transition
        A kernel; its parameters that are None are tuned on the way.
    first, last : ndarray, shape (n, d)
        Draws of the reference and of the posterior.
    seed
        Source of randomness.
    statistics
        Of the :class:`TiltedPrior`.
    max_evaluations
        Of gradient or density.

    Returns
    -------
    MomentSpline

    Raises
    ------
    MomentMatchingError
        The particles do not reach the averaged moments at a knot, or not within
        ``max_evaluations``.
    """
    family = TiltedPrior.around(base, first, last, statistics)
    seed_numpy, seed_jax = seed.spawn(2)
    with jax.enable_x64(True):
        key, key_start = jax.random.split(key_of(seed_jax))
        begin = _segment(family, np.zeros((2, family.size)))
        cloud = ParticleSystem.begin(begin, transition, key_start, first)
        at_end = jax.jit(family.evaluate)(last)
        limits = _limits(cloud.state.terms.statistics, at_end.statistics)
        s0, s1 = limits.of(cloud.state.terms).mean(axis=0), limits.of(at_end).mean(axis=0)
        knots = _knots(s1 - s0, limits.of(at_end).std(axis=0))
        moments = (1 - knots[:, None]) * s0 + knots[:, None] * s1
        rng, nothing = np.random.default_rng(seed_numpy), np.zeros(family.size)
        climber = _Climber(family, limits, nothing, cloud, key, rng, max_evaluations)
        reached, residual = [nothing], [0.0]
        for beta, wanted in zip(knots[1:-1], moments[1:-1], strict=True):
            climber, left = _matched(climber, wanted, beta)
            reached.append(climber.natural)
            residual.append(left)
    natural = np.array([*reached, family.posterior])
    return MomentSpline(
        path=_spline(family, knots, natural),
        knots=knots,
        natural=natural,
        moments=moments,
        residual=np.array([*residual, 0.0]),
        evaluations=climber.evaluations,
    )


def _limits(first: jax.Array, last: jax.Array) -> _Limits:
    """Clip to what all but the tails of either end span; zero likelihoods are not counted."""
    ends = [np.where(np.isneginf(t), np.nan, np.asarray(t)) for t in (first, last)]
    low = np.minimum(*(np.nanquantile(t, _TAILS, axis=0) for t in ends))
    high = np.maximum(*(np.nanquantile(t, 1 - _TAILS, axis=0) for t in ends))
    return _Limits(low, high)


def _knots(distance: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return knots from 0 to 1, denser towards 1, the last gap a fraction of the posterior."""
    far = np.abs(distance) / np.where(spread > 0, spread, np.inf)
    gap = _LAST_GAP / max(1.0, float(far.max()))
    count = int(np.clip(np.ceil(np.log(gap) / np.log(_KNOT_RATIO)), *_KNOTS))
    return np.concatenate([1 - np.geomspace(1.0, gap, count), [1.0]])


def _segment(family: TiltedPrior, natural: np.ndarray) -> MomentSplinePath:
    """Return the path between two natural parameters."""
    return _spline(family, np.array([0.0, 1.0]), natural)


def _spline(family: TiltedPrior, knots: np.ndarray, natural: np.ndarray) -> MomentSplinePath:
    """Return the path through knots, padded with knots above 1 where nothing changes."""
    extra = -(len(knots) - 1) % _PADDING
    return MomentSplinePath(
        family,
        np.concatenate([knots, np.arange(2.0, extra + 2)]),
        np.concatenate([natural, np.repeat(natural[-1:], extra, axis=0)]),
    )


def _matched(climber: _Climber, wanted: np.ndarray, beta: float) -> tuple[_Climber, float]:
    """Take Newton steps until the moments are as wanted; return the residual as well."""
    for _ in range(_MAX_NEWTON):
        statistics = climber.limits.of(climber.cloud.state.terms)
        change, left = _newton(statistics, wanted, climber.natural, climber.limits.floor)
        if left <= _NOISE * np.sqrt(len(wanted) / len(statistics)):
            return climber, left
        climber = _moved(climber, change)
        if climber.evaluations > climber.allowed:
            raise MomentMatchingError(
                f"the averaged moments took more than {climber.allowed:.3g} evaluations, at "
                f"beta = {beta:.4g}",
                climber.evaluations,
            )
    if left > _MISSED:
        raise MomentMatchingError(
            f"the averaged moments at beta = {beta:.4g} were missed by {left:.2g} standard "
            "deviations: no tilt of the prior has them, or the particles do not reach it",
            climber.evaluations,
        )
    return climber, left


def _newton(
    statistics: np.ndarray, wanted: np.ndarray, natural: np.ndarray, floor: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return the step and the length of the residual, in standard deviations."""
    residual = wanted - statistics.mean(axis=0)
    change, left = _ridge_step(statistics, residual, floor)
    if natural[0] + change[0] >= 0:
        return change, left
    # Below zero the likelihood's power would give no density: it stays, the others move.
    rest, left = _ridge_step(statistics[:, 1:], residual[1:], floor[1:])
    return np.concatenate([[0.0], rest]), left


def _ridge_step(
    statistics: np.ndarray, residual: np.ndarray, floor: np.ndarray
) -> tuple[np.ndarray, float]:
    centred = statistics - statistics.mean(axis=0)
    deviation = np.maximum(centred.std(axis=0), floor)
    deviation = np.where(deviation > 0, deviation, np.inf)  # the same everywhere
    centred = centred / deviation
    correlation = centred.T @ centred / len(centred)
    step = np.linalg.solve(correlation + _RIDGE * np.eye(len(residual)), residual / deviation)
    length = np.sqrt(max(float(step @ (residual / deviation)), 0.0))
    return step / deviation, length


def _moved(climber: _Climber, change: np.ndarray) -> _Climber:
    """Carry the particles along a Newton step as far as they can go, and move them."""
    path = _segment(climber.family, np.stack([climber.natural, climber.natural + change]))
    share, step = climber.cloud.ahead(path, 0.0)
    key, key_move = jax.random.split(climber.key)
    cloud = climber.cloud.resampled(path, share, step.log_u, climber.rng)
    trials = cloud.tuner.present
    # In the tails of a prior likelihoods can be steep; what is stuck there is left behind later.
    cloud = cloud.moved(path, share, key_move, trials, stuck=False)
    cost = 2 * len(trials) * cloud.tuner.cost * len(cloud.state.position)
    return replace(
        climber,
        natural=climber.natural + share * change,
        cloud=cloud,
        key=key,
        evaluations=climber.evaluations + cost,
    )

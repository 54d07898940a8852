"""Moment matching: the moment-averaged path of any model, by particles.

At knots ``beta_j`` the natural parameters of the tilted prior are fitted to the averaged moments

    E_{eta_j}[T] = (1 - beta_j) s(0) + beta_j s(1)

(Grosse, Maddison & Salakhutdinov 2013, section 4), ``s(0)`` from prior draws and ``s(1)`` from
draws of the posterior; between knots they are linear. Particles move from knot to knot by damped
Newton steps

    d eta = (G + rho diag G)^-1 (s* - s^),    G = Cov(T),

each cut to a fixed discrepancy, followed by reweighting, resampling and a move. The ridge ``rho``
keeps the nearly collinear directions of ``V`` and the squares, which the particles determine badly,
in place. Statistics are clipped to the range of most draws of both ends: the likelihood may have no
mean under the prior. Knots are denser towards 1, because the prior's moments still dominate the
average when the densities have long left the prior.

Inexact moments cost no unbiasedness: any natural parameters at the knots make a path.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import numpy as np

from pymc_anneal.adaptation.particles import ParticleSystem
from pymc_anneal.base.contracts import Path, Transition
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.meter import AbandonedError
from pymc_anneal.base.seeds import key_of
from pymc_anneal.paths.moment_spline import MomentSplinePath
from pymc_anneal.paths.tilted_prior import Statistics, TiltedPrior, TiltedTerms

# Relative ridge of the Newton step; empirical: with 2 % the path of a bimodal target failed.
_RIDGE = 0.1
# Ratio of the distances of neighbouring knots from 1.
_KNOT_RATIO = 0.65
# Distance of moments between the last two knots, in standard deviations of the posterior.
_LAST_GAP = 1 / 3
# Smallest and largest number of knots.
_MIN_KNOTS, _MAX_KNOTS = 4, 60
# Knots are padded to a multiple: shapes are compiled in.
_PADDING = 32
# Largest number of Newton steps at a knot.
_MAX_NEWTON = 12
# A residual below 1.5 Monte Carlo standard errors counts as zero.
_NOISE = 1.5
# A residual above one standard deviation is a failure.
_MAX_RESIDUAL = 1.0
# Share of the statistics that is clipped at either end.
_TAILS = 0.02


class MomentMatchingError(AbandonedError):
    """The averaged moments cannot be matched, or not within the evaluations allowed."""


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
        Distance of the fitted from the wanted moments, in standard deviations.
    evaluations : int
        Evaluations of gradient or density of the fit.
    """

    path: MomentSplinePath
    knots: np.ndarray
    natural: np.ndarray
    moments: np.ndarray
    residual: np.ndarray
    evaluations: int


class _Limits(NamedTuple):
    """Limits to which statistics are clipped, shape (p,) each."""

    low: np.ndarray
    high: np.ndarray

    @classmethod
    def from_ends(cls, first: np.ndarray, last: np.ndarray) -> "_Limits":
        """Span all but the tails of both ends, shape (n, p) each; zero likelihoods do not count."""
        ends = [np.where(np.isneginf(t), np.nan, np.asarray(t)) for t in (first, last)]
        low = np.minimum(*(np.nanquantile(t, _TAILS, axis=0) for t in ends))
        high = np.maximum(*(np.nanquantile(t, 1 - _TAILS, axis=0) for t in ends))
        return cls(low, high)

    @property
    def least_deviation(self) -> np.ndarray:
        """Lower bound on standard deviations: collapsed particles do not count as converged."""
        return np.asarray(1e-6 * (self.high - self.low))

    def clip(self, terms: TiltedTerms) -> np.ndarray:
        """Return the clipped statistics, shape ``(n, p)``."""
        clipped: np.ndarray = np.clip(np.asarray(terms.statistics), self.low, self.high)
        return clipped


@dataclass(frozen=True)
class _SolverState:
    """State of the solver: particles at the natural parameters ``natural``, shape (p,)."""

    family: TiltedPrior
    limits: _Limits
    natural: np.ndarray
    particles: ParticleSystem
    key: jax.Array
    rng: np.random.Generator
    max_evaluations: float
    evaluations: int = 0

    @property
    def statistics(self) -> np.ndarray:
        """Clipped statistics of the particles, shape ``(n, p)``."""
        return self.limits.clip(self.particles.state.terms)


@double_precision
def fit_moment_spline(
    base: Path,
    transition: Transition,
    first: np.ndarray,
    last: np.ndarray,
    seed: np.random.SeedSequence,
    *,
    statistics: Statistics = "linear",
    max_evaluations: float = np.inf,
) -> MomentSpline:
    """Fit a moment-average spline between the ends of a path, of which there are draws ``(n, d)``.

    `base` is the geometric path from the reference to the posterior; parameters of the transition
    that are None are tuned during the fit.

    Raises
    ------
    MomentMatchingError
        The particles miss the averaged moments at a knot, or need more than ``max_evaluations``.
    """
    family = TiltedPrior.around(base, first, last, statistics)
    seed_numpy, seed_jax = seed.spawn(2)
    key, key_start = jax.random.split(key_of(seed_jax))
    start = _segment(family, np.zeros((2, family.size)))
    particles = ParticleSystem.create(start, transition, key_start, first)
    at_end = jax.jit(family.evaluate)(last)
    limits = _Limits.from_ends(particles.state.terms.statistics, at_end.statistics)
    s0 = limits.clip(particles.state.terms).mean(axis=0)
    s1 = limits.clip(at_end).mean(axis=0)
    knots = _place_knots(s1 - s0, limits.clip(at_end).std(axis=0))
    moments = (1 - knots[:, None]) * s0 + knots[:, None] * s1
    rng, zero = np.random.default_rng(seed_numpy), np.zeros(family.size)
    state = _SolverState(family, limits, zero, particles, key, rng, max_evaluations)
    natural, residual = [zero], [0.0]
    for beta, wanted in zip(knots[1:-1], moments[1:-1], strict=True):
        state, distance = _match(state, wanted, beta)
        natural.append(state.natural)
        residual.append(distance)
    fitted = np.array([*natural, family.posterior])
    return MomentSpline(
        path=_spline(family, knots, fitted),
        knots=knots,
        natural=fitted,
        moments=moments,
        residual=np.array([*residual, 0.0]),
        evaluations=state.evaluations,
    )


def _place_knots(distance: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return knots from 0 to 1, denser towards 1, the last gap a fraction of the posterior."""
    far = np.abs(distance) / np.where(spread > 0, spread, np.inf)
    gap = _LAST_GAP / max(1.0, float(far.max()))
    wanted = np.ceil(np.log(gap) / np.log(_KNOT_RATIO))
    count = int(np.clip(wanted, _MIN_KNOTS, _MAX_KNOTS))
    return np.concatenate([1 - np.geomspace(1.0, gap, count), [1.0]])


def _segment(family: TiltedPrior, natural: np.ndarray) -> MomentSplinePath:
    """Return the path between two natural parameters, shape (2, p)."""
    return _spline(family, np.array([0.0, 1.0]), natural)


def _spline(family: TiltedPrior, knots: np.ndarray, natural: np.ndarray) -> MomentSplinePath:
    """Return the path through knots, padded with knots above 1 at which nothing changes."""
    extra = -(len(knots) - 1) % _PADDING
    return MomentSplinePath(
        family,
        np.concatenate([knots, np.arange(2.0, extra + 2)]),
        np.concatenate([natural, np.repeat(natural[-1:], extra, axis=0)]),
    )


def _match(state: _SolverState, wanted: np.ndarray, beta: float) -> tuple[_SolverState, float]:
    """Take Newton steps until the moments are as wanted; return the residual as well."""
    residual = np.inf
    for _ in range(_MAX_NEWTON):
        statistics = state.statistics
        change, residual = _newton_step(state, statistics, wanted)
        if residual <= _NOISE * np.sqrt(len(wanted) / len(statistics)):
            return state, residual
        state = _move_along(state, change)
        if state.evaluations > state.max_evaluations:
            raise MomentMatchingError(
                f"the averaged moments took more than {state.max_evaluations:.3g} evaluations, at "
                f"beta = {beta:.4g}",
                state.evaluations,
            )
    if residual > _MAX_RESIDUAL:
        raise MomentMatchingError(
            f"the averaged moments at beta = {beta:.4g} were missed by {residual:.2g} standard "
            "deviations: no tilt of the prior has them, or the particles do not reach it",
            state.evaluations,
        )
    return state, residual


def _newton_step(
    state: _SolverState, statistics: np.ndarray, wanted: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return the step, shape (p,), and the length of the residual in standard deviations."""
    residual, least = wanted - statistics.mean(axis=0), state.limits.least_deviation
    change, length = _ridge_step(statistics, residual, least)
    if state.natural[0] + change[0] >= 0:
        return change, length
    # A negative power of the likelihood is no density: the power stays, the others move.
    rest, length = _ridge_step(statistics[:, 1:], residual[1:], least[1:])
    return np.concatenate([[0.0], rest]), length


def _ridge_step(
    statistics: np.ndarray, residual: np.ndarray, least_deviation: np.ndarray
) -> tuple[np.ndarray, float]:
    centred = statistics - statistics.mean(axis=0)
    deviation = np.maximum(centred.std(axis=0), least_deviation)
    deviation = np.where(deviation > 0, deviation, np.inf)  # a statistic that is constant
    centred = centred / deviation
    correlation = centred.T @ centred / len(centred)
    step = np.linalg.solve(correlation + _RIDGE * np.eye(len(residual)), residual / deviation)
    length = np.sqrt(max(float(step @ (residual / deviation)), 0.0))
    return step / deviation, float(length)


def _move_along(state: _SolverState, change: np.ndarray) -> _SolverState:
    """Take as much of a Newton step as the discrepancy allows, and move the particles."""
    path = _segment(state.family, np.stack([state.natural, state.natural + change]))
    share, step = state.particles.next_beta(path, 0.0)
    key, key_move = jax.random.split(state.key)
    particles = state.particles.resample(path, share, step.log_u, state.rng)
    candidates = particles.tuner.current()
    # Likelihoods can be steep in the tails of a prior; particles stuck there are resampled away.
    particles = particles.move_and_tune(path, share, key_move, candidates, stuck=False)
    cost = particles.evaluations(candidates)
    return replace(
        state,
        natural=state.natural + share * change,
        particles=particles,
        key=key,
        evaluations=state.evaluations + cost,
    )

"""Particles of one density, carried to the next: what the pilot and the moment solver share.

A step along a path has the discrepancy

    D = log( sum W u^2 * sum W / (sum W u)^2 ),    u = f_{beta'} / f_beta;

equally weighted particles are carried as far as a wanted one allows, resampled, and moved while the
transition learns from each move.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jax.scipy.special import logsumexp

from pymc_anneal.adaptation.tuning import Report, Trial, Tuner
from pymc_anneal.annealing.resampling import systematic
from pymc_anneal.base.contracts import KernelState, NanDensityError, Path, Transition, gradient
from pymc_anneal.transitions.composition import step_by_parts

_DISCREPANCY = 0.25


_STUCK = 0.1  # an acceptance probability below which a particle stays where it is


class Increment(NamedTuple):
    """What a step does to the weights.

    Attributes
    ----------
    log_u : ndarray, shape (n,)
    log_mean, discrepancy : float
        Log of the mean of ``u``, and ``D`` among the particles of non-zero density.
    """

    log_u: Any
    log_mean: Any
    discrepancy: Any


@dataclass(frozen=True)
class ParticleSystem:
    """Equally weighted particles, and the transition under tuning that moves them."""

    state: KernelState
    tuner: Tuner

    @classmethod
    def begin(
        cls, path: Path, transition: Transition, key: jax.Array, position
    ) -> "ParticleSystem":
        """Return particles at the start of a path, positions of shape ``(n, d)``."""
        state = _initial(path, transition, key, position)
        return cls(state, Tuner.of(transition, position))

    def ahead(self, path: Path, beta: float) -> tuple[float, Increment]:
        """Find how far the particles can be carried from ``beta``, at most to 1."""
        stop, step = jax.device_get(_bisect(path, self.state.terms, beta))
        increment = Increment(step.log_u, float(step.log_mean), float(step.discrepancy))
        return float(stop), increment

    def resampled(
        self, path: Path, beta: float, log_u: np.ndarray, rng: np.random.Generator
    ) -> "ParticleSystem":
        """Carry the particles to ``beta``: resample them, and give the transition their scale."""
        weight = np.exp(log_u - log_u.max())
        slope = partial(_slope, path, self.state.position, beta)
        tuner = self.tuner.rescaled(np.asarray(self.state.position), weight, slope)
        return ParticleSystem(_take(self.state, systematic(rng, weight, len(weight))), tuner)

    def moved(
        self, path: Path, beta: float, key: jax.Array, trials: Sequence[Trial], stuck: bool = True
    ) -> "ParticleSystem":
        """Move the particles twice for each trial, and learn from it.

        Parameters
        ----------
        path, beta
            The density.
        key
            Randomness.
        trials
            What to try.
        stuck
            Whether a few particles that cannot move at all shorten the steps of the others.

        Raises
        ------
        NanDensityError
            The log density is NaN at a sound proposal.
        """
        state, tuner = self.state, self.tuner
        for i, trial in enumerate(trials):
            state, report = _move_twice(path, tuner.built(trial), state, key, beta, i)
            report = jax.device_get(report)
            if report.nan:
                raise NanDensityError(report.nan_position)
            share = report.stuck if stuck else np.zeros_like(report.stuck)
            learned = Report(report.accept_rate, share, report.first, report.second)
            tuner = tuner.learned(trial, learned)
        return ParticleSystem(state, tuner)

    def settled(self) -> "ParticleSystem":
        """Return the particles with the best transition next to the present one."""
        return replace(self, tuner=self.tuner.settled())


@jax.jit
def _initial(path: Path, transition, key, position) -> KernelState:
    position = jnp.asarray(position)
    return KernelState(position, path.evaluate(position), transition.init(key, position))


class _MoveReport(NamedTuple):
    accept_rate: jax.Array
    stuck: jax.Array
    first: jax.Array
    second: jax.Array
    nan: jax.Array
    nan_position: jax.Array


@jax.jit
def _move_twice(path: Path, kernel, state: KernelState, key, beta, number):
    kernel = kernel.at(beta)
    keys = jax.random.split(jax.random.fold_in(key, number))

    def move(state: KernelState, key):
        state, infos = step_by_parts(kernel, key, state, path, beta)
        accept = jnp.stack([info.accept_rate.mean() for info in infos])
        stuck = jnp.stack([(info.accept_rate < _STUCK).mean() for info in infos])
        nan = jnp.concatenate([info.nan for info in infos])
        at = jnp.argmax(nan)
        where = jnp.concatenate([info.nan_position for info in infos])[at]
        return state, (path.velocity(state.terms, beta), accept, stuck, nan[at], where)

    start = path.velocity(state.terms, beta)
    state, ((middle, end), accept, stuck, nan, where) = jax.lax.scan(move, state, keys)
    return state, _MoveReport(
        accept_rate=accept.mean(axis=0),
        stuck=stuck.mean(axis=0),
        first=0.5 * (_correlation(start, middle) + _correlation(middle, end)),
        second=_correlation(start, end),
        nan=nan.any(),
        nan_position=where[jnp.argmax(nan)],
    )


_gradient = jax.jit(gradient)


def _slope(path: Path, position: jax.Array, beta: float) -> np.ndarray:
    return np.asarray(_gradient(path, position, beta))


def _correlation(a: jax.Array, b: jax.Array) -> jax.Array:
    a, b = a - a.mean(), b - b.mean()
    norm = jnp.sqrt((a**2).sum() * (b**2).sum())
    return jnp.where(norm > 0, (a * b).sum() / jnp.where(norm > 0, norm, 1.0), 0.0)


def _discrepancy(log_u) -> jax.Array:
    """``D`` of equally weighted increments, those of weight zero left out."""
    count = jnp.isfinite(log_u).sum()
    return logsumexp(2 * log_u) - 2 * logsumexp(log_u) + jnp.log(count)


@jax.jit
def _bisect(path: Path, terms, beta):
    """Find the next temperature, by bisection over the log of the step."""

    def fits(step):
        return _discrepancy(path.log_ratio(terms, beta, beta + step)) <= _DISCREPANCY

    def halve(_, bounds):
        low, high = bounds
        middle = 0.5 * (low + high)
        good = fits(jnp.exp(middle))
        return jnp.where(good, middle, low), jnp.where(good, high, middle)

    rest = 1.0 - beta
    low, high = jnp.log(jnp.maximum(1e-300, 2e-16 * beta)), jnp.log(rest)
    low, _ = jax.lax.fori_loop(0, 80, halve, (low, high))
    stop = jnp.where(fits(rest), 1.0, jnp.minimum(beta + jnp.exp(low), 1.0))
    log_u = path.log_ratio(terms, beta, stop)
    log_mean = logsumexp(log_u) - jnp.log(log_u.size)
    return stop, Increment(log_u, log_mean, jnp.maximum(_discrepancy(log_u), 0.0))


@jax.jit
def _take(state: KernelState, index: np.ndarray) -> KernelState:
    return jax.tree.map(lambda a: a[index], state)

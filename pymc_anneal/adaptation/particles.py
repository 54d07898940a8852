"""Particle systems on a path: reweight, resample, move; for the pilot and for moment matching.

A step along a path has the discrepancy

    D = log( sum W u^2 * sum W / (sum W u)^2 ),    u = f_{beta'} / f_beta.

Equally weighted particles take the largest step whose discrepancy does not exceed a limit, are
resampled, and are moved while the transition is tuned by the diagnostics of each move.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from scipy.special import logsumexp

from pymc_anneal.adaptation.tuning import Candidate, MoveDiagnostics, Tuner
from pymc_anneal.annealing.resampling import systematic
from pymc_anneal.annealing.step_statistics import discrepancy
from pymc_anneal.base.contracts import (
    KernelState,
    NanDensityError,
    Path,
    PyTree,
    Scalar,
    StepInfo,
    Transition,
    log_density_and_gradient,
    rejected_nan,
)
from pymc_anneal.base.programs import forgettable

# Discrepancy of a step: a conditional effective sample size of exp(-1/4) = 78 % of the particles.
DISCREPANCY = 0.25
# Particles whose acceptance probability is below this count as stuck.
_STUCK = 0.1


class Increment(NamedTuple):
    """Weights of one step of a particle system.

    Attributes
    ----------
    log_u : ndarray, shape (n,)
        Log increments of the weights.
    log_mean : float
        Log of the mean of ``u``.
    discrepancy : float
        ``D`` among the particles of non-zero density.
    """

    log_u: np.ndarray
    log_mean: float
    discrepancy: float


@dataclass(frozen=True)
class ParticleSystem:
    """Equally weighted particles, and the transition under tuning that moves them.

    Attributes
    ----------
    state : KernelState
        Leaves of shape ``(n, ...)``.
    tuner : Tuner
    ancestor : ndarray of int, shape (n,)
        The particle at the start from which each one descends.
    """

    state: KernelState
    tuner: Tuner
    ancestor: np.ndarray

    @classmethod
    def create(
        cls, path: Path, transition: Transition, key: jax.Array, position: np.ndarray
    ) -> "ParticleSystem":
        """Place particles at the start of a path, positions of shape ``(n, d)``."""
        auxiliary = _initial_auxiliary(transition, key, position)
        state = KernelState(jnp.asarray(position), evaluate(path, position), auxiliary)
        return cls(state, Tuner.create(transition, position), np.arange(len(position)))

    def next_beta(
        self, path: Path, beta: float, limit: float = DISCREPANCY
    ) -> tuple[float, Increment]:
        """Find the largest temperature, at most 1, that a step of discrepancy ``limit`` reaches."""
        stop, log_u = jax.device_get(_largest_step(path, self.state.terms, beta, limit))
        log_mean = float(logsumexp(log_u) - np.log(log_u.size))
        with np.errstate(divide="ignore", invalid="ignore"):  # all ratios may be zero
            spent = np.maximum(discrepancy(log_u), 0.0)
        return float(stop), Increment(log_u, log_mean, float(spent))

    def resample(
        self, path: Path, beta: float, log_u: np.ndarray, rng: np.random.Generator
    ) -> "ParticleSystem":
        """Resample the particles by their increments, and rescale the transition to ``beta``."""
        weight = np.exp(log_u - log_u.max())
        slope = partial(gradient_array, path, self.state.position, beta)
        tuner = self.tuner.rescale(np.asarray(self.state.position), weight, slope)
        chosen = systematic(rng, weight, len(weight))
        return ParticleSystem(_take(self.state, chosen), tuner, self.ancestor[chosen])

    def move_and_tune(
        self,
        path: Path,
        beta: float,
        key: jax.Array,
        candidates: Sequence[Candidate],
        stuck: bool = True,
    ) -> "ParticleSystem":
        """Move the particles twice with each candidate effort in turn, and tune by it.

        A few particles that reject nearly always shorten the steps of all, if `stuck`.

        Raises
        ------
        NanDensityError
            The log density is NaN at a proposal that is not a divergence.
        """
        state, tuner = self.state, self.tuner
        for i, candidate in enumerate(candidates):
            state, found = _move_twice(path, tuner.build(candidate), state, key, beta, i)
            moves = jax.device_get(found)
            if moves.nan and rejected_nan(state.terms) is None:
                raise NanDensityError(moves.nan_position)
            share = moves.stuck_share if stuck else np.zeros_like(moves.stuck_share)
            diagnostics = MoveDiagnostics(moves.accept_rate, share, moves.first, moves.second)
            tuner = tuner.update(candidate, diagnostics)
        return replace(self, state=state, tuner=tuner)

    def evaluations(self, candidates: Sequence[Candidate]) -> int:
        """Return the evaluations of two moves of all particles for each candidate."""
        return 2 * len(candidates) * self.tuner.cost * len(self.state.position)

    def keep_best(self) -> "ParticleSystem":
        """Choose the best effort level next to the current one."""
        return replace(self, tuner=self.tuner.keep_best())


def settle(
    path: Path, kernel: Transition, position: np.ndarray, key: jax.Array, pairs: int
) -> np.ndarray:
    """Move particles of the end of a path so many times two, shape ``(n, d)``."""
    auxiliary = _initial_auxiliary(kernel, key, position)
    state = KernelState(jnp.asarray(position), evaluate(path, position), auxiliary)
    for i in range(pairs):
        state, _ = _move_twice(path, kernel, state, key, 1.0, i)
    return np.asarray(state.position)


@forgettable
@jax.jit
def evaluate(path: Path, position: jax.Array | np.ndarray) -> PyTree:
    """Return the terms of a path at positions, compiled once for a number of them."""
    return path.evaluate(jnp.asarray(position))


@forgettable
@jax.jit
def _initial_auxiliary(transition: Transition, key: jax.Array, position: jax.Array) -> PyTree:
    return transition.init(key, position)


class _Moves(NamedTuple):
    """Diagnostics of two moves, by part of the transition; and the first NaN.

    `MoveDiagnostics` as JAX arrays, ``nan`` of shape () and ``nan_position`` of shape (d,).
    """

    accept_rate: jax.Array
    stuck_share: jax.Array
    first: jax.Array
    second: jax.Array
    nan: jax.Array
    nan_position: jax.Array


@forgettable
@jax.jit
def _move_twice(
    path: Path,
    transition: Transition,
    state: KernelState,
    key: jax.Array,
    beta: Scalar,
    number: int,
) -> tuple[KernelState, _Moves]:
    kernel = transition.at(beta)
    keys = jax.random.split(jax.random.fold_in(key, number))

    def move(state: KernelState, key: jax.Array) -> tuple[KernelState, tuple[jax.Array, ...]]:
        state, infos = kernel.step_by_part(key, state, path, beta)
        return state, (path.velocity(state.terms, beta), *_summarise(infos))

    start = path.velocity(state.terms, beta)
    state, ((middle, end), accept, stuck, nan, where) = jax.lax.scan(move, state, keys)
    return state, _Moves(
        accept_rate=accept.mean(axis=0),
        stuck_share=stuck.mean(axis=0),
        first=0.5 * (_correlation(start, middle) + _correlation(middle, end)),
        second=_correlation(start, end),
        nan=nan.any(),
        nan_position=where[jnp.argmax(nan)],
    )


def _summarise(infos: Sequence[StepInfo]) -> tuple[jax.Array, ...]:
    """Return acceptance and stuck share by part, shape (parts,), and the first NaN proposal."""
    accept = jnp.stack([info.accept_rate.mean() for info in infos])
    stuck = jnp.stack([(info.accept_rate < _STUCK).mean() for info in infos])
    nan = jnp.concatenate([info.nan for info in infos])
    first = jnp.argmax(nan)
    where = jnp.concatenate([info.nan_position for info in infos])[first]
    return accept, stuck, nan[first], where


@forgettable
@jax.jit
def _value_and_gradient(
    path: Path, position: jax.Array, beta: Scalar
) -> tuple[jax.Array, jax.Array]:
    return log_density_and_gradient(path, position, beta)


def value_and_gradient(
    path: Path, position: jax.Array | np.ndarray, beta: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return ``log f_beta``, shape ``(n,)``, and its gradient, shape ``(n, d)``.

    Compiled once for a path and a number of particles.
    """
    log_density, slope = _value_and_gradient(path, position, beta)
    return np.asarray(log_density), np.asarray(slope)


def trace_of_gradient(path: Path, position: np.ndarray) -> Any:
    """Return the jaxpr of `value_and_gradient`, which JAX traces once for it and for calls."""
    return _value_and_gradient.trace(path, position, 1.0).jaxpr


def gradient_array(path: Path, position: jax.Array | np.ndarray, beta: float) -> np.ndarray:
    """Return the gradient of ``log f_beta``, shape ``(n, d)``."""
    return value_and_gradient(path, position, beta)[1]


def _correlation(a: jax.Array, b: jax.Array) -> jax.Array:
    a, b = _centred(a), _centred(b)
    norm = jnp.sqrt((a**2).sum() * (b**2).sum())
    return jnp.where(norm > 0, (a * b).sum() / jnp.where(norm > 0, norm, 1.0), 0.0)


def _centred(a: jax.Array) -> jax.Array:
    """Return values less their mean, in units of the largest: squares of 1e300 overflow."""
    largest = jnp.abs(a).max()
    a = a / jnp.where(largest > 0, largest, 1.0)
    return a - a.mean()


@forgettable
@jax.jit
def _largest_step(
    path: Path, terms: PyTree, beta: Scalar, limit: Scalar
) -> tuple[jax.Array, jax.Array]:
    """Find the next temperature by bisection over the log of the step, and the increments."""

    def fits(step: Scalar) -> jax.Array:
        return jnp.less_equal(discrepancy(path.log_ratio(terms, beta, beta + step)), limit)

    def halve(i: jax.Array, bounds: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = bounds
        # The whole rest first: one instance of the density, which takes the compiler long.
        middle = jnp.where(i == 0, high, 0.5 * (low + high))
        good = fits(jnp.exp(middle))
        return jnp.where(good, middle, low), jnp.where(good, high, middle)

    low, rest = jnp.log(jnp.maximum(1e-300, 2e-16 * beta)), jnp.log(1.0 - beta)
    low, _ = jax.lax.fori_loop(0, 81, halve, (low, rest))
    stop = jnp.where(low == rest, 1.0, jnp.minimum(beta + jnp.exp(low), 1.0))
    return stop, path.log_ratio(terms, beta, stop)


@forgettable
@jax.jit
def _take(state: KernelState, index: np.ndarray) -> KernelState:
    taken: KernelState = jax.tree.map(lambda a: a[index], state)
    return taken

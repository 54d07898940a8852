"""The pilot: a short adaptive run that surveys the path and tunes the transition.

From prior draws, beta rises so that each step has the discrepancy

    D = log( sum W u^2 * sum W / (sum W u)^2 ) = target,    u = f_{beta'} / f_beta,

that is, a fixed conditional effective sample size (Zhou, Johansen & Aston 2016); the step is
found by bisection in log scale and may be as small as floating point allows. After each step the
particles are resampled and moved, and while they move the kernel is tuned (:mod:`tuner`).

Nothing of the pilot enters the estimate.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jax.scipy.special import logsumexp

from pymc_anneal.base import KernelState, Path, Transition
from pymc_anneal.engine import NanDensityError, key_of
from pymc_anneal.paths import gradient
from pymc_anneal.transitions.composition import step_by_parts
from pymc_anneal.tuner import Report, Tuner, by_temperature

__all__ = ["Pilot", "PilotProgress", "run_pilot"]

_DISCREPANCY = 0.25
_STUCK = 0.1  # an acceptance probability below which a particle stays where it is
_MAX_TEMPERATURES = 2000


@dataclass(frozen=True)
class Pilot:
    """What the pilot found.

    Attributes
    ----------
    betas : ndarray, shape (m + 1,)
        Temperatures from 0 to 1.
    discrepancy : ndarray, shape (m,)
        ``D`` of each step among the particles of non-zero likelihood.
    log_reference_mass : float
        Log share of prior draws with non-zero likelihood.
    transition : Transition
        The tuned transition.
    tau : ndarray, shape (m,)
        Integrated autocorrelation time of the velocity under the transition at ``betas[1:]``.
    cost : ndarray, shape (m,)
        Evaluations of gradient or density of the transition at ``betas[1:]``.
    accept_rate : ndarray, shape (m,)
    log_z : float
        Sequential Monte Carlo estimate of the log evidence, for comparison only.
    position : ndarray, shape (n, d)
        Particles at ``beta = 1``.
    """

    betas: np.ndarray
    discrepancy: np.ndarray
    log_reference_mass: float
    transition: Transition
    tau: np.ndarray
    cost: np.ndarray
    accept_rate: np.ndarray
    log_z: float
    position: np.ndarray = field(repr=False)

    @property
    def barrier(self) -> float:
        """Length of the path, ``Lambda = sum sqrt(D)``."""
        return float(np.sqrt(self.discrepancy).sum())

    @property
    def log_z_mcse(self) -> float:
        """Rough standard error of ``log_z``: increments of the steps, inflated by the mixing."""
        increments = np.expm1(self.discrepancy) * np.maximum(self.tau, 1.0)
        return float(np.sqrt(increments.sum() / len(self.position)))


class PilotProgress(NamedTuple):
    """Where the pilot stands."""

    beta: float
    log_z: float
    n_steps: int
    accept_rate: float


def run_pilot(
    path: Path,
    transition: Transition,
    position: np.ndarray,
    seed: np.random.SeedSequence,
    report: Callable[[PilotProgress], None] = lambda progress: None,
) -> Pilot:
    """Survey the path and tune the transition.

    Parameters
    ----------
    path
        The path.
    transition
        A kernel; its parameters that are None are tuned. One without such parameters is
        used as it is.
    position : ndarray, shape (n, d)
        Draws of the reference.
    seed
        Source of randomness.
    report
        Called after each temperature.

    Returns
    -------
    Pilot

    Raises
    ------
    NanDensityError
        The log density is NaN at a prior draw or a sound proposal.
    ValueError
        The likelihood is zero at every draw, or infinite at one.
    """
    seed_numpy, seed_jax = seed.spawn(2)
    rng = np.random.default_rng(seed_numpy)
    with jax.enable_x64(True):
        key = key_of(seed_jax)
        state = _initial(path, transition, key, position)
        log_mass = _check_start(path, state)
        tuner = Tuner.of(transition, position)
        betas, records, log_z = [0.0], [], 0.0
        while betas[-1] < 1:
            beta, step = _next_beta(path, state, betas[-1])
            log_z += step.log_mean
            weight = np.exp(step.log_u - step.log_u.max())
            slope = partial(_slope, path, state.position, beta)
            tuner = tuner.rescaled(np.asarray(state.position), weight, slope)
            state = _take(state, _systematic(rng, weight))
            key = jax.random.fold_in(key, len(betas))
            state, tuner = _tune(path, tuner, state, key, beta, first=len(betas) == 1)
            betas.append(beta)
            records.append((step.discrepancy, tuner))
            report(PilotProgress(beta, log_z, tuner.n_steps, tuner.accept_rate))
            if len(betas) > _MAX_TEMPERATURES:
                raise ValueError(
                    f"The pilot took {_MAX_TEMPERATURES} temperatures to reach beta = {beta:.3g}. "
                    "Prior and likelihood are too far apart to anneal between them: use a prior "
                    "nearer to the data, or check the likelihood's scale."
                )
    tuners = [t for _, t in records]
    return Pilot(
        betas=np.array(betas),
        discrepancy=np.array([d for d, _ in records]),
        log_reference_mass=log_mass,
        transition=by_temperature(betas[1:], tuners),
        tau=np.array([t.tau for t in tuners]),
        cost=np.array([t.cost for t in tuners]),
        accept_rate=np.array([t.accept_rate for t in tuners]),
        log_z=log_z,
        position=np.asarray(state.position),
    )


class _Increment(NamedTuple):
    log_u: Any
    log_mean: Any
    discrepancy: Any


def _tune(path, tuner: Tuner, state: KernelState, key, beta: float, first: bool):
    """Move the particles a few times at one temperature, learning from each move."""
    for i, trial in enumerate(tuner.trials(first)):
        state, report = _move_twice(path, tuner.built(trial), state, key, beta, i)
        report = jax.device_get(report)
        if report.nan:
            raise NanDensityError(report.nan_position)
        learned = Report(report.accept_rate, report.stuck, report.first, report.second)
        tuner = tuner.learned(trial, learned)
    return state, tuner.settled()


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


@jax.jit
def _initial(path: Path, transition, key, position) -> KernelState:
    position = jnp.asarray(position)
    return KernelState(position, path.evaluate(position), transition.init(key, position))


def _check_start(path: Path, state: KernelState) -> float:
    """Return the log share of draws with a non-zero likelihood; raise where there is none."""
    ratio = np.asarray(path.log_ratio(state.terms, 0.0, 1.0))
    nan = np.isnan(ratio) | np.isnan(np.asarray(path.log_density(state.terms, 0.0)))
    if nan.any():
        raise NanDensityError(np.asarray(state.position)[nan.argmax()])
    if np.isposinf(ratio).any():
        raise ValueError(
            "The log likelihood is +inf at a prior draw: the likelihood is not a density there."
        )
    alive = np.isfinite(ratio).mean()
    if alive == 0:
        raise ValueError(
            f"The likelihood is zero at all of {len(ratio)} prior draws: prior and data "
            "contradict each other, or a potential forbids (nearly) all of the prior. Check the "
            "support of the likelihood; widen or move the prior."
        )
    return float(np.log(alive))


def _next_beta(path: Path, state: KernelState, beta: float) -> tuple[float, _Increment]:
    stop, step = jax.device_get(_bisect(path, state.terms, beta))
    return float(stop), _Increment(step.log_u, float(step.log_mean), float(step.discrepancy))


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
    return stop, _Increment(log_u, log_mean, jnp.maximum(_discrepancy(log_u), 0.0))


def _systematic(rng: np.random.Generator, weight: np.ndarray) -> np.ndarray:
    """Systematic resampling; return indices."""
    n = len(weight)
    edges = np.cumsum(weight) / weight.sum()
    return np.searchsorted(edges, (np.arange(n) + rng.uniform()) / n, side="right").clip(0, n - 1)


@jax.jit
def _take(state: KernelState, index: np.ndarray) -> KernelState:
    return jax.tree.map(lambda a: a[index], state)

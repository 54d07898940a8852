"""The pilot: a short adaptive run that surveys the path and tunes the transition.

From prior draws, beta rises so that each step has the discrepancy

    D = log( sum W u^2 * sum W / (sum W u)^2 ) = target,    u = f_{beta'} / f_beta,

that is, a fixed conditional effective sample size (Zhou, Johansen & Aston 2016); the step is
found by bisection in log scale and may be as small as floating point allows. After each step the
particles are resampled and moved, and while they move the kernel is tuned: its ``scale`` to their
covariance, its ``step_size`` to its target acceptance, and its ``n_steps`` to the least

    cost tau,    tau = 1 + 2 (rho_1 + rho_2 + ...),

evaluations a transition times integrated autocorrelation time, where ``rho`` are the
autocorrelations of the velocity of the path: the weights depend on nothing else. Two moves in a
row give ``rho_1`` and ``rho_2``, and ``rho_{l+1} / rho_l`` is taken to stay what it is there.

Nothing of the pilot enters the estimate.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jax.scipy.special import logsumexp

from pymc_anneal.base import KernelState, Path, Transition
from pymc_anneal.engine import NanDensityError, key_of
from pymc_anneal.paths import gradient
from pymc_anneal.preconditioning import scale_of
from pymc_anneal.transitions.tuned import TunedTransition

__all__ = ["Pilot", "PilotProgress", "autocorrelation_time", "run_pilot"]

_DISCREPANCY = 0.25
_RUNGS = 24
_MOVES = 3
_FIRST_MOVES = 7
_MEMORY = 0.7  # weight of the past in the smoothed scores of the ladder
_PADDING = 32
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


def _cost(kernel: Any, n_steps: int) -> int:
    return kernel.cost(n_steps) if hasattr(kernel, "cost") else 1


def autocorrelation_time(first: float, second: float) -> float:
    """Integrated autocorrelation time from the autocorrelations at lags one and two.

    ``1 + 2 (rho_1 + rho_2 / (1 - rho_2 / rho_1))``, at least 1/2; the ratio is kept within
    [rho_1, 0.95], between a process of first order and one with a slow part.
    """
    first = min(max(first, -0.25), 0.99)
    if first <= 0:
        return max(1 + 2 * first, 0.5)
    ratio = min(max(second / first, first), max(0.95, first))
    return 1 + 2 * first / (1 - ratio)


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
        tuner = _Tuner.of(transition, position)
        betas, records, log_z = [0.0], [], 0.0
        while betas[-1] < 1:
            beta, step = _next_beta(path, state, betas[-1])
            log_z += step.log_mean
            weight = np.exp(step.log_u - step.log_u.max())
            tuner = tuner.rescaled(path, state.position, weight, beta)
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
        transition=_by_temperature(betas, tuners),
        tau=np.array([t.tau for t in tuners]),
        cost=np.array([_cost(transition, t.n_steps) for t in tuners]),
        accept_rate=np.array([t.accept_rate for t in tuners]),
        log_z=log_z,
        position=np.asarray(state.position),
    )


class _Increment(NamedTuple):
    log_u: Any
    log_mean: Any
    discrepancy: Any


@dataclass(frozen=True)
class _Tuner:
    """A kernel under tuning, and what has been learned about it."""

    kernel: Any
    free: frozenset[str]
    step_limit: float
    scale: np.ndarray
    rung: int
    scores: np.ndarray
    tau: float
    accept_rate: float

    @classmethod
    def of(cls, kernel: Transition, position: np.ndarray) -> "_Tuner":
        names = ("step_size", "n_steps", "scale")
        free = frozenset(n for n in names if getattr(kernel, n, False) is None)
        d = max(position.shape[1], 1)
        # Optimal scalings: d^(-1/4) for HMC (Beskos et al. 2013), d^(-1/2) for a random walk.
        limit = 1.2 * d**-0.25 if getattr(kernel, "target_accept", 0) > 0.5 else 2.4 * d**-0.5
        return cls(
            kernel=kernel,
            free=free,
            step_limit=limit,
            scale=np.ones(position.shape[1]),
            rung=getattr(kernel, "start_rung", 0),
            scores=np.full(_RUNGS, np.nan),
            tau=2.0,
            accept_rate=1.0,
        )

    def effort(self, rung: int) -> tuple[float, int]:
        """Return the step size and the number of steps of a rung, those fixed by hand kept."""
        fixed_size, fixed_steps = (getattr(self.kernel, n, 1) for n in ("step_size", "n_steps"))
        if "n_steps" not in self.free:
            return self.step_limit if "step_size" in self.free else fixed_size, fixed_steps
        if "step_size" not in self.free:
            return fixed_size, rung + 1
        return self.kernel.effort(rung, self.step_limit)

    @property
    def n_steps(self) -> int:
        return int(self.effort(self.rung)[1])

    def built(self, rung: int | None = None) -> Any:
        """Return the kernel with numbers in place of the free parameters."""
        step_size, n_steps = self.effort(self.rung if rung is None else rung)
        values = {
            "step_size": np.asarray(float(step_size)),
            "n_steps": np.asarray(int(n_steps)),
            "scale": self.scale,
        }
        return replace(self.kernel, **{name: values[name] for name in self.free})

    def rescaled(self, path: Path, position, weight: np.ndarray, beta: float) -> "_Tuner":
        if "scale" not in self.free or position.shape[1] == 0:
            return self
        smooth = getattr(self.kernel, "uses_gradient", False)
        slope = np.asarray(_gradient(path, position, beta)) if smooth else None
        return replace(self, scale=scale_of(np.asarray(position), weight, slope))

    def learned(self, rung: int, tau: float, accept_rate: float, stuck: float) -> "_Tuner":
        """Return the tuner after two moves with the given rung of the ladder."""
        step_size, n_steps = self.effort(rung)
        cost = np.log(_cost(self.kernel, n_steps) * tau)
        scores = self.scores.copy()
        old = scores[rung]
        scores[rung] = cost if np.isnan(old) else _MEMORY * old + (1 - _MEMORY) * cost
        # The share of rejections is about proportional to the square of the step size.
        wanted_rejected = 1 - getattr(self.kernel, "target_accept", 0.0)
        rejected = max(1 - accept_rate, 1e-3)
        if hasattr(self.kernel, "max_stuck"):
            rejected = max(rejected, wanted_rejected * stuck / self.kernel.max_stuck)
        ratio = np.sqrt(wanted_rejected / rejected)
        wanted = step_size * np.clip(ratio, 0.25, 4.0)
        return replace(
            self,
            scores=scores,
            step_limit=float(np.sqrt(self.step_limit * wanted)),
            tau=float(np.sqrt(tau * self.tau)) if rung == self.rung else self.tau,
            accept_rate=accept_rate if rung == self.rung else self.accept_rate,
        )

    def settled(self) -> "_Tuner":
        """Return the tuner on the best rung next to the present one."""
        if "n_steps" not in self.free:
            return self
        low, high = max(self.rung - 1, 0), min(self.rung + 2, _RUNGS)
        near = self.scores[low:high]
        return self if np.isnan(near).all() else replace(self, rung=low + int(np.nanargmin(near)))

    def rungs(self, moves: int) -> list[int]:
        """Return which rungs to try at a temperature: the present one, and its neighbours."""
        if "n_steps" not in self.free:
            return [self.rung] * moves
        near = [self.rung, max(self.rung - 1, 0), min(self.rung + 1, _RUNGS - 1)]
        return (near * moves)[:moves]


def _tune(path, tuner: _Tuner, state: KernelState, key, beta: float, first: bool):
    """Move the particles a few times at one temperature, learning from each move."""
    for i, rung in enumerate(tuner.rungs(_FIRST_MOVES if first else _MOVES)):
        state, report = _move_twice(path, tuner.built(rung), state, key, beta, i)
        report = jax.device_get(report)
        if report.nan:
            raise NanDensityError(report.nan_position)
        tau = autocorrelation_time(float(report.first), float(report.second))
        tuner = tuner.learned(rung, tau, float(report.accept_rate), float(report.stuck))
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
        state, info = kernel.step(key, state, path, beta)
        at = jnp.argmax(info.nan)
        stuck = (info.accept_rate < _STUCK).mean()
        outcome = path.velocity(state.terms, beta), info.accept_rate.mean(), stuck, info.nan[at]
        return state, (*outcome, info.nan_position[at])

    start = path.velocity(state.terms, beta)
    state, ((middle, end), accept, stuck, nan, where) = jax.lax.scan(move, state, keys)
    return state, _MoveReport(
        accept_rate=accept.mean(),
        stuck=stuck.mean(),
        first=0.5 * (_correlation(start, middle) + _correlation(middle, end)),
        second=_correlation(start, end),
        nan=nan.any(),
        nan_position=where[jnp.argmax(nan)],
    )


_gradient = jax.jit(gradient)


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


def _by_temperature(betas: list[float], tuners: list[_Tuner]) -> Transition:
    if not tuners[0].free:
        return tuners[0].kernel
    kernels = [t.built() for t in tuners]
    dense = max(np.ndim(t.scale) for t in tuners) == 2
    if dense and "scale" in tuners[0].free:
        kernels = [
            replace(k, scale=k.scale if k.scale.ndim == 2 else jnp.diag(k.scale)) for k in kernels
        ]
    numeric = [jax.tree.map(jnp.asarray, k) for k in kernels]
    # Shapes are compiled in: a few sizes serve any number of temperatures. What is added lies
    # above beta = 1 and repeats the last kernel.
    extra = -len(numeric) % _PADDING
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *numeric, *[numeric[-1]] * extra)
    return TunedTransition(jnp.asarray([*betas[1:], *range(2, extra + 2)]), stacked)

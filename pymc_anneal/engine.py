"""The annealing loop.

For ``k = 1..K``, with ``T_beta`` the transition,

    log w <- log w + log f_{beta_k}(x) - log f_{beta_{k-1}}(x),    then    x ~ T_{beta_k}(. | x)

(Neal 2001, eq. 3-5). Where the schedule decreases, from the target to the reference, the order is
that of the reversed trajectory: move at ``beta_k``, then the same increment with the other sign
(Grosse, Ghahramani & Adams 2015). Particles run in blocks of fixed size, each with its own random
stream; a step's statistics are reduced to a few sums for each chain as they arise, so memory is
``O(N d)`` for any number of steps, and the result does not depend on which worker runs a block.
"""

import threading
import time

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base import KernelState, Path, StepInfo, Transition
from pymc_anneal.resampling import resample_populations
from pymc_anneal.stats import Stats, reduce_step

__all__ = [
    "Block",
    "BlockResult",
    "Ladder",
    "NanDensityError",
    "Progress",
    "Snapshot",
    "Stopped",
    "key_of",
    "last_progress",
    "run_block",
]

# Steps compiled into one call; the number really taken is set at run time.
_CHUNK = 512
# Seconds between looks at the progress bar and the stop signal.
_INTERVAL = 0.2


class NanDensityError(ValueError):
    """The log density was NaN at a position where it should be a number or -inf.

    Attributes
    ----------
    position : ndarray, shape (d,)
        The first such position.
    """

    def __init__(self, position: np.ndarray):
        super().__init__(f"The log density is NaN at x = {position}.")
        self.position = position

    def __reduce__(self) -> tuple:
        return NanDensityError, (self.position,)


@dataclass(frozen=True)
class Block:
    """The work of one block of particles.

    Attributes
    ----------
    path, transition
        What to anneal along, and how to move.
    betas : ndarray, shape (K + 1,)
        The schedule; a decreasing one is a reverse run.
    position : ndarray, shape (chains * m, d)
        Draws of the density at the first temperature, chain by chain.
    chains : int
        Number of independent populations in the block.
    seed : SeedSequence
        Source of the block's randomness.
    rungs : ndarray of int
        Increasing numbers of steps, the first 0, after which the particles are recorded.
    resample : float
        Effective sample size, as a share of a chain's particles in the block, below which these
        are resampled; 0: never. Not for reverse runs.
    """

    path: Path
    transition: Transition
    betas: np.ndarray
    position: np.ndarray
    chains: int
    seed: np.random.SeedSequence
    rungs: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    resample: float = 0.0


class Ladder(NamedTuple):
    """Particles at some temperatures of the run, rungs; arrays of shape (rungs, chains, m).

    Attributes
    ----------
    log_weight
        Running log weights.
    up, down
        Log ratio of the density at the next rung to that at this one, and of this one to the one
        before; 0 at the ends.
    velocity
        ``v`` at this rung.
    """

    log_weight: Any
    up: Any
    down: Any
    velocity: Any


class BlockResult(NamedTuple):
    """What a block leaves.

    Attributes
    ----------
    position : ndarray, shape (chains, m, d)
    log_weight : ndarray, shape (chains, m)
    stats : Stats
    seconds : float
        Time the block took, compilation left out.
    ladder : Ladder
    """

    position: np.ndarray
    log_weight: np.ndarray
    stats: Stats
    seconds: float
    ladder: Ladder


class Progress(NamedTuple):
    """Where a block stands: steps done and log mean weight so far, and its relative ESS."""

    step: int
    beta: float
    log_z: float
    relative_ess: float


class _Carry(NamedTuple):
    state: KernelState
    log_weight: jax.Array
    stats: Stats
    nan_position: jax.Array


class Snapshot(NamedTuple):
    """A block part of the way; it goes on from here to the same bits as a block left alone.

    Attributes
    ----------
    done : int
        Steps taken.
    seconds : float
        Time they took.
    carry
        The particles, as numpy arrays.
    rows : list of Stats
        Statistics of the steps, in pieces.
    ladder : list of Ladder
        The rungs passed.
    """

    done: int
    seconds: float
    carry: _Carry
    rows: list[Stats]
    ladder: list[Ladder]


class Stopped(Exception):
    """The block was told to stop before its last step."""


def key_of(seed: np.random.SeedSequence) -> jax.Array:
    """Make a JAX key from a seed."""
    return jax.random.wrap_key_data(
        jnp.asarray(seed.generate_state(2, np.uint32)), impl="threefry2x32"
    )


def run_block(
    block: Block,
    report: Callable[[Progress], None] = lambda progress: None,
    stop: threading.Event | None = None,
    keep: Callable[[Callable[[], Snapshot]], None] = lambda take: None,
    resume: Snapshot | None = None,
) -> BlockResult:
    """Anneal one block of particles.

    Parameters
    ----------
    block
        The work.
    report
        Called a few times a second.
    stop
        When set, the block ends early by raising :class:`Stopped`.
    keep
        Called as often with a function that takes a snapshot.
    resume
        Where to go on; default: at the start.

    Returns
    -------
    BlockResult
        The same whether the block was resumed or not, but for the time.

    Raises
    ------
    NanDensityError
        The log density is NaN at a start position or at a sound proposal.
    """
    with jax.enable_x64(True):
        key_start, key_run = jax.random.split(key_of(block.seed))
        begun = resume or _begun(block, key_start)
        done, rows, ladder, clock = begun.done, [*begun.rows], [*begun.ladder], _Clock(begun)
        carry = jax.tree.map(jnp.array, begun.carry)  # its memory is handed on
        longest, total = 1, len(block.betas) - 1
        backward = bool(block.betas[0] > block.betas[-1])
        while done < total:
            if stop is not None and stop.is_set():
                raise Stopped
            ahead = block.rungs[block.rungs > done]
            # A Python number: one of NumPy has another type, for which JAX would compile again.
            size = int(min(longest, _CHUNK, (ahead[0] if len(ahead) else total) - done))
            tick = time.perf_counter()
            window = np.zeros(_CHUNK + 1)
            window[: size + 1] = block.betas[done : done + size + 1]
            carry = _advance(
                block.path,
                block.transition,
                carry,
                key_run,
                window,
                done,
                size,
                block.resample,
                chains=block.chains,
                backward=backward,
                resampling=block.resample > 0,
            )
            rows.append(Stats(*(np.asarray(s)[:size].copy() for s in carry.stats)))
            done += size
            if done in block.rungs:
                ladder.append(_recorded(block, done, carry))
            clock.stepped(done)
            _raise_nan(rows[-1], carry)
            report(_progress(done, block, rows[-1]))
            keep(partial(_snapshot, done, clock, carry, rows, ladder))
            if size == longest < _CHUNK and time.perf_counter() - tick < _INTERVAL / 2:
                longest *= 2
        position = np.asarray(carry.state.position)
        log_weight = np.asarray(carry.log_weight)
    return BlockResult(
        position=position.reshape(block.chains, len(log_weight) // block.chains, position.shape[1]),
        log_weight=log_weight.reshape(block.chains, -1),
        stats=Stats(*(np.concatenate(s) for s in zip(*rows, strict=True))),
        seconds=clock.seconds(total),
        ladder=Ladder(*map(np.array, zip(*ladder, strict=True))) if ladder else _EMPTY,
    )


def _begun(block: Block, key: jax.Array) -> Snapshot:
    carry = _start(block.path, block.transition, key, block.position, block.chains)
    _raise_nan_terms(block.path, carry.state)
    return Snapshot(0, 0.0, carry, [], [_recorded(block, 0, carry)] if len(block.rungs) else [])


def _snapshot(done: int, clock: "_Clock", carry: _Carry, rows, ladder) -> Snapshot:
    # Copies: the next call takes the carry's memory.
    held = jax.tree.map(np.array, carry)
    return Snapshot(done, clock.seconds(done), held, list(rows), list(ladder))


class _Clock:
    """Time of the steps taken, leaving out the first call, which compiles."""

    def __init__(self, begun: Snapshot):
        self._begun, self._first = begun, begun.done
        self._since = time.perf_counter()

    def stepped(self, done: int) -> None:
        if self._first == self._begun.done:
            self._since, self._first = time.perf_counter(), done

    def seconds(self, done: int) -> float:
        """Return the time of all steps so far, the first call at the rate of the others."""
        share = (done - self._begun.done) / max(done - self._first, 1)
        return self._begun.seconds + (time.perf_counter() - self._since) * share


_EMPTY = Ladder(*[np.zeros((0, 0, 0))] * len(Ladder._fields))


def _recorded(block: Block, done: int, carry: _Carry) -> Ladder:
    """Return one rung, arrays of shape ``(chains, m)``."""
    at = int(np.searchsorted(block.rungs, done))
    near = block.rungs[[max(at - 1, 0), at, min(at + 1, len(block.rungs) - 1)]]
    rung = _record(block.path, carry, block.betas[near])
    return Ladder(*(np.asarray(v).reshape(block.chains, -1) for v in rung))


@jax.jit
def _record(path: Path, carry: _Carry, betas) -> Ladder:
    terms = carry.state.terms
    return Ladder(
        log_weight=carry.log_weight,
        up=path.log_ratio(terms, betas[1], betas[2]),
        down=path.log_ratio(terms, betas[0], betas[1]),
        velocity=path.velocity(terms, betas[1]),
    )


def last_progress(block: Block, result: BlockResult) -> Progress:
    """Return where a finished block stands."""
    return _progress(len(block.betas) - 1, block, result.stats)


def _raise_nan_terms(path: Path, state: KernelState) -> None:
    nan = np.isnan(np.asarray(path.log_density(state.terms, jnp.asarray(1.0))))
    if nan.any():
        raise NanDensityError(np.asarray(state.position)[nan.argmax()])


def _raise_nan(stats: Stats, carry: _Carry) -> None:
    if stats.nan.any():
        raise NanDensityError(np.asarray(carry.nan_position))


def _progress(step: int, block: Block, stats: Stats) -> Progress:
    log_w = np.logaddexp.reduce(stats.log_w[-1])
    log_w_squared = np.logaddexp.reduce(stats.log_w_squared[-1])
    particles = len(block.position)
    if not np.isfinite(log_w):  # no particle with a weight is left
        return Progress(step, float(block.betas[step]), float(log_w), 0.0)
    return Progress(
        step=step,
        beta=float(block.betas[step]),
        log_z=float(log_w - np.log(particles)),
        relative_ess=float(np.exp(2 * log_w - log_w_squared) / particles),
    )


@partial(jax.jit, static_argnames="chains")
def _start(path: Path, transition: Transition, key, position, chains: int) -> _Carry:
    position = jnp.asarray(position)
    state = KernelState(position, path.evaluate(position), transition.init(key, position))
    empty = jnp.zeros((_CHUNK, chains))
    return _Carry(
        state=state,
        log_weight=jnp.zeros(len(position)),
        stats=Stats(*[empty] * len(Stats._fields)),
        nan_position=jnp.zeros(position.shape[1:], position.dtype),
    )


@partial(jax.jit, static_argnames=("chains", "backward", "resampling"), donate_argnames="carry")
def _advance(
    path: Path,
    transition: Transition,
    carry: _Carry,
    key,
    betas,
    first,
    size,
    threshold,
    *,
    chains,
    backward,
    resampling,
) -> _Carry:
    """Take ``size`` steps, of which the first has index ``first`` in the schedule."""
    step: Callable = _step_backward if backward else _step
    if resampling:
        step = partial(_step_resampling, chains=chains, threshold=threshold)

    def body(i, carry: _Carry) -> _Carry:
        moved = step(path, transition, carry, jax.random.fold_in(key, first + i), *betas_at(i))
        row = reduce_step(carry.log_weight, moved.log_u, moved.velocity, moved.info, chains)
        return _Carry(
            state=moved.state,
            log_weight=moved.log_weight,
            stats=Stats(*(s.at[i].set(r) for s, r in zip(carry.stats, row, strict=True))),
            nan_position=_first_nan(moved.info, carry.nan_position),
        )

    def betas_at(i):
        return betas[i], betas[i + 1]

    return jax.lax.fori_loop(0, size, body, carry)


class _Moved(NamedTuple):
    state: KernelState
    log_weight: jax.Array
    log_u: jax.Array
    velocity: jax.Array
    info: StepInfo


def _step(path: Path, transition: Transition, carry: _Carry, key, start, stop) -> _Moved:
    """Weigh, then move at the new temperature."""
    terms = carry.state.terms
    log_u, velocity = path.log_ratio(terms, start, stop), path.velocity(terms, stop)
    state, info = transition.step(key, carry.state, path, stop)
    return _Moved(state, carry.log_weight + log_u, log_u, velocity, info)


def _step_resampling(
    path: Path, transition: Transition, carry: _Carry, key, start, stop, *, chains, threshold
) -> _Moved:
    """Weigh, resample where the weights have become uneven, then move."""
    key_resample, key_move = jax.random.split(key)
    terms = carry.state.terms
    log_u, velocity = path.log_ratio(terms, start, stop), path.velocity(terms, stop)
    state, log_weight = resample_populations(
        key_resample, carry.state, carry.log_weight + log_u, chains, threshold
    )
    state, info = transition.step(key_move, state, path, stop)
    return _Moved(state, log_weight, log_u, velocity, info)


def _step_backward(path: Path, transition: Transition, carry: _Carry, key, start, stop) -> _Moved:
    """Move at the old temperature, then weigh; the kernel is the reversal of the forward one."""
    state, info = transition.step(key, carry.state, path, start)
    terms = state.terms
    log_u = path.log_ratio(terms, start, stop)
    return _Moved(state, carry.log_weight + log_u, log_u, path.velocity(terms, stop), info)


def _first_nan(info: StepInfo, present: jax.Array) -> jax.Array:
    # Nearly always false: the cond spares the gather over all particles.
    return jax.lax.cond(
        info.nan.any(),
        lambda: info.nan_position[jnp.argmax(info.nan)],
        lambda: present,
    )

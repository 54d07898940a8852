"""The annealing loop: the step of `step.py`, K times, for one block of particles.

The steps run in compiled chunks. Between chunks the monitor is informed, may take a snapshot and
may stop the block.
"""

import time

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.annealing.block import (
    Block,
    BlockResult,
    BlockStopped,
    Carry,
    Ladder,
    Snapshot,
    concatenate_ladders,
)
from pymc_anneal.annealing.lapack_turns import lapack_turn
from pymc_anneal.annealing.step import CHUNK, advance, record_rung, start_carry
from pymc_anneal.annealing.step_statistics import Stats, concatenate_stats
from pymc_anneal.base.contracts import NanDensityError, check_not_nan, rejected_nan
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.progress import BlockProgress
from pymc_anneal.base.seeds import keys_of

# Longest time in seconds between two calls of the monitor, unless a single step takes longer.
_INTERVAL = 0.2


class Monitor:
    """Observer of a running block, called a few times a second; by default it does nothing."""

    def report(self, progress: BlockProgress) -> None:
        """Show the progress."""
        return None

    def should_stop(self) -> bool:
        """Return whether the block is to stop before its next steps."""
        return False

    def offer_snapshot(self, take: Callable[[], Snapshot]) -> None:
        """Take a snapshot by calling the function, or leave it; only valid during this call."""
        return None


@double_precision
def run_block(
    block: Block, monitor: Monitor | None = None, resume: Snapshot | None = None
) -> BlockResult:
    """Anneal one block of particles, from its start or from a snapshot, to the same result.

    Raises
    ------
    BlockStopped
        The monitor stopped the block.
    NanDensityError
        The log density is NaN at a start position, or at a proposal that is not divergent.
    """
    monitor = Monitor() if monitor is None else monitor
    run = _BlockRun(block, resume)
    while run.done < block.steps:
        if monitor.should_stop():
            raise BlockStopped
        run.take_chunk()
        monitor.report(run.progress())
        monitor.offer_snapshot(run.snapshot)
    return run.result()


def final_progress(block: Block, result: BlockResult) -> BlockProgress:
    """Return the progress of a finished block."""
    return _progress(block, block.steps, result.stats)


class _BlockRun:
    """A block in progress: state of the compiled loop, and records of the steps taken."""

    def __init__(self, block: Block, resume: Snapshot | None) -> None:
        keys = keys_of(block.seed)
        key_start, self._key = next(keys), next(keys)
        self._block, self._turn = block, lapack_turn(block.path, block.position)
        with self._turn:
            start = _start(block, key_start) if resume is None else resume
        self.done = start.done
        self._stats, self._ladder = [*start.stats], [*start.ladder]
        self._carry: Carry = jax.tree.map(jnp.array, start.carry)  # a copy: `advance` reuses it
        self._clock, self._chunk = _Clock(start), _ChunkLength()

    def take_chunk(self) -> None:
        """Take the steps of one chunk, which ends at the latest at the next rung."""
        size = self._next_size()
        with self._turn:
            self._advance(size)
            self._record(size)
        self._clock.tick(self.done)
        if rejected_nan(self._carry.state.terms) is None and self._stats[-1].nan.any():
            raise NanDensityError(np.asarray(self._carry.nan_position))

    def _next_size(self) -> int:
        later = self._block.rungs[self._block.rungs > self.done]
        # A Python integer: JAX would compile again for the type of a NumPy integer.
        end = int(later[0]) if len(later) else self._block.steps
        return self._chunk.next_size(end - self.done)

    def _advance(self, size: int) -> None:
        block, done = self._block, self.done
        window = np.zeros(CHUNK + 1)
        window[: size + 1] = block.betas[done : done + size + 1]
        self._carry = advance(
            block.path,
            block.transition,
            self._carry,
            self._key,
            window,
            done,
            size,
            block.resample,
            chains=block.chains,
            backward=bool(block.betas[0] > block.betas[-1]),
            resampling=block.resample > 0,
        )

    def _record(self, size: int) -> None:
        """Wait for the steps, and record their statistics and the particles at a rung."""
        self._stats.append(Stats(*(np.asarray(s)[:size].copy() for s in self._carry.stats)))
        self.done += size
        if self.done in self._block.rungs:
            self._ladder.append(_record_rung(self._block, self.done, self._carry))

    def progress(self) -> BlockProgress:
        return _progress(self._block, self.done, self._stats[-1])

    def snapshot(self) -> Snapshot:
        carry = jax.tree.map(np.array, self._carry)  # a copy: `advance` reuses the memory
        seconds = self._clock.seconds(self.done)
        return Snapshot(self.done, seconds, carry, [*self._stats], [*self._ladder])

    def result(self) -> BlockResult:
        chains = self._block.chains
        position = np.asarray(self._carry.state.position)
        log_weight = np.asarray(self._carry.log_weight)
        m = len(log_weight) // chains
        return BlockResult(
            position=position.reshape(chains, m, position.shape[1]),
            log_weight=log_weight.reshape(chains, m),
            stats=concatenate_stats(self._stats),
            seconds=self._clock.seconds(self.done),
            ladder=concatenate_ladders(self._ladder or [_empty_ladder(chains, m)], axis=0),
        )


class _ChunkLength:
    """Length of the chunks: doubled from 1 while a chunk takes less than half the interval."""

    def __init__(self) -> None:
        self._limit, self._size, self._start = 1, 0, 0.0

    def next_size(self, remaining: int) -> int:
        """Return the number of steps of a chunk that starts now."""
        now = time.perf_counter()
        quick = now - self._start < _INTERVAL / 2
        if self._size == self._limit < CHUNK and quick:
            self._limit *= 2
        self._start, self._size = now, min(self._limit, CHUNK, remaining)
        return self._size


class _Clock:
    """Computing time of the steps without the first call, which compiles."""

    def __init__(self, start: Snapshot) -> None:
        self._start, self._first = start, start.done
        self._since = time.perf_counter()

    def tick(self, done: int) -> None:
        """Restart the clock after the first call."""
        if self._first == self._start.done:
            self._since, self._first = time.perf_counter(), done

    def seconds(self, done: int) -> float:
        """Return the time of all steps so far; the first call counts at the rate of the others."""
        ratio = (done - self._start.done) / max(done - self._first, 1)
        return self._start.seconds + (time.perf_counter() - self._since) * ratio


def _start(block: Block, key: jax.Array) -> Snapshot:
    carry, at_target = start_carry(block.path, block.transition, key, block.position, block.chains)
    check_not_nan(at_target, block.position)
    ladder = [_record_rung(block, 0, carry)] if len(block.rungs) else []
    return Snapshot(0, 0.0, carry, [], ladder)


def _record_rung(block: Block, done: int, carry: Carry) -> Ladder[np.ndarray]:
    """Record the particles after ``done`` steps, arrays of shape ``(1, chains, m)``."""
    at = int(np.searchsorted(block.rungs, done))
    near = block.rungs[[max(at - 1, 0), at, min(at + 1, len(block.rungs) - 1)]]
    rung = record_rung(block.path, carry, block.betas[near], block.record_positions)
    shape = 1, block.chains, len(block.position) // block.chains
    # Copies: `advance` reuses the memory.
    return Ladder(*(np.array(a).reshape(*shape, *a.shape[1:]) for a in rung))


def _empty_ladder(chains: int, m: int) -> Ladder[np.ndarray]:
    empty = np.zeros((0, chains, m))
    return Ladder(empty, empty, empty, empty, position=np.zeros((0, chains, m, 0)))


def _progress(block: Block, step: int, stats: Stats[np.ndarray]) -> BlockProgress:
    """Return the progress after some steps, from the statistics of the last one."""
    particles, relative_ess = len(block.position), 0.0
    log_w = np.logaddexp.reduce(stats.log_w[-1])
    if np.isfinite(log_w):  # otherwise all weights are zero
        log_w_squared = np.logaddexp.reduce(stats.log_w_squared[-1])
        relative_ess = np.exp(2 * log_w - log_w_squared) / particles
    return BlockProgress(
        step=step,
        steps=block.steps,
        beta=float(block.betas[step]),
        log_z=float(log_w - np.log(particles)),
        relative_ess=float(relative_ess),
    )

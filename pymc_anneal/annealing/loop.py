"""The annealing loop: the step of `step.py`, K times, for one block of particles.

Steps are compiled a chunk at a time; between chunks the loop reports, takes snapshots and stops
when told to.
"""

import threading
import time

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.annealing.block import (
    EMPTY_LADDER,
    Block,
    BlockResult,
    BlockStopped,
    Carry,
    Ladder,
    Snapshot,
)
from pymc_anneal.annealing.step import CHUNK, advance, record_ladder, start_carry
from pymc_anneal.annealing.step_statistics import Stats
from pymc_anneal.base.contracts import KernelState, NanDensityError, Path
from pymc_anneal.base.progress import BlockProgress
from pymc_anneal.base.seeds import key_of

# Seconds between looks at the progress bar and the stop signal.
_INTERVAL = 0.2


def run_block(
    block: Block,
    report: Callable[[BlockProgress], None] = lambda progress: None,
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
        When set, the block ends early by raising :class:`BlockStopped`.
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
                raise BlockStopped
            ahead = block.rungs[block.rungs > done]
            # A Python number: one of NumPy has another type, for which JAX would compile again.
            size = int(min(longest, CHUNK, (ahead[0] if len(ahead) else total) - done))
            tick = time.perf_counter()
            window = np.zeros(CHUNK + 1)
            window[: size + 1] = block.betas[done : done + size + 1]
            carry = advance(
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
            if size == longest < CHUNK and time.perf_counter() - tick < _INTERVAL / 2:
                longest *= 2
        position = np.asarray(carry.state.position)
        log_weight = np.asarray(carry.log_weight)
    return BlockResult(
        position=position.reshape(block.chains, len(log_weight) // block.chains, position.shape[1]),
        log_weight=log_weight.reshape(block.chains, -1),
        stats=Stats(*(np.concatenate(s) for s in zip(*rows, strict=True))),
        seconds=clock.seconds(total),
        ladder=Ladder(*map(np.array, zip(*ladder, strict=True))) if ladder else EMPTY_LADDER,
    )


def _begun(block: Block, key: jax.Array) -> Snapshot:
    carry = start_carry(block.path, block.transition, key, block.position, block.chains)
    _raise_nan_terms(block.path, carry.state)
    return Snapshot(0, 0.0, carry, [], [_recorded(block, 0, carry)] if len(block.rungs) else [])


def _snapshot(done: int, clock: "_Clock", carry: Carry, rows, ladder) -> Snapshot:
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


def _recorded(block: Block, done: int, carry: Carry) -> Ladder:
    """Return one rung, arrays of shape ``(chains, m)``."""
    at = int(np.searchsorted(block.rungs, done))
    near = block.rungs[[max(at - 1, 0), at, min(at + 1, len(block.rungs) - 1)]]
    rung = record_ladder(block.path, carry, block.betas[near])
    return Ladder(*(np.asarray(v).reshape(block.chains, -1) for v in rung))


def last_progress(block: Block, result: BlockResult) -> BlockProgress:
    """Return where a finished block stands."""
    return _progress(len(block.betas) - 1, block, result.stats)


def _raise_nan_terms(path: Path, state: KernelState) -> None:
    nan = np.isnan(np.asarray(path.log_density(state.terms, jnp.asarray(1.0))))
    if nan.any():
        raise NanDensityError(np.asarray(state.position)[nan.argmax()])


def _raise_nan(stats: Stats, carry: Carry) -> None:
    if stats.nan.any():
        raise NanDensityError(np.asarray(carry.nan_position))


def _progress(step: int, block: Block, stats: Stats) -> BlockProgress:
    log_w = np.logaddexp.reduce(stats.log_w[-1])
    log_w_squared = np.logaddexp.reduce(stats.log_w_squared[-1])
    particles = len(block.position)
    if not np.isfinite(log_w):  # no particle with a weight is left
        return BlockProgress(step, float(block.betas[step]), float(log_w), 0.0)
    return BlockProgress(
        step=step,
        beta=float(block.betas[step]),
        log_z=float(log_w - np.log(particles)),
        relative_ess=float(np.exp(2 * log_w - log_w_squared) / particles),
    )

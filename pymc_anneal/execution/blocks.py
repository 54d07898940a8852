"""An annealed run: particles in blocks, the blocks annealed by workers, their results merged."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from pymc_anneal.annealing.block import Block, BlockResult, Ladder, concatenate_ladders
from pymc_anneal.annealing.step_statistics import Stats, merge_stats
from pymc_anneal.base.contracts import Path, Transition
from pymc_anneal.execution.checkpoint import BlockStore
from pymc_anneal.execution.progress import BlocksProgress, ProgressDisplay
from pymc_anneal.execution.workers import count_workers, run_blocks

# Particles of all chains in a block, unless the user sets `block_size`.
_DEFAULT_BLOCK = 512

# Bounds on the number of intervals between recorded temperatures. Neighbours must overlap, and the
# records take memory for every particle.
_MIN_INTERVALS, _MAX_INTERVALS = 12, 48

# Draws positions of shape (count, d) with a seed, for a number of particles.
DrawPositions: TypeAlias = Callable[[np.random.SeedSequence, int], np.ndarray]


class StartDraws(NamedTuple):
    """Start positions that each block draws with a seed of its own.

    Attributes
    ----------
    draw : callable
        Takes a seed and a number of particles; returns positions of shape (count, d).
    chains : int
        Number of chains.
    particles : int
        Number of particles over all chains, rounded up to whole blocks.
    """

    draw: DrawPositions
    chains: int
    particles: int


def even_block(draws: int, chains: int, block_size: int | None) -> int:
    """Return the number of particles of each chain in a block.

    Parameters
    ----------
    draws : int
        Particles in each chain.
    chains : int
        Number of chains.
    block_size : int or None
        Largest number of particles in a block, over all chains; None: 512.

    Returns
    -------
    int
        As few blocks as possible, of nearly the same size.
    """
    largest = max(1, (block_size or _DEFAULT_BLOCK) // chains)
    return -(-draws // -(-draws // largest))


def make_blocks(
    path: Path,
    transition: Transition,
    betas: np.ndarray,
    start: np.ndarray | StartDraws,
    block_draws: int,
    seed: np.random.SeedSequence,
    *,
    rungs: np.ndarray | None = None,
    resample: float = 0.0,
    record_positions: bool = False,
) -> list[Block]:
    """Cut a run into blocks, each with a seed of its own.

    Parameters
    ----------
    path, transition, betas
        See :class:`Block`.
    start : ndarray of shape (chains, particles, d), or StartDraws
        Start positions; without them each block draws its own.
    block_draws : int
        Number of particles of each chain in a block; divides the number of given positions.
    seed : SeedSequence
        Seed of the run; one child is spawned for each block.
    rungs, resample, record_positions
        See :class:`Block`.
    """
    if isinstance(start, StartDraws):
        chains, starts = start.chains, _draw_starts(start, block_draws, seed)
    else:
        chains, starts = len(start), _split_starts(start, block_draws, seed)
    rungs = np.zeros(0, dtype=int) if rungs is None else rungs
    return [
        Block(path, transition, betas, position, chains, child, rungs, resample, record_positions)
        for position, child in starts
    ]


class _Start(NamedTuple):
    """Positions of the particles of a block, shape (chains * m, d), and the block's seed."""

    position: np.ndarray
    seed: np.random.SeedSequence


def _draw_starts(start: StartDraws, m: int, seed: np.random.SeedSequence) -> list[_Start]:
    count = -(-start.particles // (start.chains * m))
    starts = []
    for seed_start, seed_run in (child.spawn(2) for child in seed.spawn(count)):
        starts.append(_Start(start.draw(seed_start, start.chains * m), seed_run))
    return starts


def _split_starts(start: np.ndarray, m: int, seed: np.random.SeedSequence) -> list[_Start]:
    chains, particles, ndim = start.shape
    parts = np.split(start, range(m, particles, m), axis=1)
    children = seed.spawn(len(parts))
    return [
        _Start(part.reshape(chains * m, ndim), child)
        for part, child in zip(parts, children, strict=True)
    ]


@dataclass(frozen=True)
class AnnealedRun:
    """Weights and final positions of all particles, and statistics by step.

    Attributes
    ----------
    betas : ndarray, shape (K + 1,)
        The schedule.
    log_weight : ndarray, shape (chains, particles)
        Log weights, in nats.
    position : ndarray, shape (chains, particles, d)
        Particles after the last step.
    stats : Stats
        Arrays of shape (K, chains).
    interrupted : bool
        Whether blocks are missing because the run was stopped.
    seconds : float
        Duration of the run without compilation.
    rungs : ndarray of int, shape (rungs,)
        Numbers of steps after which the particles were recorded.
    ladder : Ladder
        The recorded particles, arrays of shape (rungs, chains, particles).
    population_size : int
        Number of consecutive particles of a chain that were resampled together; 1 without
        resampling.
    evaluations : int
        Evaluations of gradient or density by all particles.
    planned : int
        Number of particles over all chains if the run had not been stopped.
    """

    betas: np.ndarray
    log_weight: np.ndarray
    position: np.ndarray
    stats: Stats[np.ndarray]
    interrupted: bool
    seconds: float
    rungs: np.ndarray
    ladder: Ladder[np.ndarray]
    population_size: int = 1
    evaluations: int = 0
    planned: int = 0

    @property
    def steps(self) -> int:
        """Number of steps K."""
        return len(self.betas) - 1

    @property
    def particles(self) -> int:
        """Number of particles over all chains."""
        return self.log_weight.size


def anneal(
    blocks: Sequence[Block],
    display: ProgressDisplay,
    name: str,
    cores: int | None = None,
    executor: Executor | None = None,
    store: BlockStore | None = None,
) -> AnnealedRun:
    """Anneal the blocks of a run, which differ only in positions and seeds, on an executor.

    The default executor is threads of this process, as many as there are processors or `cores`.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C before any block was finished; later, the finished blocks are returned.
    NanDensityError
        See :func:`run_block`.
    """
    progress = BlocksProgress(display.add_bar(name, len(blocks) * blocks[0].steps))
    workers = count_workers(executor, cores)
    with nullcontext(executor) if executor else ThreadPoolExecutor(workers) as pool:
        results = run_blocks(blocks, pool, progress.report, store)
    return _merge(blocks, results, workers)


def _merge(blocks: Sequence[Block], results: Sequence[BlockResult], workers: int) -> AnnealedRun:
    """Merge the results of the first blocks of a run; the others were not finished."""
    first, particles = blocks[0], sum(len(block.position) for block in blocks[: len(results)])
    # A forward run moves at the new temperature of a step, a reverse run at the old one.
    moved_at = np.maximum(first.betas[1:], first.betas[:-1])
    return AnnealedRun(
        betas=first.betas,
        log_weight=np.concatenate([r.log_weight for r in results], axis=1),
        position=np.concatenate([r.position for r in results], axis=1),
        stats=merge_stats([r.stats for r in results]),
        interrupted=len(results) < len(blocks),
        seconds=sum(r.seconds for r in results) / min(workers, len(results)),
        rungs=first.rungs,
        ladder=concatenate_ladders([r.ladder for r in results], axis=2),
        population_size=len(first.position) // first.chains if first.resample else 1,
        evaluations=particles * int(first.transition.cost(moved_at).sum()),
        planned=sum(len(block.position) for block in blocks),
    )


def recorded_steps(steps: int, barrier: float = np.nan) -> np.ndarray:
    """Return evenly spaced numbers of steps after which to record the particles, from 0 on.

    Under a variational schedule, neighbours are then equally far apart on the path, about half a
    unit if the barrier is known and not too long.
    """
    intervals = np.nan_to_num(np.ceil(2 * barrier), nan=_MIN_INTERVALS)
    intervals = min(steps, np.clip(intervals, _MIN_INTERVALS, _MAX_INTERVALS))
    return np.unique(np.linspace(0, steps, int(intervals) + 1).round().astype(int))

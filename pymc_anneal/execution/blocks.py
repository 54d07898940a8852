"""A frozen run: blocks of particles annealed by workers, and put together."""

from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from pymc_anneal.annealing.block import Block, Ladder
from pymc_anneal.annealing.step_statistics import Stats, merge_stats
from pymc_anneal.execution.checkpoint import BlockStore
from pymc_anneal.execution.progress import ProgressDisplay
from pymc_anneal.execution.workers import run_blocks, workers_of
from pymc_anneal.transitions.cost import evaluations

_DEFAULT_BLOCK = 512


def even_block(draws: int, chains: int, block_size: int | None) -> int:
    """Return the particles of each chain in a block: even blocks, and no more than asked for."""
    wanted = max(1, (block_size or _DEFAULT_BLOCK) // chains)
    return -(-draws // -(-draws // wanted))


_RUNGS = 12, 48  # least and most


@dataclass(frozen=True)
class AnnealedRun:
    """Weights and end points of shape ``(chains, particles, ...)``, and statistics by step.

    Attributes
    ----------
    betas : ndarray, shape (K + 1,)
    log_weight : ndarray, shape (chains, particles)
    position : ndarray, shape (chains, particles, d)
    stats : Stats
        Arrays of shape ``(K, chains)``.
    interrupted : bool
        Blocks are missing: the run was stopped.
    seconds : float
        Time it took, compilation left out.
    rungs : ndarray of int, shape (rungs,)
        Numbers of steps after which the particles were recorded.
    ladder : Ladder
        What was recorded, arrays of shape ``(rungs, chains, particles)``.
    population_size : int
        Particles, neighbours in a chain, that share ancestors; 1 where none were resampled.
    evaluations : int
        Of gradient or density, by all particles.
    """

    betas: np.ndarray
    log_weight: np.ndarray
    position: np.ndarray
    stats: Stats
    interrupted: bool
    seconds: float
    rungs: np.ndarray
    ladder: Ladder
    population_size: int = 1
    evaluations: int = 0

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
    """Anneal blocks of the same schedule on the workers of an executor.

    Parameters
    ----------
    blocks
        The work.
    display
        Where to show progress, under ``name``.
    cores
        Number of workers; default: the executor's, or the processors available.
    executor
        Default: threads of this process.
    store
        See :func:`run_blocks`.

    Returns
    -------
    AnnealedRun

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C before any block had finished; after that, what has finished is returned.
    """
    display.start_round(name, len(blocks), len(blocks[0].betas) - 1)
    workers = workers_of(executor, cores)
    with nullcontext(executor) if executor else ThreadPoolExecutor(workers) as crew:
        results = run_blocks(blocks, crew, display.block, store)
    first, particles = blocks[0], sum(len(block.position) for block in blocks[: len(results)])
    # A forward run moves at the new temperature of a step, a reverse one at the old.
    moved_at = np.maximum(first.betas[1:], first.betas[:-1])
    return AnnealedRun(
        betas=first.betas,
        log_weight=np.concatenate([r.log_weight for r in results], axis=1),
        position=np.concatenate([r.position for r in results], axis=1),
        stats=merge_stats([r.stats for r in results]),
        interrupted=len(results) < len(blocks),
        seconds=sum(r.seconds for r in results) / min(workers, len(results)),
        rungs=first.rungs,
        population_size=len(first.position) // first.chains if first.resample else 1,
        evaluations=particles * int(evaluations(first.transition, moved_at).sum()),
        ladder=Ladder(
            *(np.concatenate(v, axis=2) for v in zip(*(r.ladder for r in results), strict=True))
        ),
    )


def spaced_rungs(steps: int, barrier: float = np.nan) -> np.ndarray:
    """Return evenly spaced numbers of steps, from none to all, at which to record particles.

    Under a variational schedule neighbours are then equally far apart on the path, about half a
    unit where the barrier is known and not too long.
    """
    wanted = np.clip(np.nan_to_num(np.ceil(2 * barrier), nan=_RUNGS[0]), *_RUNGS)
    return np.unique(np.linspace(0, steps, int(min(steps, wanted)) + 1).round().astype(int))

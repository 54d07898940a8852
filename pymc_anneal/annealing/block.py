"""Blocks of particles: the unit of work, its state during the run, and its result.

Particles run in blocks of fixed size, each with its own random stream, so that the result does not
depend on the worker that runs a block.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import jax
import numpy as np

from pymc_anneal.annealing.step_statistics import Stats
from pymc_anneal.base.contracts import KernelState, Path, Transition

# JAX arrays in the compiled loop, NumPy arrays outside of it.
ArrayT = TypeVar("ArrayT")


@dataclass(frozen=True)
class Block:
    """The work of one block: ``m`` particles in each of several chains, annealed in K steps.

    Attributes
    ----------
    path : Path
    transition : Transition
    betas : ndarray, shape (K + 1,)
        The schedule; a decreasing one is a reverse run.
    position : ndarray, shape (chains * m, d)
        Draws of the density at the first temperature, chain by chain.
    chains : int
        Number of independent populations in the block.
    seed : SeedSequence
        Seed of the block.
    rungs : ndarray of int, shape (rungs,)
        Numbers of steps, increasing from 0, after which the particles are recorded.
    resample : float
        Effective sample size, as a share of ``m``, below which the particles of a chain are
        resampled; 0: never. Not for reverse runs.
    record_positions : bool
        Whether the record of the particles includes their positions.
    """

    path: Path
    transition: Transition
    betas: np.ndarray
    position: np.ndarray
    chains: int
    seed: np.random.SeedSequence
    rungs: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    resample: float = 0.0
    record_positions: bool = False

    @property
    def steps(self) -> int:
        """Number of annealing steps K."""
        return len(self.betas) - 1


class Ladder(NamedTuple, Generic[ArrayT]):
    """Particles at some temperatures of a run, the rungs; arrays of shape (rungs, chains, m).

    Attributes
    ----------
    log_weight
        Running log weights, in nats.
    log_ratio_up, log_ratio_down
        Log ratio of the density at the next rung to that at this one, and of that at this rung to
        that at the previous one, in nats; 0 at the ends.
    velocity
        Derivative of ``log f_beta`` in ``beta`` at this rung.
    position
        Positions, shape (rungs, chains, m, d), or (rungs, chains, m, 0) if they are not recorded.
    """

    log_weight: ArrayT
    log_ratio_up: ArrayT
    log_ratio_down: ArrayT
    velocity: ArrayT
    position: ArrayT


def concatenate_ladders(parts: Sequence[Ladder[np.ndarray]], axis: int) -> Ladder[np.ndarray]:
    """Join ladders along their rungs (axis 0) or their particles (axis 2)."""
    return Ladder(*(np.concatenate(values, axis=axis) for values in zip(*parts, strict=True)))


class BlockResult(NamedTuple):
    """Result of a finished block.

    Attributes
    ----------
    position : ndarray, shape (chains, m, d)
        Particles after the last step.
    log_weight : ndarray, shape (chains, m)
        Their log weights, in nats.
    stats : Stats
        Arrays of shape (K, chains).
    seconds : float
        Computing time without compilation.
    ladder : Ladder
        Arrays of shape (rungs, chains, m).
    """

    position: np.ndarray
    log_weight: np.ndarray
    stats: Stats[np.ndarray]
    seconds: float
    ladder: Ladder[np.ndarray]


class Carry(NamedTuple):
    """State of the compiled annealing loop for ``n = chains * m`` particles, chain by chain.

    Attributes
    ----------
    state : KernelState
        Positions and terms, leaves of shape (n, ...).
    log_weight : Array, shape (n,)
        Running log weights.
    stats : Stats
        Arrays of shape (chunk, chains), of which one call fills as many rows as it takes steps.
    nan_position : Array, shape (d,)
        A proposal at which the log density was NaN; zeros if there was none.
    """

    state: KernelState
    log_weight: jax.Array
    stats: Stats[jax.Array]
    nan_position: jax.Array


class Snapshot(NamedTuple):
    """State of an unfinished block, from which it resumes to the same bits.

    Attributes
    ----------
    done : int
        Steps taken.
    seconds : float
        Their computing time without compilation.
    carry : Carry
        State of the loop, its arrays as NumPy arrays.
    stats : list of Stats
        Statistics of consecutive pieces of the run, arrays of shape (steps of the piece, chains).
    ladder : list of Ladder
        The rungs so far, each of shape (1, chains, m).
    """

    done: int
    seconds: float
    carry: Carry
    stats: list[Stats[np.ndarray]]
    ladder: list[Ladder[np.ndarray]]


class BlockStopped(Exception):
    """The block was stopped before its last step."""

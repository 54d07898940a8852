"""Blocks of particles: the work of one, the particles on the way, and the result.

Particles run in blocks of fixed size, each with its own random stream, so that the result does not
depend on which worker runs a block.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np

from pymc_anneal.annealing.step_statistics import Stats
from pymc_anneal.base.contracts import KernelState, Path, Transition


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
    log_ratio_up, log_ratio_down
        Log ratio of the density at the next rung to that at this one, and of this one to the one
        before; 0 at the ends.
    velocity
        ``v`` at this rung.
    """

    log_weight: Any
    log_ratio_up: Any
    log_ratio_down: Any
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


class Carry(NamedTuple):
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
    carry: Carry
    rows: list[Stats]
    ladder: list[Ladder]


class BlockStopped(Exception):
    """The block was told to stop before its last step."""


EMPTY_LADDER = Ladder(*[np.zeros((0, 0, 0))] * len(Ladder._fields))

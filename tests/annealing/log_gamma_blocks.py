"""Blocks of particles on a log-gamma target, and monitors of their runs."""

from collections.abc import Callable

import jax
import numpy as np

import pymc_anneal as pma

from pymc_anneal.annealing.block import Block, BlockResult, Snapshot
from pymc_anneal.annealing.loop import Monitor
from pymc_anneal.base.contracts import Path
from pymc_anneal.base.progress import BlockProgress
from tests.cases import log_gamma_draws, log_gamma_terms

PATH = pma.GeometricPath(log_gamma_terms)
KERNEL = pma.HMC(0.5, 2, 0.6)
CHAINS, PARTICLES = 3, 20


def make_blocks(count: int, steps: int = 6, seed: int = 1, path: Path = PATH) -> list[Block]:
    """Blocks of three chains of twenty particles each."""
    result = []
    for child in np.random.SeedSequence(seed).spawn(count):
        rng = np.random.default_rng(child.spawn(1)[0])
        position = log_gamma_draws(0.0, CHAINS * PARTICLES, rng)
        betas = pma.power_schedule(steps, 2.0)
        result.append(Block(path, KERNEL, betas, position, CHAINS, child))
    return result


def assert_same(first: BlockResult, second: BlockResult) -> None:
    """Every bit of two results agrees, except for the time they took."""
    pairs = zip(
        jax.tree.leaves(first._replace(seconds=0.0)),
        jax.tree.leaves(second._replace(seconds=0.0)),
        strict=True,
    )
    for a, b in pairs:
        np.testing.assert_array_equal(a, b)


class Reporter(Monitor):
    """Passes progress to a function."""

    def __init__(self, report: Callable[[BlockProgress], None]):
        self._report = report

    def report(self, progress: BlockProgress) -> None:
        self._report(progress)


class SnapshotTaker(Monitor):
    """Takes every snapshot."""

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []

    def offer_snapshot(self, take: Callable[[], Snapshot]) -> None:
        self.snapshots.append(take())

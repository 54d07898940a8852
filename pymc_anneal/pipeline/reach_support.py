"""Draws of the prior inside of a region that no plain draw meets, by how far others are from it.

The conditions under which the likelihood is zero (`model/violation.py`) lead there, and multilevel
splitting (`evidence/levels.py`) keeps the prior on the way: its prior mass follows.
"""

import numpy as np

from pymc_anneal.adaptation.support import Reached
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base.batches import map_batches
from pymc_anneal.evidence.levels import reach
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.paths.geometric import GeometricPath

# Draws of the prior, of which the nearer ones are kept: with 16 regions of equal mass each has some
# 60 particles in half of those kept.
_DRAWS, _KEPT = 8192, 2048
# Evaluations after which it ends: enough for 1e-20 of the prior in four dimensions, and for 1e-8 in
# ten. They take seconds.
_MOST = 2_000_000


def reach_support(compiled: CompiledModel, seed: np.random.SeedSequence) -> Reached | None:
    """Draw from the prior where no condition makes the likelihood zero.

    Returns
    -------
    Reached or None
        None if the graph of the likelihood has no condition of a known form, if parts of it are
        black boxes or discrete, or if nothing leads there.
    """
    violation = None if compiled.calls or compiled.discrete else compiled.violation
    if violation is None:
        return None
    target = TargetDensity(GeometricPath(compiled.log_terms), _KEPT // 2)

    def evaluate(position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        lacking = map_batches(violation, position, _KEPT // 2)
        return np.asarray(target.evaluate(position).log_prior), -lacking

    seed_draws, seed_moves = seed.spawn(2)
    found = reach(evaluate, compiled.sample_prior(seed_draws, _DRAWS), seed_moves, _KEPT, _MOST)
    return None if found is None else Reached(*found)

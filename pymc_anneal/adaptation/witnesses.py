"""Witnesses: the particles of a survey that nothing is fitted to.

Every fourth particle of a survey is held out. Those of one family stand side by side after
systematic resampling, so that both parts have some of each larger one.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pymc_anneal.adaptation.particles import settle
from pymc_anneal.adaptation.pilot import Pilot
from pymc_anneal.base.contracts import Path
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import keys_of


class Witnesses(NamedTuple):
    """Particles of the posterior that nothing was fitted to.

    Attributes
    ----------
    position : ndarray, shape (n, d)
    family : ndarray of int, shape (n,)
        Those with the same number descend from the same particle.
    """

    position: np.ndarray
    family: np.ndarray


# Those that are held out: with half of them, fits to the rest had a heavy tail in 7 of 96 runs of
# four everyday models (with none, in 2), and there are few families among so many.
_HELD_OUT = slice(None, None, 4)
# Pairs of moves that let particles settle: those of a survey move once or twice at a temperature.
_PAIRS = 8


def to_fit(position: np.ndarray) -> np.ndarray:
    """Return the particles of a survey to which a density may be fitted."""
    return np.delete(position, _HELD_OUT, axis=0)


def held_out(pilot: Pilot) -> Witnesses:
    """Return the particles of a survey that are held out."""
    return Witnesses(pilot.position[_HELD_OUT], pilot.ancestor[_HELD_OUT])


@double_precision
def settled(pilot: Pilot, path: Path, seed: np.random.SeedSequence) -> tuple[Pilot, int]:
    """Move the particles of a survey at the end of its path, and count the evaluations."""
    kernel, key = pilot.transition.at(1.0), next(keys_of(seed))
    position = settle(path, kernel, pilot.position, key, _PAIRS)
    spent = 2 * _PAIRS * int(pilot.cost[-1]) * len(position)
    return replace(pilot, position=position), spent

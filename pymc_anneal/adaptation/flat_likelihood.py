"""Likelihoods of flat steps, whose gradient is zero wherever they have one.

A likelihood of comparisons and roundings is constant along small moves and jumps at some of the
larger ones, in all coordinates or in some: places of changes, edges. Trajectories of gradients meet
the jumps without a warning: on a staircase in eight dimensions a move of HMC took 110,000
evaluations. Such coordinates are recognised at draws of the reference: the gradient of the log
likelihood, the difference of the gradients at both ends of the path, is zero along them at all
draws, while the log likelihood differs if they take the values of another draw. Where it is zero
at most draws only, gradients move what is elsewhere, but climbs do not lead there.
"""

from collections.abc import Sequence

import numpy as np

from pymc_anneal.adaptation.particles import gradient_array
from pymc_anneal.adaptation.support import compare_ends
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base.contracts import Path, PyTree, Transition
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.parents import depends_on_some

# Share of the draws that are most of them.
_MOSTLY = 0.5
# Difference of two gradients that is rounding, relative to their size.
_ROUNDING = 1e-14
# Change of the log likelihood, in nats, that no slope below rounding adds up to: of a likelihood so
# weak, the gradient of the prior hides its own.
_BY_STEPS = 1e-8
# Change relative to the log likelihood that is rounding: other batches add its terms up otherwise.
_BY_ROUNDING = 1e-12


class FlatLikelihoodError(ValueError):
    """A transition by gradients is to move particles along steps that have none.

    Parameters
    ----------
    message : str
    coordinates : sequence of int
        Those in which the likelihood has flat steps.
    """

    def __init__(self, message: str, coordinates: Sequence[int]) -> None:
        super().__init__(message)
        self.coordinates = tuple(coordinates)


def check_not_flat(
    path: Path, transition: Transition, position: np.ndarray, terms: PyTree, edged: bool = False
) -> None:
    """Raise if a transition by gradients meets a likelihood of flat steps.

    Parameters
    ----------
    path, transition
    position : ndarray, shape (n, d)
        Draws of the reference.
    terms
        Those of the path there.
    edged
        Whether the likelihood is zero at other draws.

    Raises
    ------
    FlatLikelihoodError
        The log likelihood varies along coordinates in which it has no gradient at any draw.
    """
    moved = _moved_by_gradients(transition, position.shape[1])
    if not moved.any():  # and the density may have no gradient
        return
    ratio = np.asarray(compare_ends(path, terms)[0])
    possible = np.isfinite(ratio)
    slopes = (gradient_array(path, position[possible], beta) for beta in (0.0, 1.0))
    flat = moved & _are_equal(*slopes).all(axis=0)
    if not flat.any():
        return
    whole = edged and bool(flat.all())
    others = np.where(flat, np.roll(position, 1, axis=0), position)
    if whole or _differ(path, others[possible], ratio[possible]):
        raise FlatLikelihoodError(
            f"The log likelihood has steps along {flat.sum()} of {len(flat)} coordinates: its "
            f"gradient there is zero at all of {possible.sum()} draws of the prior.",
            np.flatnonzero(flat).tolist(),
        )


def _moved_by_gradients(transition: Transition, ndim: int) -> np.ndarray:
    """Flag the coordinates that a part of a transition moves by gradients, shape ``(d,)``."""
    moved = np.zeros(ndim, dtype=bool)
    for part in transition.parts:
        if part.tuning.uses_gradient:
            moved[slice(None) if part.moved_coordinates is None else [*part.moved_coordinates]] = 1
    return moved


def is_mostly_flat(
    target: TargetDensity, position: np.ndarray, compiled: CompiledModel | None = None
) -> bool:
    """Whether a likelihood has no slope at most draws of the prior, or none along a coordinate.

    Climbs from there lead to no top of the likelihood: a narrow one may be met by none of them.
    Coordinates along which it has a slope at no draw may be those of the prior alone: they count
    where the variable has no others, and the likelihood of the compiled model depends on it.
    """
    possible = np.isfinite(target.evaluate(position).log_likelihood)
    slopes = (target.value_and_gradient(position, beta=beta)[1] for beta in (0.0, 1.0))
    flat = _are_equal(*slopes)[possible]
    if not flat.size:
        return False
    along = np.where(flat.all(axis=0), 0.0, flat.mean(axis=0))
    if max(along.max(), flat.all(axis=1).mean()) > _MOSTLY:
        return True
    if compiled is None:
        return False
    silent = {v.name for v in compiled.variables if flat[:, v.start : v.stop].all()}
    return bool(silent) and depends_on_some(compiled, silent)


def _are_equal(start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """Flag where gradients at both ends of a path are the same, shape ``(n, d)``."""
    same: np.ndarray = np.abs(stop - start) <= _ROUNDING * np.abs(start)
    return same


def _differ(path: Path, position: np.ndarray, ratio: np.ndarray) -> bool:
    """Whether the likelihood at some of the positions is not what it was before."""
    change = np.asarray(compare_ends(path, path.evaluate(position))[0]) - ratio
    return not bool((np.abs(change) <= _BY_STEPS + _BY_ROUNDING * np.abs(ratio)).all())

"""Likelihoods of flat steps, whose gradient is zero wherever they have one.

A likelihood of comparisons, roundings and hard bounds alone is constant along small moves and jumps
at some of the larger ones. A trajectory of gradients meets the jumps without a warning and is
rejected as a whole: on a staircase in eight dimensions a move of HMC took 110,000 evaluations.

It is recognised at draws of the reference where the log likelihood differs, while its gradient, the
difference of the gradients at both ends of the path, is zero at all of them.
"""

import numpy as np

from pymc_anneal.adaptation.particles import gradient_array
from pymc_anneal.adaptation.support import compare_ends
from pymc_anneal.base.contracts import Path, PyTree, Transition

# Difference of two gradients that is rounding, relative to their size.
_ROUNDING = 1e-14
# Range of the log likelihood over the draws, in nats, that no slope below rounding adds up to: of a
# likelihood so weak, the gradient of the prior hides its own.
_BY_STEPS = 1e-8


class FlatLikelihoodError(ValueError):
    """A transition by gradients is to move particles in a likelihood without any."""


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
        The log likelihood takes several values and has no gradient at any draw.
    """
    if not any(part.tuning.uses_gradient for part in transition.parts):
        return
    if any(part.moves_integers for part in transition.parts):  # the likelihood may vary by these
        return
    ratio = np.asarray(compare_ends(path, terms)[0])
    possible = np.isfinite(ratio)
    if (edged or np.ptp(ratio) > _BY_STEPS) and _is_flat(path, position, possible):
        values = len(np.unique(ratio)) + int(edged and bool(possible.all()))
        raise FlatLikelihoodError(
            f"The gradient of the log likelihood is zero at all of {len(ratio)} draws of the "
            f"prior, where it takes {values} values."
        )


def _is_flat(path: Path, position: np.ndarray, possible: np.ndarray) -> bool:
    """Whether both ends of a path have the same gradients where the likelihood is not zero."""
    start, stop = (gradient_array(path, position, beta)[possible] for beta in (0.0, 1.0))
    return bool((np.abs(stop - start) <= _ROUNDING * np.abs(start)).all())

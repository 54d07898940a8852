"""What transitions cost: evaluations of gradient or density for each particle."""

from typing import Any

import numpy as np

from pymc_anneal.base.contracts import Transition
from pymc_anneal.transitions.by_temperature import TunedTransition
from pymc_anneal.transitions.composition import Composition
from pymc_anneal.transitions.on_coordinates import BlockTransition


def evaluations(transition: Transition, betas: np.ndarray) -> np.ndarray:
    """Return the evaluations of one transition at each of some temperatures.

    Parameters
    ----------
    transition
        One that does not say what it costs counts as one evaluation.
    betas : ndarray, shape (K,)
    """
    if not isinstance(transition, TunedTransition):
        return np.broadcast_to(_cost(transition), np.shape(betas))
    # Whole numbers are those of the lower temperature, as the transition itself takes them.
    left = np.searchsorted(np.asarray(transition.betas), betas, side="right") - 1
    cost = np.broadcast_to(_cost(transition.kernel), np.shape(transition.betas))
    return cost[left.clip(0)]


def _cost(kernel: Any) -> np.ndarray:
    if isinstance(kernel, Composition):
        # Some parts cost the same at every temperature, others not.
        return sum((_cost(part) for part in kernel.kernels), np.asarray(0))
    if isinstance(kernel, BlockTransition):
        return _cost(kernel.kernel)
    if not hasattr(kernel, "cost"):
        return np.asarray(1)
    return np.asarray(kernel.cost(np.asarray(getattr(kernel, "n_steps", 1))))

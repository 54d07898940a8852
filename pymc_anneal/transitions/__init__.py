"""Markov kernels that leave ``f_beta`` invariant, one per file.

Each is pure, ``(key, state, path, beta) -> (state, info)``. Kernels are combined in three ways: in
turn (`Composition`), on some of the coordinates (`BlockTransition`), and with parameters by
temperature (`TunedTransition`).
"""

from pymc_anneal.transitions.blackjax import BlackJAXKernel
from pymc_anneal.transitions.by_temperature import TunedTransition
from pymc_anneal.transitions.composition import Composition
from pymc_anneal.transitions.discrete_walk import DiscreteRandomWalk
from pymc_anneal.transitions.generalized_hmc import GeneralizedHMC
from pymc_anneal.transitions.gibbs import Gibbs
from pymc_anneal.transitions.hmc import HMC
from pymc_anneal.transitions.independence import IndependenceMetropolis
from pymc_anneal.transitions.joint_flip import JointFlip
from pymc_anneal.transitions.mala import MALA
from pymc_anneal.transitions.on_coordinates import BlockTransition
from pymc_anneal.transitions.random_walk import RandomWalkMetropolis

__all__ = [
    "BlackJAXKernel",
    "Composition",
    "Gibbs",
    "HMC",
    "DiscreteRandomWalk",
    "IndependenceMetropolis",
    "JointFlip",
    "MALA",
    "BlockTransition",
    "GeneralizedHMC",
    "RandomWalkMetropolis",
    "TunedTransition",
]

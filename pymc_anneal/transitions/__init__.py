"""Markov kernels, one per file; each leaves the density of the path at ``beta`` invariant."""

from pymc_anneal.transitions.blackjax import BlackJAXKernel
from pymc_anneal.transitions.composition import Composition
from pymc_anneal.transitions.conditional import OnCoordinates
from pymc_anneal.transitions.gibbs import Gibbs
from pymc_anneal.transitions.hmc import HMC
from pymc_anneal.transitions.integer_walk import IntegerWalk
from pymc_anneal.transitions.mala import MALA
from pymc_anneal.transitions.partial_refreshment import PartialRefreshmentHMC
from pymc_anneal.transitions.random_walk import RandomWalkMetropolis
from pymc_anneal.transitions.tuned import TunedTransition

__all__ = [
    "HMC",
    "MALA",
    "BlackJAXKernel",
    "Composition",
    "Gibbs",
    "IntegerWalk",
    "OnCoordinates",
    "PartialRefreshmentHMC",
    "RandomWalkMetropolis",
    "TunedTransition",
]

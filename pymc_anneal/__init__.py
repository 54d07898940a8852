"""Bayesian model evidence for PyMC by annealed importance sampling."""

__version__ = "0.1.0"

from pymc_anneal import rbm
from pymc_anneal.model import CompiledModel, compile_model
from pymc_anneal.paths import GeometricPath
from pymc_anneal.results import LogEvidence, log_evidence
from pymc_anneal.sampling import sample_ais
from pymc_anneal.schedules import (
    decelerate,
    geometric_schedule,
    linear_schedule,
    optimal_binned_schedule,
    power_schedule,
    salakhutdinov_murray_schedule,
    sigmoid_schedule,
    variational_schedule,
)
from pymc_anneal.transitions import (
    HMC,
    MALA,
    BlackJAXKernel,
    PartialRefreshmentHMC,
    RandomWalkMetropolis,
)

__all__ = [
    "HMC",
    "MALA",
    "BlackJAXKernel",
    "CompiledModel",
    "GeometricPath",
    "LogEvidence",
    "PartialRefreshmentHMC",
    "RandomWalkMetropolis",
    "compile_model",
    "decelerate",
    "geometric_schedule",
    "linear_schedule",
    "log_evidence",
    "optimal_binned_schedule",
    "power_schedule",
    "rbm",
    "salakhutdinov_murray_schedule",
    "sample_ais",
    "sigmoid_schedule",
    "variational_schedule",
]

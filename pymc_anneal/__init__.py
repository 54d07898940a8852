"""Bayesian model evidence for PyMC by annealed importance sampling."""

__version__ = "0.1.0"

from pymc_anneal import rbm
from pymc_anneal.bridge import bridge_evidence
from pymc_anneal.calibration import Calibration, calibrate
from pymc_anneal.checkpoint import Checkpoint
from pymc_anneal.comparison import LogBayesFactor, compare, log_bayes_factor
from pymc_anneal.custom_path import CustomPath
from pymc_anneal.discrete import compose_transition
from pymc_anneal.model import CompiledModel, compile_model
from pymc_anneal.modes import Mode, find_mode
from pymc_anneal.panel import compare_estimators
from pymc_anneal.paths import GeometricPath, ReferencePath
from pymc_anneal.plots import (
    plot_annealing,
    plot_compare,
    plot_log_weights,
    plot_overlap,
    plot_running_evidence,
    plot_sandwich,
    plot_schedule,
    plot_sensitivity,
    plot_thermodynamic,
    plot_velocity,
)
from pymc_anneal.power_posterior import power_posterior
from pymc_anneal.references import (
    GaussianReference,
    StudentTReference,
    fit_reference,
    laplace_reference,
)
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
from pymc_anneal.selection import MomentAverages, QAverages
from pymc_anneal.sensitivity import sensitivity
from pymc_anneal.smc import repair_smc
from pymc_anneal.summaries import summary
from pymc_anneal.tempered import TemperedTransition
from pymc_anneal.transitions import (
    HMC,
    MALA,
    BlackJAXKernel,
    Composition,
    Gibbs,
    IntegerWalk,
    OnCoordinates,
    PartialRefreshmentHMC,
    RandomWalkMetropolis,
)

__all__ = [
    "HMC",
    "MALA",
    "BlackJAXKernel",
    "Calibration",
    "Checkpoint",
    "CompiledModel",
    "CustomPath",
    "MomentAverages",
    "QAverages",
    "Composition",
    "GaussianReference",
    "GeometricPath",
    "Gibbs",
    "IntegerWalk",
    "LogBayesFactor",
    "LogEvidence",
    "Mode",
    "OnCoordinates",
    "PartialRefreshmentHMC",
    "RandomWalkMetropolis",
    "ReferencePath",
    "StudentTReference",
    "TemperedTransition",
    "bridge_evidence",
    "calibrate",
    "compare",
    "compare_estimators",
    "compile_model",
    "compose_transition",
    "decelerate",
    "find_mode",
    "fit_reference",
    "geometric_schedule",
    "laplace_reference",
    "linear_schedule",
    "log_bayes_factor",
    "log_evidence",
    "optimal_binned_schedule",
    "plot_annealing",
    "plot_compare",
    "plot_log_weights",
    "plot_overlap",
    "plot_running_evidence",
    "plot_sandwich",
    "plot_schedule",
    "plot_sensitivity",
    "plot_thermodynamic",
    "plot_velocity",
    "power_posterior",
    "power_schedule",
    "rbm",
    "repair_smc",
    "salakhutdinov_murray_schedule",
    "sample_ais",
    "sensitivity",
    "sigmoid_schedule",
    "summary",
    "variational_schedule",
]

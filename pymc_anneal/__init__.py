"""Bayesian model evidence for PyMC by annealed importance sampling."""

from pymc_anneal import rbm
from pymc_anneal._version import __version__ as __version__
from pymc_anneal.adaptation import fit_reference, laplace_reference
from pymc_anneal.base import KernelState, LogTerms, Path, StepInfo, Transition, Tuning
from pymc_anneal.evidence import LogEvidence, Verdict, bridge_evidence
from pymc_anneal.execution import Checkpoint
from pymc_anneal.model import CompiledModel, compile_model
from pymc_anneal.paths import (
    CustomPath,
    GaussianReference,
    GeometricPath,
    ReferencePath,
    StudentTReference,
)
from pymc_anneal.pipeline import MomentAveragedPath, QPath, default_transition
from pymc_anneal.results import (
    LogBayesFactor,
    compare,
    compare_estimators,
    from_sample_smc,
    log_bayes_factor,
    log_evidence,
    plot_annealing,
    plot_bounds,
    plot_compare,
    plot_forward_reverse,
    plot_log_weights,
    plot_path_velocity,
    plot_running_evidence,
    plot_schedule,
    plot_sensitivity,
    plot_ti_integrand,
    power_sensitivity,
    summary,
)
from pymc_anneal.sampling import (
    Calibration,
    MAPEstimate,
    TemperedTransition,
    calibrate,
    find_map,
    power_posterior,
    sample_ais,
)
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
    BlockTransition,
    Composition,
    DiscreteRandomWalk,
    GeneralizedHMC,
    Gibbs,
    RandomWalkMetropolis,
)

__all__ = [
    "BlackJAXKernel",
    "BlockTransition",
    "Calibration",
    "Checkpoint",
    "CompiledModel",
    "Composition",
    "CustomPath",
    "DiscreteRandomWalk",
    "GaussianReference",
    "GeneralizedHMC",
    "GeometricPath",
    "Gibbs",
    "HMC",
    "KernelState",
    "LogBayesFactor",
    "LogEvidence",
    "LogTerms",
    "MALA",
    "MAPEstimate",
    "MomentAveragedPath",
    "Path",
    "QPath",
    "RandomWalkMetropolis",
    "ReferencePath",
    "StepInfo",
    "StudentTReference",
    "TemperedTransition",
    "Transition",
    "Tuning",
    "Verdict",
    "bridge_evidence",
    "calibrate",
    "compare",
    "compare_estimators",
    "compile_model",
    "decelerate",
    "default_transition",
    "find_map",
    "fit_reference",
    "from_sample_smc",
    "geometric_schedule",
    "laplace_reference",
    "linear_schedule",
    "log_bayes_factor",
    "log_evidence",
    "optimal_binned_schedule",
    "plot_annealing",
    "plot_bounds",
    "plot_compare",
    "plot_forward_reverse",
    "plot_log_weights",
    "plot_path_velocity",
    "plot_running_evidence",
    "plot_schedule",
    "plot_sensitivity",
    "plot_ti_integrand",
    "power_posterior",
    "power_schedule",
    "power_sensitivity",
    "rbm",
    "salakhutdinov_murray_schedule",
    "sample_ais",
    "sigmoid_schedule",
    "summary",
    "variational_schedule",
]


def __dir__() -> list[str]:
    return __all__

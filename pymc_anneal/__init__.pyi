"""Names of the package: where each is defined, for `__init__.py` and for type checkers."""

from . import rbm
from .adaptation.laplace_reference import laplace_reference
from .base.contracts import KernelState, LogTerms, Path, StepInfo, Transition, Tuning
from .between.constraints import Between, Increasing
from .evidence.bridge_sampling import bridge_evidence
from .evidence.estimate import LogEvidence
from .evidence.verdict import EvidenceWarning, Verdict
from .execution.checkpoint import Checkpoint
from .model.compile import CompiledModel, compile_model
from .model.g_prior import g_prior
from .nested.to_plots import to_anesthetic, to_dynesty
from .paths.custom import CustomPath
from .paths.geometric import GeometricPath, ReferencePath
from .paths.mixture_reference import MixtureReference
from .paths.references import GaussianReference, StudentTReference
from .pipeline.choose_transition import default_transition
from .pipeline.moment_averaged_path import MomentAveragedPath
from .pipeline.q_average_path import QPath
from .posthoc.average import average
from .posthoc.contrast_bayes_factor import contrast_bayes_factor
from .posthoc.find_map import MAPEstimate, find_map
from .posthoc.from_sample_smc import from_sample_smc
from .posthoc.inclusion import inclusion
from .posthoc.plot_bf import plot_bf
from .posthoc.prior_sensitivity import prior_sensitivity
from .posthoc.savage_dickey import savage_dickey
from .posthoc.tempered_transition import TemperedTransition
from .results.bayes_factor import LogBayesFactor
from .results.compare_estimators import compare_estimators
from .results.compare_models import compare, log_bayes_factor
from .results.log_evidence import log_evidence
from .results.model_comparison import ModelComparison
from .results.plot_compare import plot_compare
from .results.plot_path import (
    plot_annealing,
    plot_path_velocity,
    plot_running_evidence,
    plot_schedule,
    plot_ti_integrand,
)
from .results.plot_prior_sensitivity import plot_prior_sensitivity
from .results.plot_robustness import plot_robustness
from .results.plot_sensitivity import plot_sensitivity
from .results.plot_sequential import plot_design, plot_sequential
from .results.plot_weights import plot_bounds, plot_forward_reverse, plot_log_weights
from .results.pool_imputations import pool_imputations
from .results.report import report
from .results.robustness import Robustness
from .results.sensitivity import power_sensitivity
from .results.sequential import Design, Sequential
from .results.summary import summary
from .sampling.calibrate import Calibration, calibrate
from .sampling.constraint_bayes_factor import constraint_bayes_factor
from .sampling.count import Count, count
from .sampling.fit_reference import fit_reference
from .sampling.fractional_evidence import fractional_evidence
from .sampling.intrinsic_bayes_factor import IntrinsicBayesFactors, intrinsic_bayes_factor
from .sampling.nested_evidence import nested_evidence
from .sampling.power_posterior import power_posterior
from .sampling.pymc_sampler import ais
from .sampling.robustness import robustness
from .sampling.sample_ais import sample_ais
from .sampling.sample_bayes_factor import sample_bayes_factor
from .sampling.sample_models import sample_models
from .sampling.sequential import design, sequential
from .sampling.target import Target
from .sampling.update import update
from .schedules.fixed import (
    geometric_schedule,
    linear_schedule,
    power_schedule,
    salakhutdinov_murray_schedule,
    sigmoid_schedule,
)
from .schedules.optimal_binned import optimal_binned_schedule
from .schedules.variational import decelerate, variational_schedule
from .transitions.blackjax import BlackJAXKernel
from .transitions.composition import Composition
from .transitions.discrete_walk import DiscreteRandomWalk
from .transitions.generalized_hmc import GeneralizedHMC
from .transitions.gibbs import Gibbs
from .transitions.hmc import HMC
from .transitions.independence import IndependenceMetropolis
from .transitions.joint_flip import JointFlip
from .transitions.mala import MALA
from .transitions.on_coordinates import BlockTransition
from .transitions.random_walk import RandomWalkMetropolis

__version__: str

__all__ = [
    "Between",
    "BlackJAXKernel",
    "BlockTransition",
    "Calibration",
    "Checkpoint",
    "CompiledModel",
    "Composition",
    "Count",
    "CustomPath",
    "Design",
    "DiscreteRandomWalk",
    "EvidenceWarning",
    "GaussianReference",
    "GeneralizedHMC",
    "GeometricPath",
    "Gibbs",
    "HMC",
    "Increasing",
    "IndependenceMetropolis",
    "IntrinsicBayesFactors",
    "JointFlip",
    "KernelState",
    "LogBayesFactor",
    "LogEvidence",
    "LogTerms",
    "MALA",
    "MAPEstimate",
    "MixtureReference",
    "ModelComparison",
    "MomentAveragedPath",
    "Path",
    "QPath",
    "RandomWalkMetropolis",
    "ReferencePath",
    "Robustness",
    "Sequential",
    "StepInfo",
    "StudentTReference",
    "Target",
    "TemperedTransition",
    "Transition",
    "Tuning",
    "Verdict",
    "ais",
    "average",
    "bridge_evidence",
    "calibrate",
    "compare",
    "compare_estimators",
    "compile_model",
    "constraint_bayes_factor",
    "contrast_bayes_factor",
    "count",
    "decelerate",
    "default_transition",
    "design",
    "find_map",
    "fit_reference",
    "fractional_evidence",
    "from_sample_smc",
    "g_prior",
    "geometric_schedule",
    "inclusion",
    "intrinsic_bayes_factor",
    "laplace_reference",
    "linear_schedule",
    "log_bayes_factor",
    "log_evidence",
    "nested_evidence",
    "optimal_binned_schedule",
    "plot_annealing",
    "plot_bf",
    "plot_bounds",
    "plot_compare",
    "plot_design",
    "plot_forward_reverse",
    "plot_log_weights",
    "plot_path_velocity",
    "plot_prior_sensitivity",
    "plot_robustness",
    "plot_running_evidence",
    "plot_schedule",
    "plot_sensitivity",
    "plot_sequential",
    "plot_ti_integrand",
    "pool_imputations",
    "power_posterior",
    "power_schedule",
    "power_sensitivity",
    "prior_sensitivity",
    "rbm",
    "report",
    "robustness",
    "salakhutdinov_murray_schedule",
    "sample_ais",
    "sample_bayes_factor",
    "sample_models",
    "savage_dickey",
    "sequential",
    "sigmoid_schedule",
    "summary",
    "to_anesthetic",
    "to_dynesty",
    "update",
    "variational_schedule",
]

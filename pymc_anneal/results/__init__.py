"""The container of a run (InferenceData or DataTree), and everything that reads it.

`log_evidence`, `summary`, `compare`, `compare_estimators`, `power_sensitivity`, `from_sample_smc`
and the plots.
"""

from pymc_anneal.results.average import average
from pymc_anneal.results.compare_estimators import compare_estimators
from pymc_anneal.results.compare_models import LogBayesFactor, compare, log_bayes_factor
from pymc_anneal.results.from_sample_smc import from_sample_smc
from pymc_anneal.results.inclusion import inclusion
from pymc_anneal.results.log_evidence import log_evidence
from pymc_anneal.results.model_comparison import ModelComparison
from pymc_anneal.results.plot_compare import plot_compare
from pymc_anneal.results.plot_path import (
    plot_annealing,
    plot_path_velocity,
    plot_running_evidence,
    plot_schedule,
    plot_ti_integrand,
)
from pymc_anneal.results.plot_prior_sensitivity import plot_prior_sensitivity
from pymc_anneal.results.plot_sensitivity import plot_sensitivity
from pymc_anneal.results.plot_weights import plot_bounds, plot_forward_reverse, plot_log_weights
from pymc_anneal.results.prior_sensitivity import prior_sensitivity
from pymc_anneal.results.report import report
from pymc_anneal.results.savage_dickey import savage_dickey
from pymc_anneal.results.sensitivity import power_sensitivity
from pymc_anneal.results.summary import summary

__all__ = [
    "LogBayesFactor",
    "ModelComparison",
    "average",
    "compare",
    "compare_estimators",
    "from_sample_smc",
    "inclusion",
    "log_bayes_factor",
    "log_evidence",
    "plot_annealing",
    "plot_bounds",
    "plot_compare",
    "plot_forward_reverse",
    "plot_log_weights",
    "plot_path_velocity",
    "plot_prior_sensitivity",
    "plot_running_evidence",
    "plot_schedule",
    "plot_sensitivity",
    "plot_ti_integrand",
    "power_sensitivity",
    "prior_sensitivity",
    "report",
    "savage_dickey",
    "summary",
]

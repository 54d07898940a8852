"""Restricted Boltzmann machines (RBMs): training, exact sums, paths and partition functions.

The log partition function is estimated by annealed importance sampling on the same engine,
schedules and error estimates as the evidence of a PyMC model.
"""

from pymc_anneal.rbm.exact import exact_moments, log_partition_function, sample_exact
from pymc_anneal.rbm.log_likelihood import LogLikelihood, log_likelihood
from pymc_anneal.rbm.model import RBM, base_rate_reference, uniform_reference
from pymc_anneal.rbm.moment_spline import MomentSpline, fit_moments_exact, moment_spline
from pymc_anneal.rbm.moments import average_moments, data_moments, gibbs_moments, reference_moments
from pymc_anneal.rbm.paths import GeometricRBMPath, RBMPath, softplus_increment
from pymc_anneal.rbm.sample_ais import sample_ais
from pymc_anneal.rbm.spline_path import SplineRBMPath
from pymc_anneal.rbm.state_sums import Moments
from pymc_anneal.rbm.training import (
    TrainedRBM,
    fit_moments_pcd,
    pseudo_log_likelihood,
    reconstruction_error,
    train,
)
from pymc_anneal.rbm.transitions import BlockedGibbs, PerfectTransition

__all__ = [
    "RBM",
    "BlockedGibbs",
    "GeometricRBMPath",
    "LogLikelihood",
    "MomentSpline",
    "Moments",
    "PerfectTransition",
    "RBMPath",
    "SplineRBMPath",
    "TrainedRBM",
    "average_moments",
    "base_rate_reference",
    "data_moments",
    "exact_moments",
    "fit_moments_exact",
    "fit_moments_pcd",
    "gibbs_moments",
    "log_likelihood",
    "log_partition_function",
    "moment_spline",
    "pseudo_log_likelihood",
    "reconstruction_error",
    "reference_moments",
    "sample_ais",
    "sample_exact",
    "softplus_increment",
    "train",
    "uniform_reference",
]

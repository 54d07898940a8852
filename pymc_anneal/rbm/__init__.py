"""Restricted Boltzmann machines: partition functions by annealed importance sampling."""

from pymc_anneal.rbm.exact import Moments, log_partition_function, moments, sample_exact
from pymc_anneal.rbm.model import RBM, base_rate_reference, uniform_reference
from pymc_anneal.rbm.moment_spline import MomentSpline, fit_moments_exact, moment_spline
from pymc_anneal.rbm.moments import (
    average_moments,
    data_moments,
    gibbs_moments,
    reference_moments,
)
from pymc_anneal.rbm.paths import GeometricRBMPath, SplineRBMPath
from pymc_anneal.rbm.sample_ais import sample_ais
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
    "MomentSpline",
    "Moments",
    "PerfectTransition",
    "SplineRBMPath",
    "TrainedRBM",
    "average_moments",
    "base_rate_reference",
    "data_moments",
    "gibbs_moments",
    "log_partition_function",
    "fit_moments_pcd",
    "fit_moments_exact",
    "moment_spline",
    "moments",
    "pseudo_log_likelihood",
    "reconstruction_error",
    "reference_moments",
    "sample_ais",
    "sample_exact",
    "train",
    "uniform_reference",
]

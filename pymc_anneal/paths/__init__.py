"""Paths: families of densities ``f_beta`` from a reference (0) to the posterior (1).

Geometric, moment-averaged, q-averaged and custom paths, and the references from which they start.
One path per file, with the methods ``evaluate``, ``log_density``, ``log_ratio`` and ``velocity`` of
:class:`~pymc_anneal.base.Path`.
"""

from pymc_anneal.paths.custom import CustomPath
from pymc_anneal.paths.gaussian import Gaussian, GaussianPath, geometric_average, moment_average
from pymc_anneal.paths.geometric import GeometricPath, ReferencePath
from pymc_anneal.paths.mixture_reference import MixtureReference
from pymc_anneal.paths.references import GaussianReference, StudentTReference

__all__ = [
    "CustomPath",
    "Gaussian",
    "GaussianPath",
    "GaussianReference",
    "GeometricPath",
    "MixtureReference",
    "ReferencePath",
    "StudentTReference",
    "geometric_average",
    "moment_average",
]

"""Paths: families of densities ``f_beta`` from a reference (0) to the posterior (1).

Geometric, moment-averaged, q-averages and custom paths, and the references they start from. One
path per file, with the methods evaluate, log_density, log_ratio and velocity.
"""

from pymc_anneal.paths.custom import CustomPath
from pymc_anneal.paths.geometric import GeometricPath, ReferencePath
from pymc_anneal.paths.references import GaussianReference, StudentTReference

__all__ = ["CustomPath", "GaussianReference", "GeometricPath", "ReferencePath", "StudentTReference"]

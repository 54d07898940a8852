"""The front doors: one public function per file, its signature, its docstring, a few lines."""

from pymc_anneal.sampling.calibrate import Calibration, calibrate
from pymc_anneal.sampling.constraint_bayes_factor import constraint_bayes_factor
from pymc_anneal.sampling.find_map import MAPEstimate, find_map
from pymc_anneal.sampling.nested_evidence import nested_evidence
from pymc_anneal.sampling.power_posterior import power_posterior
from pymc_anneal.sampling.sample_ais import sample_ais
from pymc_anneal.sampling.sample_bayes_factor import sample_bayes_factor
from pymc_anneal.sampling.sample_models import sample_models
from pymc_anneal.sampling.tempered_transition import TemperedTransition
from pymc_anneal.sampling.update import update

__all__ = [
    "Calibration",
    "MAPEstimate",
    "TemperedTransition",
    "calibrate",
    "constraint_bayes_factor",
    "find_map",
    "nested_evidence",
    "power_posterior",
    "sample_ais",
    "sample_bayes_factor",
    "sample_models",
    "update",
]

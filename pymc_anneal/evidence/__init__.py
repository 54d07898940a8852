"""Estimates of the log evidence with their errors, and whether to trust them.

Annealed importance sampling, Bennett's acceptance ratio, stepping stones, thermodynamic
integration, MBAR and bridge sampling, as functions of arrays; diagnostics and verdicts.
"""

from pymc_anneal.evidence.bridge_sampling import bridge_evidence
from pymc_anneal.evidence.estimate import LogEvidence

__all__ = ["LogEvidence", "bridge_evidence"]

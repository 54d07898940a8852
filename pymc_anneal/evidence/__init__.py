"""Estimators of the log evidence with their errors, and verdicts on the estimates.

Annealed importance sampling, Bennett's acceptance ratio, stepping stones, thermodynamic
integration, MBAR and bridge sampling, as functions of arrays; diagnostics and verdicts.
"""

from pymc_anneal.evidence.bridge_sampling import bridge_evidence
from pymc_anneal.evidence.estimate import LogEvidence
from pymc_anneal.evidence.verdict import EvidenceWarning, Verdict

__all__ = ["EvidenceWarning", "LogEvidence", "Verdict", "bridge_evidence"]

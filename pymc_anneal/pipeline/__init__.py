"""The stages of one call.

Choose transition, reference and path; pilot; trial; plan; counted rounds; reverse run; result.
`run.py` reads from top to bottom.
"""

from pymc_anneal.pipeline.choose_path import MomentAverages, QAverages
from pymc_anneal.pipeline.choose_transition import compose_transition

__all__ = ["MomentAverages", "QAverages", "compose_transition"]

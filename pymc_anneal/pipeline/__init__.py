"""The stages of one call.

Choose transition, reference and path; pilot; trial; plan; counted rounds; reverse run; result.
`run.py` reads from top to bottom.
"""

from pymc_anneal.pipeline.choose_path import MomentAveragedPath, QPath
from pymc_anneal.pipeline.choose_transition import default_transition

__all__ = ["MomentAveragedPath", "QPath", "default_transition"]

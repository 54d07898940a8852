"""The stages of one call.

Choose transition, reference and path; pilot; trials; plan; counted run; reverse run; result.
`run.py` reads from top to bottom.
"""

from pymc_anneal.pipeline.choose_transition import default_transition
from pymc_anneal.pipeline.moment_averaged_path import MomentAveragedPath
from pymc_anneal.pipeline.q_average_path import QPath

__all__ = ["MomentAveragedPath", "QPath", "default_transition"]

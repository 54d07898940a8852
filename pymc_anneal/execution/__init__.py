"""Where blocks of particles run, how they are saved, and what is shown meanwhile.

Any executor, checkpoints that resume to the same bits, progress bars. No mathematics.
"""

from pymc_anneal.execution.checkpoint import Checkpoint

__all__ = ["Checkpoint"]

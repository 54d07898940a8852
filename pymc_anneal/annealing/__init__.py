"""The weighted run of one block of particles (Neal 2001).

`block.py` has the records: the work of a block, its state and its result. `step.py` is the
recursion, forward, resampled and reversed; `step_statistics.py` reduces each step to a few sums.
`loop.py` runs the K steps, observed by a `Monitor`. Nothing here adapts.
"""

__all__ = []

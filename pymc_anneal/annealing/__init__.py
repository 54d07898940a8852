"""The weighted run of one block of particles (Neal 2001).

`step.py` is the recursion, forward, resampled and reversed; `loop.py` repeats it K times;
`resampling.py` and `step_statistics.py` serve both. Nothing here adapts.
"""

__all__ = []

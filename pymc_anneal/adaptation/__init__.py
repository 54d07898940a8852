"""Everything that is learned before the counted run.

The pilot, step sizes and trajectory lengths, the preconditioner, moment matching, fitted
references, and the plan of steps and particles. None of its particles enters an estimate.
"""

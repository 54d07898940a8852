"""Execution of blocks of particles: workers, checkpoints, progress bars. No mathematics.

Blocks run on any executor of :mod:`concurrent.futures`; a checkpoint resumes to the same bits.
"""

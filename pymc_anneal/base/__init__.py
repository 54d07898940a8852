"""Contracts that every part keeps, and the tools that every part may use.

`Path`, `Transition` and the records that pass between them; checks of arguments; seeds and keys;
double precision; progress; pickling; the differences between the two supported ArviZ lines.
Imports nothing else of this package.
"""

from pymc_anneal.base.contracts import KernelState, LogTerms, Path, StepInfo, Transition, Tuning

__all__ = ["KernelState", "LogTerms", "Path", "StepInfo", "Transition", "Tuning"]

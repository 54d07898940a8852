"""Records of progress, for whoever shows it."""

from typing import NamedTuple


class BlockProgress(NamedTuple):
    """Where a block stands: steps done and log mean weight so far, and its relative ESS."""

    step: int
    beta: float
    log_z: float
    relative_ess: float


class PilotProgress(NamedTuple):
    """Where the pilot stands."""

    beta: float
    log_z: float
    n_steps: int
    accept_rate: float

"""Choice of the path of q-averages, with its level from the pilot."""

from dataclasses import dataclass

import numpy as np

from pymc_anneal.base.contracts import Path
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.paths.q_path import QAveragePath
from pymc_anneal.pipeline.path_choice import PathRequest
from pymc_anneal.pipeline.target import Choice, RunCandidate


@dataclass(frozen=True)
class QPath:
    """Path of q-averages, at the level of the pilot's evidence.

    Parameters
    ----------
    q : float, optional
        Below 1. Default: such that ``(1 - q) l`` spans about one between prior and posterior.

    References
    ----------
    Brekelmans et al. (2020), Annealed importance sampling with q-paths, eq. 9.
    """

    q: float | None = None

    def __post_init__(self) -> None:
        if self.q is not None and not self.q < 1:
            raise ValueError(f"`q` is {self.q}, expected a number below 1.")

    def build(self, request: PathRequest) -> Choice:
        """Set the level and q from the pilot of the geometric path."""
        piloted, candidate = request.with_pilot(), request.candidate
        pilot, base = piloted.pilot, piloted.path
        seed_first = request.session.seeds.path.spawn(1)[0]
        first = candidate.draw_reference(seed_first, len(pilot.position))
        q = self.q
        if q is None:
            q = 1 - 1 / max(_log_ratio_range(base, first, pilot.position), 1.0)
        path = QAveragePath(base, np.asarray(q), np.asarray(pilot.log_z))
        built = RunCandidate(
            candidate.reference, candidate.draw_reference, path, built_from=piloted
        )
        return Choice(built, {})


@double_precision
def _log_ratio_range(base: Path, first: np.ndarray, last: np.ndarray) -> float:
    """Return the range of the log ratio of target to reference over most draws of both ends."""
    ends = [np.asarray(base.velocity(base.evaluate(x), 0.0)) for x in (first, last)]
    low, high = np.quantile(ends[0][np.isfinite(ends[0])], 0.1), np.quantile(ends[1], 0.9)
    return float(abs(high - low))

"""Settings of a run, checked."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pymc_anneal.base.arguments import check_count, check_target
from pymc_anneal.execution.blocks import even_block
from pymc_anneal.schedules.named import FromPilot

_MIN_POPULATIONS = 8


_DEFAULT_THRESHOLD = 0.5


@dataclass(frozen=True)
class Options:
    """The arguments of a run, checked; by default a single round without limits."""

    draws: int
    chains: int
    steps: int | str
    target_mcse: float
    max_rounds: int = 1
    max_minutes: float = np.inf
    cores: int | None = None
    block_size: int | None = None
    schedule: Callable[[int], np.ndarray] | np.ndarray | FromPilot = FromPilot("variational")
    max_step: float | None = None
    idata_kwargs: dict[str, Any] = field(default_factory=dict)
    resample: float = 0.0

    def __post_init__(self):
        for name in ("draws", "chains", "max_rounds"):
            check_count(name, getattr(self, name))
        for name in ("cores", "block_size"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        if self.steps != "auto":
            check_count("steps", self.steps, 'a positive whole number or "auto"')
        check_target(self.target_mcse)
        if not self.max_minutes > 0:
            raise ValueError(
                f"`max_minutes` is {self.max_minutes}, expected a positive number of minutes."
            )
        if isinstance(self.schedule, np.ndarray) and self.steps not in (
            "auto",
            len(self.schedule) - 1,
        ):
            raise ValueError(
                f"`steps` is {self.steps}, but the schedule has {len(self.schedule) - 1} steps. "
                "Leave out `steps`."
            )
        self._check_populations()
        known = {"log_likelihood", "prior", "coords", "dims"}
        unknown = set(self.idata_kwargs) - known
        if unknown:
            raise ValueError(
                f"Unknown `idata_kwargs` {sorted(unknown)}; expected some of {sorted(known)}."
            )

    def _check_populations(self) -> None:
        populations = self.chains * -(-self.draws // self.block_draws)
        if self.resample and populations < _MIN_POPULATIONS:
            raise ValueError(
                f"`resample` leaves {populations} independent populations (chains times blocks), "
                f"too few for an error: at least {_MIN_POPULATIONS} are needed. Take more chains, "
                "or a smaller `block_size`."
            )

    @property
    def fixed_steps(self) -> int | None:
        """Number of steps asked for, if any."""
        if isinstance(self.schedule, np.ndarray):
            return len(self.schedule) - 1
        return None if self.steps == "auto" else int(self.steps)

    @property
    def block_draws(self) -> int:
        """Particles of each chain in a block: even blocks of at most about `block_size`."""
        return even_block(self.draws, self.chains, self.block_size)


def resolve_resample(resample: str | float | None) -> float:
    """Return the threshold on the relative effective sample size, 0 for no resampling."""
    if resample is None:
        return 0.0
    if isinstance(resample, str):
        if resample != "ess":
            raise ValueError(f'`resample` is {resample!r}, expected "ess", a number, or None.')
        return _DEFAULT_THRESHOLD
    if not 0 < resample <= 1:
        raise ValueError(
            f"`resample` is {resample}, expected a share of the particles above 0 and up to 1: "
            "the effective sample size below which they are resampled."
        )
    return float(resample)

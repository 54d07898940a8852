"""The arguments of `sample_ais`, checked, and the objects that its short strings stand for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from pymc_anneal import schedules
from pymc_anneal.base import Transition
from pymc_anneal.transitions import HMC, MALA, PartialRefreshmentHMC, RandomWalkMetropolis

__all__ = [
    "SCHEDULES",
    "SURVEYED",
    "TRANSITIONS",
    "Options",
    "Surveyed",
    "check_count",
    "check_target",
    "even_block",
    "needs_pilot",
    "resolve",
    "resolve_resample",
    "resolve_schedule",
    "seed_sequence",
]

TRANSITIONS: dict[str, Callable[[], Transition]] = {
    "hmc": HMC,
    "partial_refreshment": PartialRefreshmentHMC,
    "mala": MALA,
    "random_walk": RandomWalkMetropolis,
}
SCHEDULES: dict[str, Callable[[int], np.ndarray]] = {
    "linear": schedules.linear_schedule,
    "power": schedules.power_schedule,
    "geometric": schedules.geometric_schedule,
    "sigmoid": schedules.sigmoid_schedule,
    "salakhutdinov_murray": schedules.salakhutdinov_murray_schedule,
}
SURVEYED: dict[str, Callable[..., np.ndarray]] = {
    "variational": schedules.variational_schedule,
    "optimal_binned": schedules.surveyed_bins,
}
_DEFAULT_BLOCK = 512


@dataclass(frozen=True)
class Surveyed:
    """A schedule that follows from the lengths of the path that a pilot has measured."""

    name: str

    def lay_out(
        self, betas: np.ndarray, length: np.ndarray, steps: int, max_step: float | None
    ) -> np.ndarray:
        """Return the schedule, shape ``(steps + 1,)``."""
        return SURVEYED[self.name](betas, length, steps, max_step=max_step)


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
    schedule: Callable[[int], np.ndarray] | np.ndarray | Surveyed = Surveyed("variational")
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


def even_block(draws: int, chains: int, block_size: int | None) -> int:
    """Return the particles of each chain in a block: even blocks, and no more than asked for."""
    wanted = max(1, (block_size or _DEFAULT_BLOCK) // chains)
    return -(-draws // -(-draws // wanted))


def resolve(value: Any, known: Mapping[str, Callable], name: str, contract: type, *args) -> Any:
    """Return the object meant by a short string, or the object itself."""
    if isinstance(value, str):
        if value not in known:
            raise ValueError(
                f"Unknown `{name}` {value!r}; expected one of {sorted(known)} or an object."
            )
        return known[value](*args)
    required = [m for m in vars(contract) if not m.startswith("_") and callable(vars(contract)[m])]
    missing = [m for m in required if not hasattr(value, m)]
    if missing:
        raise TypeError(
            f"`{name}` is a {type(value).__name__} without the methods {missing}; expected one "
            f"of {sorted(known)} or an object with {required}."
        )
    return value


def needs_pilot(kernel: Any) -> bool:
    """Whether a kernel has parameters that are to be tuned."""
    return any(leaf is None for leaf in jax.tree.leaves(kernel, is_leaf=lambda x: x is None))


def resolve_schedule(schedule):
    """Return a function of the number of steps, an array, or a :class:`Surveyed` schedule."""
    if isinstance(schedule, str):
        if schedule in SURVEYED:
            return Surveyed(schedule)
        if schedule not in SCHEDULES:
            raise ValueError(
                f"Unknown `schedule` {schedule!r}; expected one of "
                f"{sorted([*SCHEDULES, *SURVEYED])}, a function or an array."
            )
        return SCHEDULES[schedule]
    return schedule if callable(schedule) else schedules.check_schedule(np.asarray(schedule))


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


def check_count(name: str, value: Any, expected: str = "a positive whole number") -> None:
    """Raise if a value is not a positive whole number."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < 1:
        raise ValueError(f"`{name}` is {value!r}, expected {expected}.")


def check_target(target_mcse: float) -> None:
    """Raise if a wanted error is not a positive number."""
    if not 0 < target_mcse < np.inf:
        raise ValueError(f"`target_mcse` is {target_mcse}, expected a positive number of nats.")


def seed_sequence(random_seed: Any) -> np.random.SeedSequence:
    """Return a fresh seed sequence for what users pass as ``random_seed``."""
    if isinstance(random_seed, np.random.SeedSequence):
        return np.random.SeedSequence(random_seed.entropy, spawn_key=random_seed.spawn_key)
    if isinstance(random_seed, np.random.Generator):
        return np.random.SeedSequence(random_seed.integers(2**63, size=4).tolist())
    try:
        return np.random.SeedSequence(random_seed)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`random_seed` is {random_seed!r}, expected a non-negative int, a sequence of them, "
            "a numpy SeedSequence or Generator, or None."
        ) from error

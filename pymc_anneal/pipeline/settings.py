"""Settings of a run: the arguments of the public functions, checked."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from pymc_anneal.adaptation.tuning import needs_pilot
from pymc_anneal.base.arguments import check_count, check_positive, check_target
from pymc_anneal.base.contracts import Transition
from pymc_anneal.execution.blocks import even_block
from pymc_anneal.execution.fingerprint import describe
from pymc_anneal.schedules.named import FromPilot, Schedule

# Values of the arguments ``steps=``, ``resample=``, ``nan=``, ``audit=`` and ``discrete=``.
Steps: TypeAlias = int | Literal["auto"]
Resample: TypeAlias = float | Literal["ess"] | None
OnNan: TypeAlias = Literal["raise", "reject"]
Audit: TypeAlias = Literal["auto", "levels", "off"]
Discrete: TypeAlias = Literal["auto", "sample"]
_Word = TypeVar("_Word", bound=str)

_MEANINGS: Mapping[str, Mapping[str, str]] = {
    "nan": {
        "raise": "a log likelihood that is NaN is an error",
        "reject": "it counts as zero likelihood",
    },
    "audit": {
        "auto": "what the model and the cost of its density allow",
        "levels": "multilevel splitting whatever it costs",
        "off": "nothing looks for what the run may have missed",
    },
    "discrete": {
        "auto": "discrete variables are summed out where that can be done exactly",
        "sample": "all of them are moved",
    },
}

# Smallest number of independent populations whose spread gives an error.
_MIN_POPULATIONS = 8
# Relative effective sample size of ``resample="ess"``; the usual value (Del Moral et al. 2006).
_DEFAULT_THRESHOLD = 0.5


@dataclass(frozen=True)
class Settings:
    """Settings that every kind of run has; by default without limits of time.

    Attributes
    ----------
    draws, chains : int
        Particles in each chain (at least), and independent chains.
    steps : int or "auto"
        Number of steps K.
    target_mcse : float
        Wanted Monte Carlo standard error of the log evidence, in nats.
    max_minutes : float
    cores, block_size : int or None
    schedule : array, function of a number of steps, or FromPilot
    max_step : float or None
        Largest step in beta.
    resample : float
        Relative effective sample size below which a population is resampled; 0: never.
    stops : tuple of float
        Temperatures that the schedule visits and at which positions are recorded.
    assumed_barrier : float
        Path length that sets how often particles are recorded if no pilot has measured it.
    reject_nan : bool
        Whether a log likelihood that is NaN counts as zero likelihood; otherwise it is an error.
    free_transition : bool
        Whether a run near to its reference may take proposals from the reference as transitions.
    audit : str
        What looks for parts of the posterior that the run may have missed.
    """

    draws: int
    chains: int
    steps: Steps = "auto"
    target_mcse: float = 0.1
    max_minutes: float = np.inf
    cores: int | None = None
    block_size: int | None = None
    schedule: Schedule = FromPilot("variational")
    max_step: float | None = None
    resample: float = 0.0
    stops: tuple[float, ...] = ()
    assumed_barrier: float = np.nan
    reject_nan: bool = False
    free_transition: bool = False
    audit: Audit = "auto"

    def __post_init__(self) -> None:
        for name in ("draws", "chains"):
            check_count(name, getattr(self, name))
        for name in ("cores", "block_size"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        if not (isinstance(self.steps, str) and self.steps == "auto"):
            check_count("steps", self.steps, 'a positive whole number or "auto"')
        check_target(self.target_mcse)
        check_positive("max_minutes", self.max_minutes, "a positive number of minutes")
        if self.max_step is not None:
            check_positive("max_step", self.max_step, "a step in beta above 0 and up to 1", 1)
        self._check_schedule()
        self._check_populations()

    def _check_schedule(self) -> None:
        if not isinstance(self.schedule, np.ndarray):
            return
        steps = len(self.schedule) - 1
        if self.steps not in ("auto", steps):
            raise ValueError(
                f"`steps` is {self.steps}, but the schedule has {steps} steps. Leave out `steps`."
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
        """Number of steps set by the user, or None."""
        if isinstance(self.schedule, np.ndarray):
            return len(self.schedule) - 1
        return None if self.steps == "auto" else int(self.steps)

    @property
    def block_draws(self) -> int:
        """Particles of each chain in a block: even blocks of at most about `block_size`."""
        return even_block(self.draws, self.chains, self.block_size)

    def fingerprint(self) -> dict[str, Any]:
        """Return the settings that determine the result of a run, by name."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "cores"}
        if callable(self.schedule):  # its name, and a schedule that it returns
            values["schedule"] = (describe(self.schedule), self.schedule(16))
        return values


def pilot_required(settings: Settings, transition: Transition) -> bool:
    """Whether schedule, number of steps or transition come from a pilot."""
    from_pilot = isinstance(settings.schedule, FromPilot)
    return from_pilot or needs_pilot(transition) or settings.fixed_steps is None


def check_word(argument: str, value: _Word) -> _Word:
    """Return the value of ``nan=``, ``audit=`` or ``discrete=``.

    Raises
    ------
    ValueError
        It is none of the words that the argument takes; their meanings are named.
    """
    meaning = _MEANINGS[argument]
    if value not in tuple(meaning):
        *others, last = (f'"{word}" ({text})' for word, text in meaning.items())
        raise ValueError(f"`{argument}` is {value!r}, expected {', '.join(others)} or {last}.")
    return value


def resolve_resample(resample: Resample) -> float:
    """Return the threshold on the relative effective sample size, 0 for no resampling.

    Raises
    ------
    ValueError
        The value is neither "ess", a number in (0, 1], nor None.
    """
    if resample is None:
        return 0.0
    if isinstance(resample, str) and resample == "ess":
        return _DEFAULT_THRESHOLD
    check_positive("resample", resample, 'a share of the particles up to 1, "ess", or None', 1)
    return float(resample)

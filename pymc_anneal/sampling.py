"""`sample_ais`: from a model to its evidence in one call.

Pilot (adaptive) -> trial (frozen, measures mixing) -> plan -> counted rounds (frozen) -> result.
"""

import os
import time

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from typing import Any

import jax
import numpy as np
import pymc as pm
import xarray as xr

import pymc_anneal

from pymc_anneal import schedules
from pymc_anneal.base import Path, Transition
from pymc_anneal.diagnostics import discrepancies, judge, log_weight_variance
from pymc_anneal.engine import Block, NanDensityError, Stats, run_blocks
from pymc_anneal.estimators import ais
from pymc_anneal.model import CompiledModel, compile_model
from pymc_anneal.paths import GeometricPath
from pymc_anneal.pilot import Pilot, run_pilot
from pymc_anneal.plan import Plan, effective_length, make_plan, refine, trial_steps
from pymc_anneal.progress import ProgressDisplay
from pymc_anneal.results import Run, combined_log_weights, dataset, resample, to_container
from pymc_anneal.transitions import (
    HMC,
    MALA,
    PartialRefreshmentHMC,
    RandomWalkMetropolis,
    TunedTransition,
)

__all__ = ["sample_ais"]

PATHS: dict[str, Callable[..., Path]] = {"geometric": GeometricPath}
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
_MAX_TRIALS = 4
_TRUSTED_VARIANCE = 3.0  # above it a trial's variance is itself too rough to plan by
_MAX_GROWTH = 8.0  # of the number of steps from one round to the next
_DEFAULT_BLOCK = 512


def sample_ais(
    draws: int = 1000,
    *,
    chains: int = 4,
    steps: int | str = "auto",
    target_mcse: float = 0.1,
    path: str | Path = "geometric",
    schedule: str | Sequence[float] | np.ndarray | Callable[[int], np.ndarray] = "variational",
    max_step: float | None = None,
    transition: str | Transition = "hmc",
    max_rounds: int = 3,
    cores: int | None = None,
    block_size: int | None = None,
    random_seed: Any = None,
    progressbar: bool = True,
    model: pm.Model | CompiledModel | None = None,
    idata_kwargs: Mapping[str, Any] | None = None,
) -> Any:
    """Estimate the marginal likelihood of a model by annealed importance sampling.

    Particles start at prior draws and are moved to the posterior while the likelihood is raised
    to a power beta that rises from 0 to 1; the average of their weights is an unbiased estimate
    of the marginal likelihood (Neal 2001). A pilot and a trial, which are not counted, tune the
    transition, lay out the schedule and plan the number of steps; in the counted run nothing
    adapts.

    Parameters
    ----------
    draws
        Posterior draws in each chain, and the least number of particles in each chain.
    chains
        Independent populations of particles.
    steps
        Number of annealing steps K, or "auto": planned for ``target_mcse``.
    target_mcse
        Wanted Monte Carlo standard error of the log evidence, in nats.
    path
        "geometric" (power posteriors), or an object with the methods of
        :class:`~pymc_anneal.base.Path`.
    schedule
        "variational" (Kiwaki 2015; from the pilot), "linear", "power", "geometric", "sigmoid",
        "salakhutdinov_murray", a function from a number of steps to a schedule, or an array
        that increases from 0 to 1.
    max_step
        Largest step in beta: decelerates the variational schedule (Kiwaki 2015, Algorithm 3).
    transition
        "hmc", "partial_refreshment", "mala", "random_walk", or a kernel; parameters of a kernel
        that are None are tuned by the pilot.
    max_rounds
        If the error misses the target, or cannot be trusted, another round with more steps
        follows, up to this number of rounds. All rounds count. A single round is exactly
        unbiased; the decision to go on depends on the round before, which makes the average
        over several very slightly less than that.
    cores
        Worker threads. Default: the processors available.
    block_size
        Particles annealed at a time by a worker. The result depends on it (as it does on the
        seed), and not on the number of workers.
    random_seed
        Seed: int, sequence of int, numpy SeedSequence or Generator. The same seed gives the
        same result.
    progressbar
        Whether to show progress.
    model
        The model, or the result of :func:`compile_model`. Default: the model on the context
        stack.
    idata_kwargs
        ``log_likelihood=True`` adds the pointwise log likelihood of the posterior draws,
        ``prior=True`` as many prior draws; ``coords`` and ``dims`` extend the model's.

    Returns
    -------
    InferenceData or DataTree
        Groups ``posterior``, ``sample_stats``, ``annealing``, ``evidence``, ``observed_data``
        and ``constant_data``; read the evidence with :func:`log_evidence`. After Ctrl-C during
        the counted run, the particles that were finished.

    Raises
    ------
    TypeError, ValueError, NotImplementedError
        An argument makes no sense, the model cannot be annealed (see :func:`compile_model`), or
        its log density is NaN somewhere; the message says where and what to do.

    References
    ----------
    Neal (2001), Annealed importance sampling. Kiwaki (2015), Variational optimization of
    annealing schedules.

    Examples
    --------
    >>> with model:
    ...     idata = pymc_anneal.sample_ais()
    >>> pymc_anneal.log_evidence(idata)
    """
    options = _Options(
        draws=draws,
        chains=chains,
        steps=steps,
        target_mcse=target_mcse,
        max_rounds=max_rounds,
        cores=cores,
        block_size=block_size,
        schedule=_resolve_schedule(schedule),
        max_step=max_step,
        idata_kwargs=dict(idata_kwargs or {}),
    )
    kernel = _resolve(transition, TRANSITIONS, "transition", Transition)
    start = time.perf_counter()
    compiled = model if isinstance(model, CompiledModel) else compile_model(model)
    the_path = _resolve(path, PATHS, "path", Path, compiled.log_terms)
    with ProgressDisplay(progressbar) as display:
        session = _Session(compiled, the_path, options, display, _seed_sequence(random_seed))
        try:
            outcome = _run(session, kernel)
        except NanDensityError as error:
            raise ValueError(compiled.explain_nan(error.position)) from error
    return _result(session, outcome, time.perf_counter() - start)


@dataclass(frozen=True)
class _Options:
    """The arguments of a run, checked."""

    draws: int
    chains: int
    steps: int | str
    target_mcse: float
    max_rounds: int
    cores: int | None
    block_size: int | None
    schedule: "Callable[[int], np.ndarray] | np.ndarray | None"
    max_step: float | None
    idata_kwargs: dict[str, Any]

    def __post_init__(self):
        for name in ("draws", "chains", "max_rounds"):
            _check_count(name, getattr(self, name))
        for name in ("cores", "block_size"):
            if getattr(self, name) is not None:
                _check_count(name, getattr(self, name))
        if self.steps != "auto":
            _check_count("steps", self.steps, 'a positive whole number or "auto"')
        if not 0 < self.target_mcse < np.inf:
            raise ValueError(
                f"`target_mcse` is {self.target_mcse}, expected a positive number of nats."
            )
        if isinstance(self.schedule, np.ndarray) and self.steps not in (
            "auto",
            len(self.schedule) - 1,
        ):
            raise ValueError(
                f"`steps` is {self.steps}, but the schedule has {len(self.schedule) - 1} steps. "
                "Leave out `steps`."
            )
        known = {"log_likelihood", "prior", "coords", "dims"}
        unknown = set(self.idata_kwargs) - known
        if unknown:
            raise ValueError(
                f"Unknown `idata_kwargs` {sorted(unknown)}; expected some of {sorted(known)}."
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
        wanted = max(1, (self.block_size or _DEFAULT_BLOCK) // self.chains)
        return -(-self.draws // -(-self.draws // wanted))


@dataclass(frozen=True)
class _Session:
    """What all stages of a run share."""

    compiled: CompiledModel
    path: Path
    options: _Options
    display: ProgressDisplay
    seed: np.random.SeedSequence

    def blocks(self, transition, betas, count: int, seed: np.random.SeedSequence) -> list[Block]:
        """Return blocks of particles, each started from its own prior draws."""
        chains, m = self.options.chains, self.options.block_draws
        blocks = []
        for child in seed.spawn(count):
            seed_prior, seed_run = child.spawn(2)
            position = self.compiled.sample_prior(seed_prior, chains * m)
            blocks.append(Block(self.path, transition, betas, position, chains, seed_run))
        return blocks

    def run(self, name: str, blocks: list[Block]) -> "_Round":
        """Anneal blocks on the workers."""
        steps = len(blocks[0].betas) - 1
        self.display.start_round(name, len(blocks), steps)
        begin = time.perf_counter()
        with ThreadPoolExecutor(self.options.cores or _processors()) as executor:
            results = run_blocks(blocks, executor, self.display.block)
        seconds = time.perf_counter() - begin
        return _Round(
            betas=blocks[0].betas,
            log_weight=np.concatenate([r.log_weight for r in results], axis=1),
            position=np.concatenate([r.position for r in results], axis=1),
            stats=merge_stats([r.stats for r in results]),
            interrupted=len(results) < len(blocks),
            seconds=seconds,
        )


@dataclass(frozen=True)
class _Round:
    betas: np.ndarray
    log_weight: np.ndarray
    position: np.ndarray
    stats: Stats
    interrupted: bool
    seconds: float

    @property
    def steps(self) -> int:
        return len(self.betas) - 1

    @property
    def particles(self) -> int:
        return self.log_weight.size


@dataclass(frozen=True)
class _Outcome:
    pilot: Pilot | None
    plan: Plan | None
    rounds: list[_Round]
    transition: Transition
    trials: list[_Round] = field(default_factory=list)

    @property
    def log_weight(self) -> np.ndarray:
        weights = [r.log_weight for r in self.rounds]
        return combined_log_weights(weights, [r.steps * r.particles for r in self.rounds])


def _run(session: _Session, kernel: Transition) -> _Outcome:
    options = session.options
    seed_pilot, seed_trial, seed_rounds = session.seed.spawn(3)
    pilot, trials, plan = None, [], None
    transition, steps, particles = kernel, options.fixed_steps, options.draws * options.chains
    if steps is None or options.schedule is None or _has_free_parameters(kernel):
        pilot = _pilot(session, kernel, seed_pilot)
        transition = pilot.transition
    if steps is None:
        trials = _trials(session, pilot, transition, seed_trial)
        plan = _plan(session, pilot, trials[-1])
        steps, particles = plan.steps, plan.particles
    rounds: list[_Round] = []
    length = None if pilot is None else (pilot.betas, effective_length(pilot))
    for number, seed in enumerate(seed_rounds.spawn(options.max_rounds), start=1):
        betas = _schedule(options, steps, length)
        per_block = options.chains * options.block_draws
        blocks = session.blocks(transition, betas, -(-particles // per_block), seed)
        name = "Annealing" if number == 1 else f"Round {number}"
        rounds.append(session.run(name, blocks))
        growth = _growth(options, rounds[-1])
        if growth is None:
            break
        steps = int(np.ceil(steps * growth))
        if pilot is not None:
            d = discrepancies(rounds[-1].stats, rounds[-1].particles)
            length = (betas, refine(betas, d, pilot))
    return _Outcome(pilot, plan, rounds, transition, trials)


def _pilot(session: _Session, kernel: Transition, seed: np.random.SeedSequence) -> Pilot:
    seed_prior, seed_run = seed.spawn(2)
    n = max(session.options.chains * session.options.block_draws, 256)
    position = session.compiled.sample_prior(seed_prior, n)
    session.display.start_pilot()
    return run_pilot(session.path, kernel, position, seed_run, session.display.pilot)


def _trials(session: _Session, pilot: Pilot, transition, seed) -> list[_Round]:
    """Run one block until its log weights are even enough to plan by."""
    steps, trials = trial_steps(pilot), []
    length = (pilot.betas, effective_length(pilot))
    for child in seed.spawn(_MAX_TRIALS):
        betas = _schedule(session.options, steps, length)
        trials.append(session.run("Trial", session.blocks(transition, betas, 1, child)))
        variance = log_weight_variance(trials[-1].log_weight)
        if variance <= _TRUSTED_VARIANCE:
            break
        steps = int(np.ceil(steps * min(variance, _MAX_GROWTH)))
    return trials


def _plan(session: _Session, pilot: Pilot, trial: _Round) -> Plan:
    options = session.options
    return make_plan(
        variance=log_weight_variance(trial.log_weight),
        steps=trial.steps,
        fixed_steps=options.fixed_steps,
        particles=options.draws * options.chains,
        target_mcse=options.target_mcse,
        log_reference_mass=pilot.log_reference_mass,
        seconds=trial.seconds / (trial.steps * trial.particles),
    )


def _schedule(options: _Options, steps: int, length) -> np.ndarray:
    if isinstance(options.schedule, np.ndarray):
        return options.schedule
    if options.schedule is not None:
        return schedules.check_schedule(options.schedule(steps))
    return schedules.variational_schedule(*length, steps, max_step=options.max_step)


def _growth(options: _Options, finished: _Round) -> float | None:
    """Return by how much to lengthen the next round, None where none is needed or possible."""
    fixed = options.fixed_steps is not None
    if fixed or finished.interrupted:
        return None
    verdict = judge(
        finished.log_weight, target_mcse=options.target_mcse, steps=finished.steps
    )
    if verdict.judgement == "trust":
        return None
    variance = log_weight_variance(finished.log_weight)
    return float(np.clip(variance / 0.25, 2.0, _MAX_GROWTH))


def merge_stats(parts: Sequence[Stats]) -> Stats:
    """Combine the statistics of blocks, of equal size, of the same chains."""
    log_w = np.stack([p.log_w for p in parts])
    total = np.logaddexp.reduce(log_w)
    with np.errstate(invalid="ignore"):
        share = np.nan_to_num(np.exp(log_w - total))

    def weighted(name: str) -> np.ndarray:
        return (share * np.stack([getattr(p, name) for p in parts])).sum(axis=0)

    def log_sum(name: str) -> np.ndarray:
        return np.logaddexp.reduce([getattr(p, name) for p in parts])

    return Stats(
        log_w=total,
        log_w_squared=log_sum("log_w_squared"),
        log_wu_squared=log_sum("log_wu_squared"),
        velocity=weighted("velocity"),
        velocity_squared=weighted("velocity_squared"),
        accept_rate=np.mean([p.accept_rate for p in parts], axis=0),
        nan=np.sum([p.nan for p in parts], axis=0),
    )


def _result(session: _Session, outcome: _Outcome, seconds: float) -> Any:
    compiled, options = session.compiled, session.options
    last, log_weight = outcome.rounds[-1], outcome.log_weight
    if not np.isfinite(log_weight).any(axis=1).all():
        raise ValueError(
            "All weights of a chain are zero: no particle reached a point of non-zero "
            "likelihood. Take more draws or a prior nearer to the data."
        )
    position = np.concatenate([r.position for r in outcome.rounds], axis=1)
    rng = np.random.default_rng(session.seed.spawn(1)[0])
    index = np.stack([resample(row, options.draws, rng) for row in log_weight])
    drawn = np.take_along_axis(position, index[:, :, None], axis=1)
    pilot = outcome.pilot
    verdict = judge(
        log_weight,
        target_mcse=options.target_mcse,
        steps=last.steps,
        pilot=None if pilot is None else (pilot.log_z, pilot.log_z_mcse),
        interrupted=last.interrupted,
    )
    run = Run(
        betas=last.betas,
        log_weight=log_weight,
        position=position,
        stats=last.stats,
        stats_particles=last.log_weight.shape[1],
        step_size=_step_sizes(outcome.transition, last.betas),
        verdict=verdict,
        numbers=_numbers(compiled, outcome, seconds),
        words=_words(session, outcome),
    )
    attrs = {
        "inference_library": "pymc_anneal",
        "inference_library_version": pymc_anneal.__version__,
        "sampling_time": seconds,
    }
    return to_container(run, _posterior(session, drawn), _extra_groups(session, drawn), attrs)


def _numbers(compiled: CompiledModel, outcome: _Outcome, seconds: float) -> dict[str, float]:
    last, plan = outcome.rounds[-1], outcome.plan
    predicted = discrepancies(last.stats, last.particles).sum()
    return {
        "steps": last.steps,
        "particles": outcome.log_weight.size,
        "rounds": len(outcome.rounds),
        "log_weight_variance": log_weight_variance(last.log_weight),
        "perfect_mixing_variance": float(predicted),
        "planned_mcse": plan.predicted_mcse if plan else np.nan,
        "pilot_log_evidence": outcome.pilot.log_z if outcome.pilot else np.nan,
        "log_prior_mass": compiled.log_prior_mass,
        "log_prior_mass_mcse": compiled.log_prior_mass_mcse,
        "seconds": seconds,
    }


def _words(session: _Session, outcome: _Outcome) -> dict[str, str]:
    options = session.options
    kernel = outcome.transition
    kernel = kernel.kernel if isinstance(kernel, TunedTransition) else kernel
    rounds = "; ".join(
        f"round {i}: {r.steps} steps, {r.particles} particles, {ais(r.log_weight).log_evidence:.4f}"
        f" +- {ais(r.log_weight).mcse:.2g}"
        for i, r in enumerate(outcome.rounds, start=1)
    )
    return {
        "path": type(session.path).__name__,
        "schedule": _schedule_name(options.schedule),
        "transition": type(kernel).__name__,
        "reference": "prior",
        "rounds": rounds,
        "notes": " ".join(session.compiled.notes),
        "versions": f"pymc_anneal {pymc_anneal.__version__}, pymc {pm.__version__}, "
        f"jax {jax.__version__}",
    }


def _schedule_name(schedule) -> str:
    if schedule is None:
        return "variational"
    return "array" if isinstance(schedule, np.ndarray) else getattr(schedule, "__name__", "custom")


def _step_sizes(transition: Transition, betas: np.ndarray) -> np.ndarray:
    """Step size of the transition at each temperature; NaN where it has none."""
    if isinstance(transition, TunedTransition):
        sizes = np.asarray(transition.kernel.step_size)
        return np.interp(betas[1:], np.asarray(transition.betas), np.broadcast_to(sizes, len(transition.betas)))
    return np.full(len(betas) - 1, float(getattr(transition, "step_size", None) or np.nan))


def _posterior(session: _Session, drawn: np.ndarray) -> xr.Dataset:
    values = session.compiled.constrain(drawn.reshape(-1, drawn.shape[-1]))
    return _model_dataset(session, _by_chain(values, drawn.shape[:2]))


def _by_chain(values: dict[str, np.ndarray], shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    return {name: v.reshape(*shape, *v.shape[1:]) for name, v in values.items()}


def _model_dataset(session: _Session, values, leading=("chain", "draw")) -> xr.Dataset:
    coords, dims = session.compiled.coords_and_dims()
    extra = session.options.idata_kwargs
    return dataset(
        values,
        leading,
        {**coords, **(extra.get("coords") or {})},
        {**dims, **(extra.get("dims") or {})},
    )


def _extra_groups(session: _Session, drawn: np.ndarray) -> dict[str, xr.Dataset]:
    compiled, wanted = session.compiled, session.options.idata_kwargs
    groups = {
        "observed_data": _model_dataset(session, compiled.observed_data(), ()),
        "constant_data": _model_dataset(session, compiled.constant_data(), ()),
    }
    if wanted.get("log_likelihood"):
        flat = drawn.reshape(-1, drawn.shape[-1])
        values = compiled.pointwise_log_likelihood(flat)
        groups["log_likelihood"] = _model_dataset(session, _by_chain(values, drawn.shape[:2]))
    if wanted.get("prior"):
        draws = compiled.sample_prior(session.seed.spawn(1)[0], drawn.shape[0] * drawn.shape[1])
        values = compiled.constrain(draws)
        groups["prior"] = _model_dataset(session, _by_chain(values, drawn.shape[:2]))
    return groups


def _resolve(value: Any, known: Mapping[str, Callable], name: str, contract: type, *args) -> Any:
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


def _resolve_schedule(schedule):
    """Return a function of the number of steps, an array, or None for the variational one."""
    if isinstance(schedule, str):
        if schedule == "variational":
            return None
        if schedule not in SCHEDULES:
            raise ValueError(
                f"Unknown `schedule` {schedule!r}; expected one of "
                f"{sorted([*SCHEDULES, 'variational'])}, a function or an array."
            )
        return SCHEDULES[schedule]
    return schedule if callable(schedule) else schedules.check_schedule(np.asarray(schedule))


def _has_free_parameters(kernel: Transition) -> bool:
    values = (getattr(kernel, f.name) for f in fields(kernel)) if hasattr(kernel, "step_size") else ()
    return any(v is None for v in values)


def _check_count(name: str, value: Any, expected: str = "a positive whole number") -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < 1:
        raise ValueError(f"`{name}` is {value!r}, expected {expected}.")


def _seed_sequence(random_seed: Any) -> np.random.SeedSequence:
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


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

"""`sample_ais` for restricted Boltzmann machines: the partition function with its error."""

import time

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from pymc_anneal._version import __version__
from pymc_anneal.annealing.block import Block
from pymc_anneal.annealing.resampling import equal_weights
from pymc_anneal.annealing.step_statistics import discrepancies
from pymc_anneal.base.arguments import check_count, check_target, resolve
from pymc_anneal.base.contracts import Transition
from pymc_anneal.base.seeds import seed_sequence
from pymc_anneal.evidence.diagnostics import assess, log_weight_variance
from pymc_anneal.execution.blocks import AnnealedRun, anneal, even_block, spaced_rungs
from pymc_anneal.execution.progress import ProgressDisplay
from pymc_anneal.rbm.exact import check_small, sample_exact
from pymc_anneal.rbm.model import RBM, reference_log_partition_function, uniform_reference
from pymc_anneal.rbm.moment_spline import MomentSpline
from pymc_anneal.rbm.paths import GeometricRBMPath, SplineRBMPath
from pymc_anneal.rbm.transitions import BlockedGibbs, PerfectTransition
from pymc_anneal.results.container import Run, dataset, library_attrs, to_container
from pymc_anneal.schedules.fixed import linear_schedule
from pymc_anneal.schedules.named import FromPilot, resolve_schedule
from pymc_anneal.schedules.validate import check_schedule

TRANSITIONS = {"gibbs": BlockedGibbs, "perfect": PerfectTransition}


_BARRIER = 12.0  # not known without a pilot: many rungs rather than few


_PILOT_DRAWS, _PILOT_STEPS = 100, 1000  # Kiwaki (2015), section 7


def sample_ais(
    model: RBM,
    draws: int = 250,
    *,
    chains: int = 4,
    steps: int = 10_000,
    path: str | GeometricRBMPath | SplineRBMPath = "geometric",
    schedule: str | Sequence[float] | np.ndarray | Callable[[int], np.ndarray] = "variational",
    max_step: float | None = None,
    reference: str | RBM = "uniform",
    transition: str | Any = "gibbs",
    direction: str = "forward",
    target_mcse: float = 0.1,
    cores: int | None = None,
    block_size: int | None = None,
    random_seed: Any = None,
    progressbar: bool = True,
) -> Any:
    """Estimate the log partition function of a machine by annealed importance sampling.

    Particles start at draws of a reference with independent units, whose partition function is
    known, and are moved to the machine along a path of machines (Salakhutdinov & Murray 2008;
    Grosse, Maddison & Salakhutdinov 2013).

    Parameters
    ----------
    model
        The machine.
    draws
        Particles in each chain.
    chains
        Independent populations of particles.
    steps
        Number of annealing steps K.
    path
        "geometric", or a path whose first machine is the reference and whose last is the model:
        what :func:`moment_spline` returns, or a :class:`SplineRBMPath`.
    schedule
        "variational" (Kiwaki 2015) or "optimal_binned" (Grosse et al. 2013), from a pilot of 100
        particles and 1,000 linear steps; "linear", "salakhutdinov_murray", "power", "geometric",
        "sigmoid"; a function from a number of steps to a schedule; or an array that increases
        from 0 to 1.
    max_step
        Largest step in beta: decelerates the variational schedule (Kiwaki 2015, Algorithm 3).
    reference
        "uniform", or a machine without weights, such as :func:`base_rate_reference` gives.
    transition
        "gibbs", "perfect" (machines with a layer of at most 25 units), or a kernel.
    direction
        "forward", or "reverse" (machines with a layer of at most 25 units): from exact draws of
        the machine to the reference. Forward estimates of log Z are too low on average, reverse
        ones too high, so that the two enclose it (Grosse, Ghahramani & Adams 2015).
    target_mcse
        Error of the log partition function, in nats, above which the verdict asks for more steps.
    cores
        Worker threads. Default: the processors available.
    block_size
        Particles annealed at a time by a worker; default 512.
    random_seed
        Seed: int, sequence of int, numpy SeedSequence or Generator.
    progressbar
        Whether to show progress.

    Returns
    -------
    InferenceData or DataTree
        As from :func:`pymc_anneal.sample_ais`: groups ``posterior`` (configurations
        ``visible``; of a reverse run ``prior``, the reference), ``sample_stats``, ``annealing``
        and ``evidence``, whose log evidence is the log partition function; read it with
        :func:`pymc_anneal.log_evidence`.

    Raises
    ------
    TypeError, ValueError
        An argument makes no sense; the message says what was found and what was expected.

    Examples
    --------
    >>> result = rbm.sample_ais(model, steps=10_000)
    >>> pymc_anneal.log_evidence(result)
    """
    begin = time.perf_counter()
    counts = {"draws": draws, "chains": chains, "steps": steps}
    optional = {"cores": cores, "block_size": block_size}
    for name, value in (counts | {k: v for k, v in optional.items() if v is not None}).items():
        check_count(name, value)
    check_target(target_mcse)
    if direction not in ("forward", "reverse"):
        raise ValueError(f'`direction` is {direction!r}, expected "forward" or "reverse".')
    reverse = direction == "reverse"
    if reverse:
        check_small(model)
    base = _reference(reference, model)
    with ProgressDisplay(progressbar) as display:
        setup = _Setup(
            reference=base,
            path=_path(path, base, model),
            transition=_transition(transition, model),
            chains=chains,
            block_size=block_size,
            cores=cores,
            display=display,
        )
        seed_pilot, seed_run, seed_draws = seed_sequence(random_seed).spawn(3)
        pilot = partial(_pilot, setup, seed_pilot)
        betas = _schedule(resolve_schedule(schedule), steps, max_step, pilot)
        start = partial(sample_exact, model) if reverse else setup.reference_draws
        betas = betas[::-1] if reverse else betas
        finished = setup.run("Annealing", betas, draws, seed_run, start)
    words = {
        "path": type(setup.path).__name__,
        "schedule": schedule if isinstance(schedule, str) else "array",
        "transition": type(setup.transition).__name__,
        "reference": reference if isinstance(reference, str) else "RBM",
    }
    seconds = time.perf_counter() - begin
    return _result(setup, finished, target_mcse, words, seed_draws, seconds)


@dataclass(frozen=True)
class _Setup:
    """What pilot and counted run share."""

    reference: RBM
    path: Any
    transition: Any
    chains: int
    block_size: int | None
    cores: int | None
    display: ProgressDisplay

    def reference_draws(self, draws: int, random_seed: Any) -> np.ndarray:
        """Draw from the reference."""
        return self.reference.sample(draws, steps=1, random_seed=random_seed)

    def run(
        self,
        name: str,
        betas: np.ndarray,
        draws: int,
        seed: np.random.SeedSequence,
        start: Callable[[int, Any], np.ndarray],
    ) -> AnnealedRun:
        """Anneal at least so many particles in each chain."""
        size = even_block(draws, self.chains, self.block_size)
        rungs, blocks = spaced_rungs(len(betas) - 1, _BARRIER), []
        for child in seed.spawn(-(-draws // size)):
            seed_start, seed_run = child.spawn(2)
            position = start(self.chains * size, seed_start)
            block = Block(self.path, self.transition, betas, position, self.chains, seed_run, rungs)
            blocks.append(block)
        return anneal(blocks, self.display, name, self.cores)


def _reference(reference: str | RBM, model: RBM) -> RBM:
    if isinstance(reference, str):
        if reference != "uniform":
            raise ValueError(f'Unknown `reference` {reference!r}; expected "uniform" or an RBM.')
        return uniform_reference(model.n_visible, model.n_hidden, model.weights.dtype)
    if not isinstance(reference, RBM):
        raise TypeError(
            f'`reference` is a {type(reference).__name__}, expected "uniform" or an RBM.'
        )
    if reference.weights.shape != model.weights.shape or np.any(reference.weights):
        raise ValueError(
            f"`reference` has weights of shape {reference.weights.shape}, "
            f"{np.count_nonzero(reference.weights)} of them not zero; expected a machine of shape "
            f"{model.weights.shape} without weights, whose partition function is known."
        )
    return reference.astype(model.weights.dtype)


def _path(path: Any, reference: RBM, model: RBM) -> Any:
    if isinstance(path, MomentSpline):
        path = path.path
    if not isinstance(path, str):
        if not hasattr(path, "model_at"):
            raise TypeError(
                f'`path` is a {type(path).__name__}, expected "geometric", a path of machines or '
                "what `moment_spline` returns."
            )
        _check_end(path, 0.0, reference, "`reference`")
        _check_end(path, 1.0, model, "`model`")
        return path
    if path != "geometric":
        raise ValueError(
            f'Unknown `path` {path!r}; expected "geometric", a path of machines or what '
            "`moment_spline` returns."
        )
    if np.any(reference.hidden_bias):
        return SplineRBMPath.through(np.array([0.0, 1.0]), [reference, model])
    return GeometricRBMPath(reference.visible_bias, model)


def _check_end(path: Any, beta: float, expected: RBM, name: str) -> None:
    found = jax.tree.map(np.asarray, path.model_at(beta))
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    if not all(a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=1e-4) for a, b in pairs):
        raise ValueError(
            f"The machine of `path` at beta = {beta:g} is not {name}: its weights would be those "
            "of another ratio of partition functions. Pass the machines that the path was made of."
        )


def _transition(transition: Any, model: RBM) -> Any:
    kernel = resolve(transition, TRANSITIONS, "transition", Transition)
    if isinstance(kernel, PerfectTransition):
        check_small(model)
    return kernel


def _schedule(
    schedule: Callable[[int], np.ndarray] | np.ndarray | FromPilot,
    steps: int,
    max_step: float | None,
    pilot: Callable[[], AnnealedRun],
) -> np.ndarray:
    if isinstance(schedule, np.ndarray):
        return schedule
    if not isinstance(schedule, FromPilot):
        return check_schedule(schedule(steps))
    surveyed = pilot()
    length = np.sqrt(discrepancies(surveyed.stats, surveyed.particles))
    return schedule.lay_out(surveyed.betas, length, steps, max_step)


def _pilot(setup: _Setup, seed: np.random.SeedSequence) -> AnnealedRun:
    draws = -(-_PILOT_DRAWS // setup.chains)
    betas = linear_schedule(_PILOT_STEPS)
    return setup.run("Pilot", betas, draws, seed, setup.reference_draws)


def _result(
    setup: _Setup,
    finished: AnnealedRun,
    target_mcse: float,
    words: dict[str, str],
    seed: np.random.SeedSequence,
    seconds: float,
) -> Any:
    chains, particles = finished.log_weight.shape
    rng = np.random.default_rng(seed)
    drawn = equal_weights(finished.position, finished.log_weight, particles, rng)
    visible = drawn.astype(np.int8)
    verdict = assess(
        finished.log_weight,
        target_mcse=target_mcse,
        steps=finished.steps,
        interrupted=finished.interrupted,
    )
    run = Run(
        betas=finished.betas,
        log_weight=finished.log_weight,
        round=np.ones(particles, dtype=int),
        position=finished.position,
        stats=finished.stats,
        stats_particles=particles,
        step_size=np.full(finished.steps, np.nan),
        verdict=verdict,
        numbers={
            "steps": finished.steps,
            "particles": finished.particles,
            "log_weight_variance": log_weight_variance(finished.log_weight),
            "perfect_mixing_variance": float(
                discrepancies(finished.stats, finished.particles).sum()
            ),
            "seconds": seconds,
        },
        words=words | {"versions": f"pymc_anneal {__version__}, jax {jax.__version__}"},
        ladder=finished.ladder,
        rungs=finished.rungs,
        log_reference=reference_log_partition_function(setup.reference),
    )
    end = "posterior" if finished.betas[-1] == 1 else "prior"
    draws = {end: dataset({"visible": visible}, ("chain", "draw"))}
    return to_container(run, draws, {}, library_attrs())

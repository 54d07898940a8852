"""`sample_ais` for restricted Boltzmann machines: the log partition function with its error."""

import os
import time

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, Literal

import jax
import numpy as np

from numpy.typing import ArrayLike

from pymc_anneal.base.arguments import resolve
from pymc_anneal.base.contracts import Transition
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import RandomSeed
from pymc_anneal.evidence.ais import highest_log_evidence
from pymc_anneal.evidence.witness import Witness
from pymc_anneal.execution.checkpoint import Checkpoint
from pymc_anneal.pipeline.result import build_result
from pymc_anneal.pipeline.reverse_start import ReverseStart, check_not_resampled
from pymc_anneal.pipeline.run import Stages, run_candidate
from pymc_anneal.pipeline.session import open_session
from pymc_anneal.pipeline.settings import (
    Resample,
    Settings,
    Steps,
    pilot_required,
    resolve_resample,
)
from pymc_anneal.rbm.exact import check_small
from pymc_anneal.rbm.mean_field import mean_field_bound
from pymc_anneal.rbm.model import RBM, uniform_reference
from pymc_anneal.rbm.moment_spline import MomentSpline
from pymc_anneal.rbm.paths import GeometricRBMPath, RBMPath
from pymc_anneal.rbm.reverse_start import resolve_reverse
from pymc_anneal.rbm.spline_path import SplineRBMPath
from pymc_anneal.rbm.target import RBMTarget, run_linear_pilot
from pymc_anneal.rbm.transitions import BlockedGibbs, PerfectTransition
from pymc_anneal.schedules.named import Schedule, ScheduleLike, resolve_schedule

TRANSITIONS: Mapping[str, Callable[[], Transition]] = {
    "gibbs": BlockedGibbs,
    "perfect": PerfectTransition,
}
# Number of steps by default.
_STEPS = 10_000
# Path length assumed for the records of a run without a pilot: RBMs are far from their reference.
_ASSUMED_BARRIER = 12.0
# Largest difference of parameters between the ends of a path and the RBMs it should connect.
_TOLERANCE = 1e-4
# Nats by which a bound may exceed an exact estimate: both are sums of thousands of rounded terms,
# and the bound of independent units is log Z itself.
_ROUNDING = 1e-3


def sample_ais(
    model: RBM,
    draws: int = 250,
    *,
    chains: int = 4,
    steps: Steps | None = None,
    target_mcse: float = 0.1,
    path: Literal["geometric"] | MomentSpline | RBMPath = "geometric",
    reference: Literal["uniform"] | RBM = "uniform",
    schedule: ScheduleLike = "variational",
    max_step: float | None = None,
    transition: Literal["gibbs", "perfect"] | Transition = "gibbs",
    direction: Literal["forward", "reverse"] = "forward",
    reverse_from: ArrayLike | Literal["draws"] | None = None,
    resample: Resample = None,
    max_minutes: float = np.inf,
    cores: int | None = None,
    block_size: int | None = None,
    executor: Executor | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> Any:
    """Estimate the log partition function of an RBM by annealed importance sampling.

    Particles start at draws of a reference with independent units, whose partition function is
    known, and are moved to the RBM along a path of RBMs (Salakhutdinov & Murray 2008; Grosse,
    Maddison & Salakhutdinov 2013).

    Parameters
    ----------
    model : RBM
        The target.
    draws : int
        Smallest number of particles in each chain.
    chains : int
        Independent groups of particles.
    steps : int or "auto", optional
        Number of annealing steps K; default: 10,000, or those of a schedule given as an array.
        "auto": planned for ``target_mcse`` by a trial. Weights do not show that Gibbs sampling
        mixes slowly: "auto" may plan too few steps for a hard RBM.
    target_mcse : float
        Wanted Monte Carlo standard error of the log partition function, in nats.
    path : "geometric", MomentSpline or RBMPath
        "geometric", or a path from the reference to the model: the result of
        :func:`moment_spline`, a :class:`SplineRBMPath`, or a path derived from :class:`RBMPath`.
    reference : "uniform" or RBM
        "uniform", or an RBM with W = 0, such as :func:`base_rate_reference` returns.
    schedule : str, array or callable
        "variational" (Kiwaki 2015) or "optimal_binned" (Grosse et al. 2013), from a pilot of 100
        particles and 1,000 linear steps; otherwise as for :func:`pymc_anneal.sample_ais`.
    max_step : float, optional
        Largest step in beta: decelerates the variational schedule (Kiwaki 2015, Algorithm 3).
    transition : {"gibbs", "perfect"} or Transition
        "gibbs"; "perfect" for RBMs with a layer of at most 25 units; or a kernel.
    direction : {"forward", "reverse"}
        "reverse", for RBMs with a layer of at most 25 units: from exact draws of the RBM to the
        reference. Forward estimates of log Z are too low on average and reverse ones too high, so
        that the two enclose it (Grosse, Ghahramani & Adams 2015).
    reverse_from : array_like, shape (n, n_visible), or "draws", optional
        Runs from the RBM back to the reference after the forward run, which start at these data
        after a tenth as many Gibbs sweeps as there are steps (at least 100): a stochastic upper
        bound on log Z, Bennett's acceptance ratio of both directions as the estimate, and a
        verdict from both. From exact draws of the RBM (:func:`sample_exact`) the bound holds in
        expectation. From training data it holds if forward runs do not end near them more often
        than the RBM generates them (Burda, Grosse & Salakhutdinov 2015); if the RBM puts its mass
        elsewhere, the directions contradict each other and the verdict says so. "draws": those of
        the run, after further moves, which cannot show what all of them missed.
    resample, max_minutes, cores, block_size, executor, checkpoint
        As for :func:`pymc_anneal.sample_ais`; runs that are reversed cannot be resampled.
    random_seed, progressbar
        As for :func:`pymc_anneal.sample_ais`.

    Returns
    -------
    InferenceData or DataTree
        As from :func:`pymc_anneal.sample_ais`: groups ``posterior`` (visible units ``visible``;
        of a reverse run ``prior``, the reference), ``sample_stats``, ``annealing``, ``ladder``,
        ``constant_data`` (the parameters of the RBM), with ``reverse_from`` also
        ``reverse_annealing``, and ``evidence``, whose log evidence is the log partition function in
        nats; read it with :func:`pymc_anneal.log_evidence`.

    Raises
    ------
    TypeError, ValueError
        An argument makes no sense; the message says what was found and what was expected.

    References
    ----------
    Salakhutdinov & Murray (2008), On the quantitative analysis of deep belief networks. Grosse,
    Maddison & Salakhutdinov (2013), Annealing between distributions by averaging moments. Kiwaki
    (2015), Variational optimization of annealing schedules. Burda, Grosse & Salakhutdinov (2015),
    Accurate and conservative estimates of MRF log-likelihood using reverse annealing.

    Examples
    --------
    >>> result = rbm.sample_ais(model, steps=10_000)
    >>> pymc_anneal.log_evidence(result)
    """
    begin = time.perf_counter()
    chosen_schedule = resolve_schedule(schedule)
    settings = Settings(
        draws=draws,
        chains=chains,
        steps=_default_steps(chosen_schedule) if steps is None else steps,
        target_mcse=target_mcse,
        max_minutes=max_minutes,
        cores=cores,
        block_size=block_size,
        schedule=chosen_schedule,
        max_step=max_step,
        resample=resolve_resample(resample),
        assumed_barrier=_ASSUMED_BARRIER,
    )
    reverse = _check_direction(direction, model, settings)
    backward_from = resolve_reverse(reverse_from, model)
    _check_reverse(backward_from, reverse, settings)
    target = RBMTarget(model, _resolve_reference(reference, model))
    kernel = resolve(transition, TRANSITIONS, "transition", Transition)
    chosen = _resolve_path(path, target)
    name = reference if isinstance(reference, str) else "RBM"
    candidate = target.candidate(name, chosen, reverse=reverse)
    with open_session(
        target,
        settings,
        random_seed=random_seed,
        executor=executor,
        checkpoint=checkpoint,
        progressbar=progressbar,
        choices={
            "transition": kernel,
            "path": jax.tree.leaves(chosen),
            "direction": direction,
            "reverse_from": backward_from,
        },
    ) as session:
        if pilot_required(settings, kernel):
            pilot = run_linear_pilot(session, candidate, kernel, session.seeds.pilot)
            candidate = candidate.with_pilot(pilot)
        stages = run_candidate(session, candidate, kernel, reverse_from=backward_from)
    stages = stages if reverse or stages.forward.run.interrupted else _audited(target, stages)
    return build_result(session, stages, time.perf_counter() - begin)


def _audited(target: RBMTarget, stages: Stages) -> Stages:
    """Return the stages with the mean-field bound as a witness, and its doubt."""
    bound = mean_field_bound(target.model)
    doubts = []
    highest = target.log_reference + highest_log_evidence(stages.forward.run.log_weight)
    if bound > highest + _ROUNDING:
        doubts.append(
            f"log Z is at least {bound:.2f} by a mean-field bound: the run has missed a phase of "
            "the machine; take more steps, or reverse runs from draws of it"
        )
    witness = Witness("mean-field bound", 1, bound)
    return replace(stages, doubts=tuple(doubts), witnesses=(witness,))


def _default_steps(schedule: Schedule) -> Steps:
    """Return the number of steps if the user gives none; an array has its own."""
    return "auto" if isinstance(schedule, np.ndarray) else _STEPS


def _check_direction(direction: str, model: RBM, settings: Settings) -> bool:
    """Return whether the run goes from the RBM to the reference."""
    if direction not in ("forward", "reverse"):
        raise ValueError(f'`direction` is {direction!r}, expected "forward" or "reverse".')
    reverse = direction == "reverse"
    if reverse:
        check_small(model)
    if reverse and settings.resample:
        raise ValueError(
            'direction="reverse" reverses single trajectories, which resampling has cut: leave '
            "out `resample`."
        )
    return reverse


def _check_reverse(start: ReverseStart | None, reverse: bool, settings: Settings) -> None:
    """Raise if the run cannot be followed by runs in the other direction."""
    if start is not None and reverse:
        raise ValueError(
            '`reverse_from` adds reverse runs to forward ones: leave out direction="reverse".'
        )
    check_not_resampled(start, settings)


def _resolve_reference(reference: Literal["uniform"] | RBM, model: RBM) -> RBM:
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
            f"{np.count_nonzero(reference.weights)} of them not zero; expected an RBM of shape "
            f"{model.weights.shape} with W = 0, whose partition function is known."
        )
    return reference.astype(model.weights.dtype)


def _resolve_path(
    path: Literal["geometric"] | MomentSpline | RBMPath, target: RBMTarget
) -> RBMPath:
    reference, model = target.reference, target.model
    if isinstance(path, MomentSpline):
        path = path.path
    if isinstance(path, str):
        if path != "geometric":
            raise ValueError(
                f'Unknown `path` {path!r}; expected "geometric", a path of RBMs or the result of '
                "`moment_spline`."
            )
        if np.any(reference.hidden_bias):
            return SplineRBMPath.through(np.array([0.0, 1.0]), [reference, model])
        return GeometricRBMPath(reference.visible_bias, model)
    if not isinstance(path, RBMPath):
        raise TypeError(
            f'`path` is a {type(path).__name__}, expected "geometric", a path derived from '
            "`RBMPath`, or the result of `moment_spline`."
        )
    _check_end(path, 0.0, reference, "`reference`")
    _check_end(path, 1.0, model, "`model`")
    return path


@double_precision
def _check_end(path: RBMPath, beta: float, expected: RBM, name: str) -> None:
    found = jax.tree.map(np.asarray, path.model_at(beta))
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    if found.weights.dtype != expected.weights.dtype:
        raise ValueError(
            f"The RBM of `path` at beta = {beta:g} is of {found.weights.dtype} and {name} of "
            f"{expected.weights.dtype}: pass `model.astype({found.weights.dtype!s})`, or make the "
            "path of RBMs of one type."
        )
    same = all(
        a.shape == b.shape and np.allclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE) for a, b in pairs
    )
    if not same:
        raise ValueError(
            f"The RBM of `path` at beta = {beta:g} is not {name}: the run would estimate another "
            "ratio of partition functions. Pass the RBMs that the path was made of."
        )

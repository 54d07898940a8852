"""`sample_ais`: from a model to its evidence in one call.

Pilot (adaptive) -> trial (frozen, measures mixing) -> plan -> counted rounds (frozen) -> result.
"""

import os
import time

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
import pymc as pm

from pymc_anneal.base.arguments import resolve
from pymc_anneal.base.contracts import Path, Transition
from pymc_anneal.base.seeds import seed_sequence
from pymc_anneal.execution.checkpoint import Checkpoint, StageLog, open_stage_log
from pymc_anneal.execution.fingerprint import describe, describe_model, describe_versions
from pymc_anneal.execution.progress import ProgressDisplay
from pymc_anneal.execution.workers import check_executor
from pymc_anneal.model.compile import CompiledModel, as_compiled
from pymc_anneal.model.posterior_draws import posterior_draws
from pymc_anneal.paths.geometric import GeometricPath, ReferencePath
from pymc_anneal.paths.references import Reference
from pymc_anneal.pipeline.choose_path import ROUTES, Route, check_ends, resolve_route
from pymc_anneal.pipeline.choose_reference import begin, check_reference
from pymc_anneal.pipeline.choose_transition import transition_for
from pymc_anneal.pipeline.result import assemble
from pymc_anneal.pipeline.reverse import Reverse, resolve_posterior, run_reverse
from pymc_anneal.pipeline.rounds import Outcome, run_rounds
from pymc_anneal.pipeline.session import Session, explaining_nan
from pymc_anneal.pipeline.settings import Options, resolve_resample
from pymc_anneal.schedules.named import resolve_schedule

_MOMENT_DRAWS = 1024


def sample_ais(
    draws: int = 500,
    *,
    chains: int = 4,
    steps: int | str = "auto",
    target_mcse: float = 0.1,
    path: str | Route | Path = "geometric",
    reference: str | Reference = "prior",
    schedule: str | Sequence[float] | np.ndarray | Callable[[int], np.ndarray] = "variational",
    max_step: float | None = None,
    transition: str | Transition = "hmc",
    resample: str | float | None = None,
    max_rounds: int = 3,
    max_minutes: float = 20.0,
    cores: int | None = None,
    block_size: int | None = None,
    executor: Executor | None = None,
    checkpoint: str | os.PathLike | Checkpoint | None = None,
    random_seed: Any = None,
    progressbar: bool = True,
    model: pm.Model | CompiledModel | None = None,
    posterior: Any = None,
    reverse_from: Any = None,
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
        "geometric" (power posteriors); "moment", averages of the moments of prior and posterior
        (Grosse et al. 2013), shorter where they lie far apart; "q" (Brekelmans et al. 2020);
        "auto", the geometric or the moment-averaged one, whichever the pilot predicts to be
        cheaper; a :class:`MomentAveragedPath` or :class:`QPath` with settings; or an object with
        the methods of :class:`~pymc_anneal.base.Path`, such as a :class:`CustomPath`.
    reference
        Where the path starts. "prior"; "pilot", a Gaussian or Student-t fitted to the pilot's
        particles; "laplace", the Gaussian at the posterior's mode; "auto", the prior or the
        fitted one, whichever the pilot predicts to be cheaper; or an object like those that
        :func:`fit_reference` returns. A start near the posterior makes the run shorter; the
        estimate stays unbiased.
    schedule
        "variational" (Kiwaki 2015) or "optimal_binned" (Grosse et al. 2013), both from the pilot;
        "linear", "power", "geometric", "sigmoid", "salakhutdinov_murray"; a function from a number
        of steps to a schedule; or an array that increases from 0 to 1.
    max_step
        Largest step in beta: decelerates the variational schedule (Kiwaki 2015, Algorithm 3).
    transition
        "hmc", "generalized_hmc", "mala", "random_walk", or a kernel; parameters of a kernel
        that are None are tuned by the pilot. The discrete variables of a model are moved by
        :class:`Gibbs` and :class:`DiscreteRandomWalk` beside the one named; an object has to move them
        itself (see :func:`default_transition`).
    resample
        "ess": where the effective sample size of the running weights of a population falls below
        half of its particles, these are resampled (a number: below that share): the sequential
        Monte Carlo sampler with a frozen schedule. A population is what a block holds of a chain.
        The estimate stays unbiased, and its error is the spread of the populations. It helps
        where the steps are too few for even weights; the steps that "auto" plans hardly need it.
    max_rounds
        If the error misses the target, or cannot be trusted, another round with more steps
        follows, up to this number of rounds. All rounds count. A single round is exactly
        unbiased; the decision to go on depends on the round before, which makes the average
        over several very slightly less than that.
    max_minutes
        Budget of the counted run. A plan predicted to take longer is cut to it (fewer extra
        particles, then fewer steps), and no further round begins that would exceed it; the
        verdict tells if the error suffers. Where it cuts, the result depends on the machine's
        speed as well as on the seed; ``numpy.inf`` switches it off.
    cores
        Worker threads, or the number of workers of the executor. Default: the processors
        available, or what the executor says.
    block_size
        Particles annealed at a time by a worker. The result depends on it (as it does on the
        seed), and not on the number of workers.
    executor
        Any :class:`concurrent.futures.Executor` to run blocks of particles on: processes, or a
        cluster, as by ``distributed.Client(...).get_executor()``. The same seed gives the same
        result on each. Default: threads of this process.
    checkpoint
        A file to save the run to, once a minute, or a :class:`Checkpoint`. Where it exists, the
        run goes on from it, to the same bits as a run that was never stopped; model, data,
        settings and versions must be those of the file.
    random_seed
        Seed: int, sequence of int, numpy SeedSequence or Generator. The same seed gives the
        same result.
    progressbar
        Whether to show progress.
    model
        The model, or the result of :func:`compile_model`. Default: the model on the context
        stack.
    posterior
        The container of a :func:`pymc.sample` run, whose draws give the posterior's moments to a
        moment-averaged path. Default: the pilot's particles.
    reverse_from
        Also anneal from the posterior back to the prior, as many particles again, and combine
        both directions (Grosse, Ghahramani & Adams 2015; Bennett 1976). The container of a
        :func:`pymc.sample` run: begin with its draws. "draws": with the draws of the forward run,
        moved on; the bound from above is then approximate, and blind to a mode that all forward
        particles missed.
    idata_kwargs
        ``log_likelihood=True`` adds the pointwise log likelihood of the posterior draws,
        ``prior=True`` as many prior draws; ``coords`` and ``dims`` extend the model's.

    Returns
    -------
    InferenceData or DataTree
        Groups ``posterior``, ``sample_stats``, ``annealing``, ``evidence``, ``observed_data``
        and ``constant_data``, with ``reverse_from`` also ``reverse_annealing``; read the evidence
        with :func:`log_evidence`. After Ctrl-C during the counted run, the particles that were
        finished.

    Raises
    ------
    TypeError, ValueError, NotImplementedError
        An argument makes no sense, the model cannot be annealed (see :func:`compile_model`), its
        log density is NaN somewhere, or the checkpoint is of another run; the message says what
        differs or where, and what to do.
    FileNotFoundError
        The folder of the checkpoint does not exist.

    References
    ----------
    Neal (2001), Annealed importance sampling. Kiwaki (2015), Variational optimization of
    annealing schedules. Grosse, Ghahramani & Adams (2015), Sandwiching the marginal likelihood
    using bidirectional Monte Carlo.

    Examples
    --------
    >>> with model:
    ...     idata = pymc_anneal.sample_ais()
    >>> pymc_anneal.log_evidence(idata)
    """
    options = Options(
        draws=draws,
        chains=chains,
        steps=steps,
        target_mcse=target_mcse,
        max_rounds=max_rounds,
        max_minutes=max_minutes,
        cores=cores,
        block_size=block_size,
        schedule=resolve_schedule(schedule),
        max_step=max_step,
        idata_kwargs=dict(idata_kwargs or {}),
        resample=resolve_resample(resample),
    )
    start = time.perf_counter()
    compiled = as_compiled(model)
    kernel = transition_for(transition, compiled)
    seed = seed_sequence(random_seed)
    route = resolve_route(path)
    the_path = GeometricPath(compiled.log_terms) if route else _given(path, compiled, seed)
    check_reference(reference, the_path)
    moments_from = None if posterior is None else _moment_draws(posterior, compiled)
    backward_from = resolve_posterior(reverse_from, compiled)
    if backward_from is not None and options.resample:
        raise ValueError(
            "`reverse_from` reverses single trajectories, which resampling has cut: leave out "
            "`resample`."
        )
    check_executor(executor)
    journal = StageLog()
    if checkpoint is not None:
        choices = {
            "path": route or the_path,
            "reference": reference,
            "transition": kernel,
            "posterior": moments_from,
            "reverse_from": backward_from,
        }
        words = _fingerprint(compiled, options, choices)
        journal, seed = open_stage_log(checkpoint, words, seed, random_seed is not None)
    with ProgressDisplay(progressbar) as display:
        session = Session(
            compiled,
            the_path,
            compiled.sample_prior,
            options,
            display,
            seed,
            executor,
            journal,
        )
        seeds = _Seeds(*seed_sequence(session.seed).spawn(8)[3:])
        with explaining_nan(compiled):
            begun = begin(session, kernel, reference, seeds.start)
            if route:
                begun = route.lay_out(begun, kernel, moments_from, seeds.path)
            session = begun.session
            outcome = run_rounds(session, kernel, begun.pilot)
            backward = _backward(session, outcome, backward_from, seeds.reverse)
    journal.save()
    seconds = time.perf_counter() - start
    return assemble(begun, outcome, backward, seconds, seeds.draws, seeds.prior)


def _fingerprint(
    compiled: CompiledModel, options: Options, choices: Mapping[str, Any]
) -> dict[str, str]:
    """Describe all that the bits of a run depend on."""
    settings = {f.name: getattr(options, f.name) for f in fields(options)} | dict(choices)
    del settings["cores"], settings["idata_kwargs"]
    if callable(options.schedule):
        settings["schedule"] = (options.schedule, options.schedule(16))
    described = {f"setting `{name}`": describe(value) for name, value in settings.items()}
    return {**describe_model(compiled), **described, **describe_versions()}


class _Seeds(NamedTuple):
    """Seeds of what is not the forward run; none of it depends on whether another is used."""

    draws: np.random.SeedSequence
    prior: np.random.SeedSequence
    reverse: np.random.SeedSequence
    start: np.random.SeedSequence
    path: np.random.SeedSequence


def _given(path: Any, compiled: CompiledModel, seed: np.random.SeedSequence) -> Path:
    """Return the path object of the user, checked."""
    checked = resolve(path, ROUTES, "path", Path)
    if not isinstance(checked, ReferencePath):
        check_ends(checked, compiled, seed_sequence(seed))
    return checked


def _moment_draws(posterior: Any, compiled: CompiledModel) -> np.ndarray:
    """Return evenly spaced draws of a container, unconstrained, shape ``(n, d)``."""
    draws = np.concatenate(posterior_draws(posterior, compiled))
    return draws[:: -(-len(draws) // _MOMENT_DRAWS)]


def _backward(
    session: Session,
    outcome: Outcome,
    posterior: np.ndarray | str | None,
    seed: np.random.SeedSequence,
) -> Reverse | None:
    """Run backwards if asked to; stopped before it has anything, keep what the forward run has."""
    last = outcome.rounds[-1]
    if posterior is None or last.interrupted:
        return None
    try:
        return run_reverse(session, outcome, posterior, seed)
    except KeyboardInterrupt:
        outcome.rounds[-1] = replace(last, interrupted=True)
        return None

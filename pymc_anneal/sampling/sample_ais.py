"""`sample_ais`: from a model to its evidence in one call."""

import os
import time

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any

import numpy as np
import pymc as pm

from pymc_anneal.base.contracts import Path, Transition
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import RandomSeed
from pymc_anneal.evidence.verdict import warn_unless_trusted
from pymc_anneal.execution.checkpoint import Checkpoint
from pymc_anneal.model.bambi import unwrap_bambi
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.posterior_draws import posterior_draws
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.model.sum_out import sum_out
from pymc_anneal.paths.references import Reference
from pymc_anneal.pipeline.black_box_calls import calls_on
from pymc_anneal.pipeline.choose_path import GivenPath, PathName, check_ends, resolve_path
from pymc_anneal.pipeline.choose_transition import TransitionName, choose_transition
from pymc_anneal.pipeline.model_target import ModelTarget
from pymc_anneal.pipeline.options import Options, ReferenceName, check_compatible, check_reference
from pymc_anneal.pipeline.path_choice import PathChoice
from pymc_anneal.pipeline.result import build_result
from pymc_anneal.pipeline.reverse_start import check_not_resampled, resolve_reverse
from pymc_anneal.pipeline.run import run_model
from pymc_anneal.pipeline.session import open_session
from pymc_anneal.pipeline.settings import (
    Audit,
    Discrete,
    OnNan,
    Resample,
    Settings,
    Steps,
    check_word,
    resolve_resample,
)
from pymc_anneal.results.log_evidence import log_evidence
from pymc_anneal.schedules.named import ScheduleLike, resolve_schedule

# Default number of draws in each chain.
_DRAWS = 500

# Largest number of draws of a given posterior from which moments are estimated.
_MOMENT_DRAWS = 1024


@double_precision
def sample_ais(
    model_or_draws: pm.Model | CompiledModel | int | None = None,
    /,
    *,
    draws: int = _DRAWS,
    chains: int = 4,
    steps: Steps = "auto",
    target_mcse: float = 0.1,
    path: PathName | PathChoice | Path = "geometric",
    reference: ReferenceName | Reference = "auto",
    schedule: ScheduleLike = "variational",
    max_step: float | None = None,
    transition: TransitionName | Transition = "auto",
    resample: Resample = None,
    max_minutes: float = 20.0,
    cores: int | None = None,
    block_size: int | None = None,
    executor: Executor | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
    model: pm.Model | CompiledModel | None = None,
    moments_from: Any = None,
    reverse_from: Any = None,
    search_from: Mapping[str, np.ndarray] | None = None,
    idata_kwargs: Mapping[str, Any] | None = None,
    nan: OnNan = "raise",
    discrete: Discrete = "auto",
    audit: Audit = "auto",
    warnings: bool = True,
) -> Any:
    """Estimate the marginal likelihood of a model by annealed importance sampling.

    Particles start at draws of a reference, the prior or a density fitted to the posterior, and
    are moved to the posterior along a path of densities between the two; the average of their
    weights is an unbiased estimate of the marginal likelihood (Neal 2001). A survey, a pilot and
    trials, which are not counted, fit the reference, tune the transition, set the schedule and plan
    the number of steps. Then one run is counted: nothing adapts in it, and its weights decide
    neither its size nor whether it is kept. If its error misses the target, the verdict says so.

    Parameters
    ----------
    model_or_draws : pymc.Model, bambi.Model, CompiledModel or int, optional
        The first argument may be `model` or `draws`, without its name.
    draws : int
        Posterior draws in each chain, and the smallest number of particles in each chain.
    chains : int
        Independent groups of particles.
    steps : int or "auto"
        Number of annealing steps K, or "auto": planned for ``target_mcse``.
    target_mcse : float
        Wanted Monte Carlo standard error of the log evidence, in nats.
    path : {"geometric", "moment", "auto"}, MomentAveragedPath, QPath or Path
        "geometric": power posteriors. "moment": averages of the moments of prior and posterior
        (Grosse et al. 2013), shorter if the two are far apart. "auto": the geometric or the
        moment-averaged path, whichever the pilot predicts to be cheaper. Or a
        :class:`MomentAveragedPath` or :class:`QPath` with settings; or an object with the methods
        of :class:`~pymc_anneal.base.contracts.Path`, such as a :class:`CustomPath`.
    reference : {"auto", "prior", "pilot", "laplace"} or Reference
        Density from which the path starts; one near the posterior makes the run shorter, and the
        estimate stays unbiased. "auto": the prior or a mixture fitted to the particles of a
        survey, whichever is predicted to be cheaper; of discrete variables a mixture over
        configurations, if few hold the mass, or else the prior. The prior too for reverse runs, for
        paths other than "geometric" and "auto", and if there is nothing for a pilot to tune.
        "pilot": the mixture, whatever it costs. "laplace": the Gaussian at the posterior's mode.
        Or an object like those that :func:`fit_reference` returns.
    schedule : str, array or callable
        "variational" (Kiwaki 2015) or "optimal_binned" (Grosse et al. 2013), both from the pilot;
        "linear", "power", "geometric", "sigmoid", "salakhutdinov_murray"; a function from a number
        of steps to a schedule; or an array that increases from 0 to 1.
    max_step : float, optional
        Largest step in beta: decelerates the variational schedule (Kiwaki 2015, Algorithm 3). A
        schedule with a larger one that is given is an error.
    transition : {"auto", "hmc", "random_walk"} or Transition
        Markov kernel; "auto": HMC, or random-walk Metropolis if a part of the model has no gradient
        (a black box), or proposals from the reference (:class:`IndependenceMetropolis`) in
        coordinates whose gradients take long. Parameters of a kernel that are None are tuned by the
        pilot. With a name, discrete variables are moved by :class:`Gibbs`, :class:`JointFlip` and
        :class:`DiscreteRandomWalk` beside it; an object has to move them itself (see
        :func:`default_transition`).
    resample : "ess", float or None
        "ess": if the effective sample size of the running weights of a population falls below
        half of its particles, these are resampled (a number: below that share). This is the
        sequential Monte Carlo sampler with a frozen schedule. A population is the particles of one
        chain in one block. The estimate stays unbiased, and its error is the spread of the
        populations. Resampling helps if there are too few steps for even weights.
    max_minutes : float
        Budget of the call. The plan of the counted run is cut to what fit and trials leave (fewer
        extra particles, then fewer steps; ``notes`` says from what to what), or to a quarter of
        the budget if they leave less and the model has no black box; the verdict says if the error
        suffers. A survey or pilot without time for its next temperature raises an error. If the
        budget cuts, the result depends on the machine's speed as well as on the seed;
        ``numpy.inf`` switches it off.
    cores : int, optional
        Worker threads, or the number of workers of the executor. Default: the available
        processors, or the executor's own number.
    block_size : int, optional
        Particles annealed at a time by a worker, about 512 by default. The result depends on it
        (as it does on the seed), and not on the number of workers.
    executor : concurrent.futures.Executor, optional
        Runs the blocks of particles: processes, or a cluster, as by
        ``distributed.Client(...).get_executor()``. If a part of the model is a black box, it runs
        the calls of that part instead, those of survey and pilot included. The same seed gives the
        same result on each. Default: threads of this process.
    checkpoint : path or Checkpoint, optional
        A file to save the run to, once a minute. If it exists, the run goes on from it, to the
        same bits as a run that was never stopped; model, data, settings and versions must be
        those of the file. It contains a pickle: open no checkpoint but your own.
    random_seed : int, sequence of int, SeedSequence or Generator, optional
        The same seed gives the same result.
    progressbar : bool
        Whether to show progress.
    model : pymc.Model, bambi.Model or CompiledModel, optional
        The model, or the result of :func:`compile_model`. Default: the model on the context
        stack.
    moments_from : InferenceData or DataTree, optional
        Result of :func:`pymc.sample`, whose draws give the posterior's moments to a
        moment-averaged path. Default: the pilot's particles.
    reverse_from : InferenceData, DataTree or "draws", optional
        Also anneal from the posterior back to the prior, with as many particles, and combine
        both directions (Grosse, Ghahramani & Adams 2015; Bennett 1976). A result of
        :func:`pymc.sample`: start from its draws. "draws": from the draws of the forward run after
        further MCMC moves; the upper bound is then approximate, and blind to a mode that all
        forward particles missed.
    search_from : dict of str to array, optional
        Values of all free variables, shapes ``(n, ...)``, from which climbs look for modes beside
        those from draws of the prior. They replace nothing, and what they find is weighed.
    idata_kwargs : dict, optional
        ``log_likelihood=True`` adds the pointwise log likelihood of the posterior draws,
        ``prior=True`` as many prior draws; ``coords`` and ``dims`` extend the model's.
    nan : {"raise", "reject"}
        What to do where the log likelihood is NaN or a black box raises an exception. "raise": an
        error that names the place. "reject": count it as zero likelihood; the evidence is that of
        the model without this region, whose share the verdict states.
    discrete : {"auto", "sample"}
        "auto": discrete variables are summed out of the density, exactly, where that takes few
        evaluations: indicators of mixtures, hidden states of chains, change points; their posterior
        draws come from the conditional distribution given the other variables. "sample": all of
        them are moved; so they are with ``nan="reject"``, and beside a transition, path or
        reference that is given as an object.
    audit : {"auto", "levels", "off"}
        What looks for parts of the posterior that the run may have missed (``witnesses`` of
        :func:`log_evidence` names what did). "auto": held-out particles of the survey, climbs from
        draws of the prior, and multilevel splitting (Au & Beck 2001) where the density has no
        second derivatives and five seconds are predicted to suffice; configurations of discrete
        variables, whose masses bound the evidence from below. "levels": multilevel splitting
        whatever it costs, some 1e5 to 1e6 evaluations; it needs no gradient and sees spikes inside
        the bulk, but goes with a survey: not with ``reference="prior"`` or discrete variables.
        "off": nothing, for a quick look. The time of a black box's fastest call decides for "auto",
        so that near the limit another machine may decide otherwise.
    warnings : bool
        Whether to warn if the verdict is not "trust".

    Returns
    -------
    InferenceData or DataTree
        Groups ``posterior``, ``sample_stats``, ``annealing``, ``evidence``, ``ladder``, ``modes``,
        ``observed_data`` and ``constant_data``, with ``reverse_from`` also ``reverse_annealing``;
        read the evidence with :func:`log_evidence`. After Ctrl-C during the counted run, the
        particles that were finished.

    Raises
    ------
    TypeError, ValueError, NotImplementedError
        An argument makes no sense, `max_minutes` is too short for the pilot of a black box, the
        model cannot be annealed (see :func:`compile_model`), its log density is NaN somewhere, or
        the checkpoint is of another run; the message says what differs or where, and what to do.
    FileNotFoundError
        The folder of the checkpoint does not exist.
    RuntimeError
        Another run is writing to the checkpoint.

    Warns
    -----
    EvidenceWarning
        The verdict is not "trust".
    UserWarning
        The transition is a random walk because a part of the model has no gradient; or the calls of
        a black box take more than `max_minutes` for the draws asked for.

    See Also
    --------
    log_evidence : Read the estimate, its error and the verdict.
    compare : Rank models by their evidence.
    bridge_evidence : The evidence from draws of :func:`pymc.sample`.
    nested_evidence : A second opinion by nested sampling.

    References
    ----------
    Neal (2001), Annealed importance sampling, eq. 3-5. Kiwaki (2015), Variational optimization of
    annealing schedules, eq. 8-9. Grosse, Ghahramani & Adams (2015), Sandwiching the marginal
    likelihood using bidirectional Monte Carlo.

    Examples
    --------
    >>> with model:
    ...     idata = pymc_anneal.sample_ais()
    >>> pymc_anneal.log_evidence(idata)
    """
    draws, model = _draws_and_model(model_or_draws, draws, model)
    settings = Settings(
        draws=draws,
        chains=chains,
        steps=steps,
        target_mcse=target_mcse,
        max_minutes=max_minutes,
        cores=cores,
        block_size=block_size,
        schedule=resolve_schedule(schedule),
        max_step=max_step,
        resample=resolve_resample(resample),
        reject_nan=check_word("nan", nan) == "reject",
        free_transition=transition == "auto",
        audit=check_word("audit", audit),
    )
    begin = time.perf_counter()
    compiled, choice = as_compiled(model), resolve_path(path)
    given_whole = isinstance(choice, GivenPath) or not (type(transition) is type(reference) is str)
    summing = check_word("discrete", discrete) == "auto"
    if summing and not (settings.reject_nan or given_whole):
        compiled = sum_out(compiled)
    if settings.reject_nan:
        compiled = compiled.rejecting_nan
    target = ModelTarget(compiled, {} if idata_kwargs is None else idata_kwargs)
    kernel = choose_transition(transition, target.compiled)
    chosen_path = _check_path(choice, reference, compiled, settings.reject_nan)
    backward_from = resolve_reverse(reverse_from, target.compiled)
    check_not_resampled(backward_from, settings)
    prepared = time.perf_counter()
    given = _moment_draws(moments_from, target.compiled)
    options = Options(kernel, reference, chosen_path, given, backward_from, search_from)
    with (
        calls_on(compiled, executor, cores) as block_executor,
        open_session(
            target,
            settings,
            random_seed=random_seed,
            executor=block_executor,
            checkpoint=checkpoint,
            progressbar=progressbar,
            choices=options.fingerprint(),
        ) as session,
    ):
        session.meter.add("Model", 0, prepared - begin)
        stages = run_model(session, target, options)
    result = build_result(session, stages, time.perf_counter() - begin)
    if warnings:
        found = log_evidence(result)
        warn_unless_trusted(found.verdict, found.headline)
    return result


def _draws_and_model(first: Any, draws: int, model: Any) -> tuple[int, Any]:
    """Return `draws` and `model`, one of which may be the first argument.

    Raises
    ------
    TypeError
        One of them is given twice, or several models are given.
    """
    if isinstance(first, list | tuple | dict):
        raise TypeError("sample_ais takes one model; for several call `sample_models`.")
    if first is None:
        return draws, model
    given = unwrap_bambi(first)
    name = "model" if isinstance(given, pm.Model | CompiledModel) else "draws"
    if model is not None if name == "model" else draws != _DRAWS:
        raise TypeError(f"`{name}` is given twice, as the first argument and by name: pass one.")
    return (draws, given) if name == "model" else (given, model)


def _check_path(
    path: PathChoice,
    reference: ReferenceName | Reference,
    compiled: CompiledModel,
    reject_nan: bool,
) -> PathChoice:
    """Return the choice of the path, or raise if it does not go with reference or model."""
    check_reference(reference)
    if isinstance(path, GivenPath):
        if reject_nan:
            raise ValueError(
                "`nan='reject'` goes with a path given by name, found a "
                f"{type(path.path).__name__}: return -inf in place of NaN from its log density."
            )
        check_compatible(reference, path.path)
        check_ends(path.path, compiled)
    return path


def _moment_draws(posterior: Any, compiled: CompiledModel) -> np.ndarray | None:
    """Return evenly spaced draws of a container, unconstrained, shape ``(n, d)``."""
    if posterior is None:
        return None
    draws = np.concatenate(posterior_draws(posterior, compiled))
    return draws[:: -(-len(draws) // _MOMENT_DRAWS)]

"""`nested_evidence`: the evidence by nested sampling, a second opinion on `sample_ais`."""

import time

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

import numpy as np
import pymc as pm

from pymc_anneal.base.arguments import check_count, check_target
from pymc_anneal.base.contracts import NanDensityError
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import RandomSeed, seed_sequence
from pymc_anneal.evidence.verdict import warn_unless_trusted
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.nested.blackjax import run_blackjax
from pymc_anneal.nested.dynesty import run_dynesty
from pymc_anneal.nested.nautilus import run_nautilus
from pymc_anneal.nested.nested_sampling import NestedRun, combine_runs
from pymc_anneal.nested.problem import NestedProblem
from pymc_anneal.nested.result import build_nested_result
from pymc_anneal.pipeline.black_box_calls import calls_on
from pymc_anneal.pipeline.settings import OnNan, check_word
from pymc_anneal.results.log_evidence import log_evidence

SamplerName: TypeAlias = Literal["nautilus", "dynesty", "blackjax"]

_SAMPLERS: Mapping[str, Callable[..., NestedRun]] = {
    "nautilus": run_nautilus,
    "dynesty": run_dynesty,
    "blackjax": run_blackjax,
}


@double_precision
def nested_evidence(
    model: pm.Model | CompiledModel | None = None,
    *,
    sampler: SamplerName = "nautilus",
    draws: int = 500,
    runs: int = 2,
    n_live: int | None = None,
    remainder: float = 1e-3,
    target_mcse: float = 0.1,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
    nan: OnNan = "raise",
    warnings: bool = True,
) -> Any:
    """Estimate the marginal likelihood by nested sampling, as a check of :func:`sample_ais`.

    Nested sampling goes through the prior by levels of the likelihood and needs neither gradients
    nor a path (Skilling 2006), so that it fails for other reasons than annealing. It is of use up
    to about 30 dimensions. The samplers are packages of their own:
    ``pip install 'pymc_anneal[nested]'``.

    Parameters
    ----------
    model : pymc.Model, bambi.Model or CompiledModel, optional
        The model, or the result of :func:`compile_model`. Default: the model on the context stack.
    sampler : {"nautilus", "dynesty", "blackjax"}
        "nautilus": importance sampling from nested shells (Lange 2023), with the smallest error
        for a number of evaluations. "dynesty": nested sampling with ellipsoids and random walks
        (Speagle 2020). "blackjax": nested slice sampling (Yallup et al. 2026), which needs no
        inverse distribution functions of the priors.
    draws : int
        Posterior draws of each run.
    runs : int
        Independent runs; the verdict says if they disagree.
    n_live : int, optional
        Live points. More of them find smaller modes, and lower the error. Default: 2000 for
        nautilus, 500 for dynesty, 1000 for blackjax.
    remainder : float
        A run ends if the live points hold less than this part of the evidence. Smaller values let
        it go on into the bulk of the posterior, where it meets peaks that are narrow and high
        (1e-9 finds the spike in a slab of 20 dimensions); each factor of ten costs 2.3 times
        `n_live` more points.
    target_mcse : float
        Wanted standard error of the log evidence, in nats; the verdict says if it is missed.
    random_seed : int, sequence of int, SeedSequence or Generator, optional
        The same seed gives the same result.
    progressbar : bool
        Whether nautilus and dynesty show their progress.
    nan : {"raise", "reject"}
        As for :func:`sample_ais`: a log likelihood that is NaN is an error, or counts as zero
        likelihood.
    warnings : bool
        Whether to warn if the verdict is not "trust".

    Returns
    -------
    InferenceData or DataTree
        Groups ``posterior`` (a chain of draws from each run), ``sample_stats`` (the log evidence
        of each run), ``evidence`` (with the ``information`` of the posterior relative to the prior
        in nats, and the number of ``evaluations`` of the likelihood), ``observed_data`` and
        ``constant_data``; read the evidence with :func:`log_evidence`, in nats. Its ``pareto_k``
        and ``barrier`` are NaN.

    Raises
    ------
    ImportError
        The sampler is not installed.
    NotImplementedError
        The model has discrete variables; or, with "nautilus" and "dynesty", a prior without an
        inverse distribution function.
    TypeError, ValueError
        An argument makes no sense, the log likelihood is NaN or infinite at a point, or as for
        :func:`compile_model`.

    Warns
    -----
    EvidenceWarning
        The verdict is not "trust".

    See Also
    --------
    compare_estimators : Put the result beside that of :func:`sample_ais`.

    References
    ----------
    Skilling (2006), Nested sampling for general Bayesian computation. Lange (2023), nautilus:
    boosting Bayesian importance nested sampling with deep learning. Speagle (2020), dynesty.
    Yallup, Kroupa & Handley (2026), Nested slice sampling.

    Examples
    --------
    >>> second = pymc_anneal.nested_evidence(model)
    >>> pymc_anneal.compare_estimators(idata, others={"nautilus": second})
    """
    if sampler not in _SAMPLERS:
        raise ValueError(f"Unknown `sampler` {sampler!r}; expected one of {list(_SAMPLERS)}.")
    for name, value in {
        "draws": draws,
        "runs": runs,
        "n_live": 1 if n_live is None else n_live,
    }.items():
        check_count(name, value)
    check_target(target_mcse)
    if not 0 < remainder < 1:
        raise ValueError(f"`remainder` is {remainder!r}, expected a number between 0 and 1.")
    begin, compiled = time.perf_counter(), as_compiled(model)
    rejecting = check_word("nan", nan) == "reject"
    problem = NestedProblem(compiled.rejecting_nan if rejecting else compiled)
    seed_draws, *seeds = seed_sequence(random_seed).spawn(1 + runs)
    # The error of the mean of the runs is smaller than that of one.
    settings = {
        "n_live": n_live,
        "remainder": remainder,
        "target_mcse": target_mcse * np.sqrt(runs),
    }
    with calls_on(compiled, None, None), _explaining_nan(compiled):
        found = [
            _SAMPLERS[sampler](problem, seed, progressbar=progressbar, **settings) for seed in seeds
        ]
        rng, seconds = np.random.default_rng(seed_draws), time.perf_counter() - begin
        estimate = combine_runs(found, target_mcse)
        result = build_nested_result(problem, found, estimate, sampler, draws, rng, seconds)
    if warnings:
        warn_unless_trusted(estimate.verdict, log_evidence(result).headline)
    return result


@contextmanager
def _explaining_nan(compiled: CompiledModel) -> Iterator[None]:
    """Turn a log likelihood that is NaN into an error that names the term of the model."""
    try:
        yield
    except NanDensityError as error:
        raise ValueError(
            compiled.explain_nan(error.position).replace("sample_ais(", "nested_evidence(")
        ) from error

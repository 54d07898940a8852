"""Bayes factors of growing data: a study that stops when it knows, and the design of one.

The evidence of ``y_1, ..., y_T`` is known after each batch, and looking at it is free: the Bayes
factor of two models does not depend on when one stops (Edwards, Lindman & Savage 1963). Each look
after the first searches around the posterior of the one before too (`update.py`). A design analysis
asks how often studies that are simulated from a design prior reach a threshold at which size
(Schoenbrodt & Wagenmakers 2018).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack, cast

import numpy as np
import pandas as pd
import pymc as pm

from pymc_anneal.base.arguments import check_count
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import RandomSeed, seed_sequence
from pymc_anneal.model.cast_data import without_mask
from pymc_anneal.model.compile import CompiledModel, compile_model
from pymc_anneal.model.family import ModelFamily
from pymc_anneal.model.other_data import Data, check_fit, copy_with
from pymc_anneal.results.compare_models import log_bayes_factor
from pymc_anneal.results.log_evidence import log_evidence
from pymc_anneal.results.sequential import Design, Sequential, reached
from pymc_anneal.sampling.rows import check_rows, check_same_rows
from pymc_anneal.sampling.run_arguments import CallArguments, RunArguments
from pymc_anneal.sampling.sample_ais import sample_ais
from pymc_anneal.sampling.several_runs import check_several_runs, unless_interrupted
from pymc_anneal.sampling.update import other_shape, spaced_draws


@double_precision
def sequential(
    models: Mapping[str, pm.Model],
    batches: Sequence[Data],
    *,
    stop: float = 10.0,
    random_seed: RandomSeed = None,
    **settings: Unpack[CallArguments],
) -> Sequential:
    """Compute the Bayes factor of two models after each batch of data, until one has won.

    Parameters
    ----------
    models : dict of str to pymc.Model
        Two models by name, whose data are ``pm.Data``; the present values of these are not used.
    batches : sequence of dict of str to array
        New rows of the ``pm.Data``, by name. Those of all batches so far are joined along the first
        axis.
    stop : float
        Bayes factor, above 1, at which to stop, for the first model or for the second: when the
        whole 95 % interval is beyond it.
    random_seed : int, sequence of int, SeedSequence or Generator, optional
        The same seed gives the same results.
    **settings
        Arguments of :func:`sample_ais` for all runs.

    Returns
    -------
    Sequential
        A row for each look. The evidences are those of all data so far, with independent errors.
        After Ctrl-C, the looks before.

    Raises
    ------
    ValueError
        There are not two models, no batches, or `stop` is not above 1; or a batch names data that a
        model does not have, has missing values or no rows, or does not fit the shapes of a model.
    TypeError
        A batch is no dict; or an argument belongs to a single run.

    See Also
    --------
    plot_sequential : The course of the Bayes factor.
    design : How many data are needed, before there are any.

    References
    ----------
    Edwards, Lindman & Savage (1963), Bayesian statistical inference for psychological research.
    Schoenbrodt & Wagenmakers (2018), Bayes factor design analysis: planning for compelling
    evidence.

    Examples
    --------
    >>> batches = [{"y": y[:20]}, {"y": y[20:40]}, {"y": y[40:60]}]
    >>> pymc_anneal.sequential({"effect": effect, "null": null}, batches, stop=10)
    """
    names = check_two(models)
    _check_threshold("stop", stop)
    check_several_runs("sequential", settings)
    _check_batches(models, batches)
    settings = {"progressbar": False, "warnings": False, **settings}
    seeds = seed_sequence(random_seed).spawn(2 * len(batches))
    rows, last = list[dict[str, Any]](), dict[str, Any]()
    for look in range(len(batches)):
        data = _join(batches[: look + 1])
        try:
            for name, seed in zip(names, seeds[2 * look : 2 * look + 2], strict=True):
                compiled = with_data(models[name], data)
                last[name] = _run(compiled, last.get(name), seed, settings)
        except KeyboardInterrupt:
            if not rows:
                raise
            break
        rows.append(_row(last, names, _size(data)))
        if reached(pd.Series(rows[-1]), stop, names):
            break
    table = pd.DataFrame(rows, index=pd.RangeIndex(1, len(rows) + 1, name="look"))
    return Sequential(table, stop, names)


def _run(compiled: CompiledModel, before: Any, seed: Any, settings: CallArguments) -> Any:
    """Run a model, with what its draws given fewer data have seen, if there are any."""
    if before is not None and compiled.ndim and "search_from" not in settings:
        starts = spaced_draws(before)
        # A variable may have an entry for each row of the data.
        if not other_shape(starts, compiled):
            settings = {**settings, "search_from": starts}
    return unless_interrupted(sample_ais(compiled, random_seed=seed, **settings))


def _row(results: Mapping[str, Any], names: tuple[str, str], size: int) -> dict[str, Any]:
    first, second = names
    factor = log_bayes_factor(results[first], results[second], names=names)
    return {
        "rows": size,
        "log_bayes_factor": factor.log_bayes_factor,
        "mcse": factor.mcse,
        "lower": factor.interval[0],
        "upper": factor.interval[1],
        **{name: log_evidence(results[name]).log_evidence for name in names},
        "verdict": str(factor.verdict),
    }


@double_precision
def design(
    models: Mapping[str, pm.Model],
    simulate: Callable[[np.random.Generator, int], Data],
    n: Sequence[int] | int,
    *,
    threshold: float = 10.0,
    draws: int = 200,
    random_seed: RandomSeed = None,
    **settings: Unpack[RunArguments],
) -> Design:
    """Find by simulation how often studies of some sizes reach a Bayes factor.

    Parameters
    ----------
    models : dict of str to pymc.Model
        Two models by name, whose data are ``pm.Data``; the present values of these are not used.
    simulate : callable
        From a :class:`numpy.random.Generator` and a number of rows to a data set, the values of the
        ``pm.Data`` by name. It draws the effect from the design prior: a value, or a distribution.
    n : int or sequence of int
        Sizes of the study. A larger one has the rows of the smaller ones and more.
    threshold : float
        Bayes factor, above 1.
    draws : int
        Number of simulated studies.
    random_seed : int, sequence of int, SeedSequence or Generator, optional
        The same seed gives the same result.
    **settings
        Arguments of :func:`sample_ais`; by default 100 draws in each chain, and no audit.

    Returns
    -------
    Design
        Shares of studies by size: of one look, and of those that stop at the first look beyond the
        threshold. Programs are compiled once for each size and model.

    Raises
    ------
    ValueError
        There are not two models, a size is no positive number, `threshold` is not above 1, or a
        data set names data that a model does not have, has missing values or too few rows, or does
        not fit the shapes of a model.
    TypeError
        A data set is no dict; or an argument belongs to a single run.

    See Also
    --------
    plot_design : The shares as a figure.
    sequential : The study itself.

    References
    ----------
    Schoenbrodt & Wagenmakers (2018), Bayes factor design analysis: planning for compelling
    evidence.

    Examples
    --------
    >>> def simulate(rng, n):
    ...     return {"y": rng.normal(0.5, 1.0, size=n)}
    >>> pymc_anneal.design({"effect": effect, "null": null}, simulate, n=[20, 40, 80])
    """
    names = check_two(models)
    _check_threshold("threshold", threshold)
    check_count("draws", draws)
    check_several_runs("design", settings)
    sizes = sorted({int(size) for size in np.ravel(n)})
    if not sizes or sizes[0] < 1:
        raise ValueError(f"`n` is {n}, expected positive numbers of rows.")
    quietly = {"draws": 100, "audit": "off", "progressbar": False, "warnings": False}
    shared = cast(CallArguments, {**quietly, **settings})
    seed_data, seed_runs = seed_sequence(random_seed).spawn(2)
    data = [simulate(np.random.default_rng(s), sizes[-1]) for s in seed_data.spawn(draws)]
    _check_studies(models, data, sizes)
    looks = [_factors(models, names, data, size, seed_runs.spawn(1)[0], shared) for size in sizes]
    value, mcse, untrusted = (np.array(part) for part in zip(*looks, strict=True))
    return Design(value.T, mcse.T, np.array(sizes), threshold, names, int(untrusted.sum()))


def _factors(
    models: Mapping[str, pm.Model],
    names: tuple[str, str],
    data: Sequence[Data],
    size: int,
    seed: np.random.SeedSequence,
    settings: CallArguments,
) -> tuple[list[float], list[float], int]:
    """Return log Bayes factors and errors of studies of one size, and how many are not trusted."""
    parts = [_first_rows(values, size) for values in data]
    families = [family_with(models[name], parts[0]) for name in names]
    value, mcse, untrusted = list[float](), list[float](), 0
    for part, own in zip(parts, seed.spawn(len(parts)), strict=True):
        runs = [
            log_evidence(
                unless_interrupted(sample_ais(family.member(part), random_seed=s, **settings))
            )
            for family, s in zip(families, own.spawn(2), strict=True)
        ]
        factor = log_bayes_factor(*runs, names=names)
        value.append(factor.log_bayes_factor)
        mcse.append(factor.mcse)
        untrusted += factor.verdict.status == "do not trust"
    return value, mcse, untrusted


def check_two(models: Mapping[str, Any]) -> tuple[str, str]:
    """Return the names of two models, or raise if there are not two."""
    if not isinstance(models, Mapping) or len(models) != 2:
        found = list(models) if isinstance(models, Mapping) else type(models).__name__
        raise ValueError(f"`models` is {found}, expected a dict of two models by name.")
    first, second = models
    return first, second


def _check_threshold(name: str, value: float) -> None:
    if not value > 1:
        raise ValueError(f"`{name}` is {value}, expected a Bayes factor above 1.")


def _check_batches(models: Mapping[str, pm.Model], batches: Any) -> None:
    """Raise unless each look has data that both models take."""
    if not isinstance(batches, Sequence) or isinstance(batches, str):
        raise TypeError(
            f"`batches` is of type {type(batches).__name__}, expected a list of dicts of pm.Data."
        )
    if not batches:
        raise ValueError("`batches` is empty, expected at least one dict of pm.Data.")
    for number, batch in enumerate(batches):
        check_rows(f"`batches[{number}]`", batch)
    check_same_rows(batches)
    for whole in {1, len(batches)}:
        check_fit(models, _join(batches[:whole]))


def _check_studies(
    models: Mapping[str, pm.Model], data: Sequence[Data], sizes: Sequence[int]
) -> None:
    """Raise unless simulated data sets have enough rows, and both models take them."""
    for values in data:
        check_rows("a data set of `simulate`", values)
        short = {name: len(v) for name, v in values.items() if len(v) < sizes[-1]}
        if short:
            raise ValueError(
                f"A data set of `simulate` has the rows {short}, expected {sizes[-1]} as asked for."
            )
    check_same_rows(data)
    for size in {sizes[0], sizes[-1]}:
        check_fit(models, _first_rows(data[0], size))


def _first_rows(data: Data, size: int) -> dict[str, np.ndarray]:
    return {name: without_mask(name, values)[:size] for name, values in data.items()}


def _join(batches: Sequence[Data]) -> dict[str, np.ndarray]:
    """Join the rows of batches, which have the same names."""
    check_same_rows(batches)
    return {n: np.concatenate([without_mask(n, b[n]) for b in batches]) for n in batches[0]}


def _size(data: Data) -> int:
    return max(len(values) for values in data.values())


def family_with(model: pm.Model, data: Data) -> ModelFamily:
    """Compile a model for all values of some of its ``pm.Data`` that have the shapes of these."""
    return ModelFamily(with_data(model, data), tuple(sorted(data)))


def with_data(model: pm.Model, data: Data) -> CompiledModel:
    """Compile a model with other values of its ``pm.Data``, of any number of rows."""
    return compile_model(copy_with(model, data))

"""Intrinsic Bayes factors: training samples make proper priors of vague ones.

A minimal training sample ``y(l)`` is as few rows of the data as make the posterior of both models
proper. Given it, the Bayes factor of the other rows does not depend on the constants of the priors,

    BF_ab(y | y(l)) = BF_ab(y) BF_ba(y(l)),

and over training samples these are averaged (Berger & Pericchi 1996, eq. 9-11): the arithmetic mean
with the larger model ``a`` in the numerator, the geometric mean, or the median (Berger & Pericchi
1998). With ``L`` of ``N`` training samples, drawn without replacement, log ratios ``r_l`` of errors
``s_l`` and shares ``w_l`` in the mean, its error has three independent parts:

    e^2 = e(y)^2 + sum_l w_l^2 s_l^2 + (1 - L / N) Var(r) / L.

Wide proper priors stand for improper ones: the factors have a limit as these get wider.
"""

import math

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from operator import index
from typing import Any, NamedTuple, Unpack

import numpy as np
import pymc as pm

from scipy.special import logsumexp, softmax
from scipy.stats import norm

from pymc_anneal.base.arguments import check_count
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import RandomSeed, seed_sequence
from pymc_anneal.evidence.combined_verdict import combined_verdict
from pymc_anneal.evidence.estimate import LogEvidence
from pymc_anneal.evidence.verdict import Verdict, verdict_from, warn_unless_trusted
from pymc_anneal.model.other_data import Data, check_fit
from pymc_anneal.results.bayes_factor import LogBayesFactor
from pymc_anneal.results.compare_models import log_bayes_factor
from pymc_anneal.results.log_evidence import log_evidence
from pymc_anneal.sampling.rows import check_rows
from pymc_anneal.sampling.run_arguments import CallArguments
from pymc_anneal.sampling.sample_ais import sample_ais
from pymc_anneal.sampling.sequential import check_two, family_with, with_data
from pymc_anneal.sampling.several_runs import check_several_runs, unless_interrupted

# Repetitions behind the error of a median: that of the error itself is 2 %.
_REPETITIONS = 1000
# Number of subsets up to which all are listed, from which the training samples are drawn.
_LISTED = 10_000


class IntrinsicBayesFactors(NamedTuple):
    """Intrinsic Bayes factors of one pair of models, by how training samples are averaged.

    Attributes
    ----------
    arithmetic, geometric, median : LogBayesFactor
        The arithmetic mean is meant for a second model that is a special case of the first; the
        median also for models that are not nested, and where a few training samples dominate.
    """

    arithmetic: LogBayesFactor
    geometric: LogBayesFactor
    median: LogBayesFactor


@double_precision
def intrinsic_bayes_factor(
    models: Mapping[str, pm.Model],
    data: Data,
    *,
    training: int | Sequence[Sequence[int]],
    samples: int = 50,
    random_seed: RandomSeed = None,
    **settings: Unpack[CallArguments],
) -> IntrinsicBayesFactors:
    """Estimate intrinsic Bayes factors of two models, which vague priors do not set.

    Parameters
    ----------
    models : dict of str to pymc.Model
        Two models by name, with wide, proper priors, the larger one first, whose data are
        ``pm.Data``; the present values of these are not used.
    data : dict of str to array
        The values of the ``pm.Data``, by name; rows are along the first axis of all of them.
    training : int, or sequence of sequence of int
        Number of rows of a training sample, as few as determine all parameters of the larger model:
        1 for a mean, 2 for a mean and a scale. Or the training samples themselves, as numbers of
        rows: some rows may determine no parameters, as those of two equal regressors.
    samples : int
        Number of training samples, drawn without replacement; all of them, if there are no more.
    random_seed : int, sequence of int, SeedSequence or Generator, optional
        The same seed gives the same result.
    **settings
        Arguments of :func:`sample_ais` for all runs: one for each model, and one for each model and
        training sample; `warnings` is about the verdict on the factors.

    Returns
    -------
    IntrinsicBayesFactors
        Of the first model against the second, in nats, averaged in three ways. The errors hold that
        of the evidences and, unless all training samples are taken, of their choice.

    Raises
    ------
    ValueError
        There are not two models, the data are not ``pm.Data`` of the models, have missing values or
        different numbers of rows or do not fit the shapes of a model, or the training samples are
        not fewer rows than there are.
    TypeError
        The data are no dict, `training` is neither a number of rows nor training samples, or an
        argument belongs to a single run, as a checkpoint.

    Warns
    -----
    EvidenceWarning
        An evidence is not trusted.

    See Also
    --------
    fractional_evidence : A share of the likelihood in place of training samples.
    g_prior : Priors of regressions that do not have to be vague.

    References
    ----------
    Berger & Pericchi (1996), The intrinsic Bayes factor for model selection and prediction, eq. 9-
    11. Berger & Pericchi (1998), Accurate and stable Bayesian model selection: the median intrinsic
    Bayes factor.

    Examples
    --------
    >>> found = pymc_anneal.intrinsic_bayes_factor(
    ...     {"effect": effect, "null": null}, {"y": y}, training=2
    ... )
    >>> found.arithmetic
    """
    names = check_two(models)
    check_several_runs("intrinsic_bayes_factor", settings)
    rows = _count_rows(data)
    seed_choice, seed_all, seed_parts = seed_sequence(random_seed).spawn(3)
    chosen, population = _training_samples(training, samples, rows, seed_choice)
    for part in (data, _rows_of(data, chosen[0])):
        check_fit(models, part)
    warn = settings.get("warnings", True)
    settings = {"progressbar": False, **settings, "warnings": False}
    whole = log_bayes_factor(
        *(
            log_evidence(
                unless_interrupted(
                    sample_ais(with_data(models[n], data), random_seed=s, **settings)
                )
            )
            for n, s in zip(names, seed_all.spawn(2), strict=True)
        ),
        names=names,
    )
    first, second = (
        _evidences(models[name], data, chosen, seed, settings)
        for name, seed in zip(names, seed_parts.spawn(2), strict=True)
    )
    found = _averages(whole, first, second, len(chosen) / population)
    if warn:
        warn_unless_trusted(found.arithmetic.verdict, "intrinsic Bayes factor")
    return found


def _count_rows(data: Data) -> int:
    """Return the number of rows of data, which all have the same."""
    check_rows("`data`", data)
    rows = {name: len(values) for name, values in data.items()}
    if len(set(rows.values())) != 1:
        raise ValueError(f"`data` has rows {rows}, expected values by name with equal numbers.")
    return next(iter(rows.values()))


def _training_samples(
    training: int | Sequence[Sequence[int]], samples: int, rows: int, seed: np.random.SeedSequence
) -> tuple[list[tuple[int, ...]], float]:
    """Return the training samples, and how many there are to draw them from."""
    if not isinstance(training, int | np.integer):
        given = _given_samples(training)
        if not given or len({len(sample) for sample in given}) != 1:
            raise ValueError("`training` has samples of different sizes or none, expected equal.")
        if not all(
            0 < len(set(s)) == len(s) < rows and 0 <= min(s) <= max(s) < rows for s in given
        ):
            raise ValueError(f"`training` has rows that are no different ones of 0 to {rows - 1}.")
        return given, len(given)
    check_count("samples", samples)
    if not 0 < training < rows:
        raise ValueError(
            f"`training` is {training}, expected fewer rows than the data have, 1 to {rows - 1}."
        )
    population = math.comb(rows, int(training))
    if population <= max(samples, _LISTED):
        every = list(combinations(range(rows), int(training)))
        number = min(samples, population)
        drawn = np.random.default_rng(seed).choice(population, number, replace=False)
        return [every[i] for i in sorted(drawn)], population
    return list(_distinct(rows, int(training), samples, np.random.default_rng(seed))), population


def _given_samples(training: Any) -> list[tuple[int, ...]]:
    """Return training samples as tuples of row numbers."""
    try:
        return [tuple(index(row) for row in sample) for sample in training]
    except TypeError:
        raise TypeError(
            f"`training` is {training!r}, expected a whole number of rows, such as 2, or training "
            "samples, each a list of row numbers, such as [[0, 1], [2, 5]]."
        ) from None


def _rows_of(data: Data, rows: Sequence[int]) -> dict[str, np.ndarray]:
    return {name: np.asarray(values)[list(rows)] for name, values in data.items()}


def _distinct(
    rows: int, size: int, samples: int, rng: np.random.Generator
) -> Iterator[tuple[int, ...]]:
    """Yield different subsets of rows; the number of all is far larger than that of the samples."""
    seen = set[tuple[int, ...]]()
    while len(seen) < samples:
        one = tuple(sorted(rng.choice(rows, size, replace=False).tolist()))
        if one not in seen:
            seen.add(one)
            yield one


def _evidences(
    model: pm.Model,
    data: Data,
    samples: Sequence[tuple[int, ...]],
    seed: np.random.SeedSequence,
    settings: CallArguments,
) -> list[LogEvidence]:
    """Return the evidence of each training sample; the model is compiled once."""
    parts = [_rows_of(data, rows) for rows in samples]
    family = family_with(model, parts[0])
    return [
        log_evidence(
            unless_interrupted(sample_ais(family.member(part), random_seed=own, **settings))
        )
        for part, own in zip(parts, seed.spawn(len(parts)), strict=True)
    ]


def _averages(
    whole: LogBayesFactor,
    first: Sequence[LogEvidence],
    second: Sequence[LogEvidence],
    share: float,
) -> IntrinsicBayesFactors:
    """Return the factors of all data times the averages of those of training samples.

    Parameters
    ----------
    whole
        Of all data.
    first, second
        Evidences of the training samples under both models.
    share
        Share of all training samples that these are.
    """
    pairs = list(zip(first, second, strict=True))
    log_ratio = np.array([b.log_evidence - a.log_evidence for a, b in pairs])
    error = np.array([np.hypot(a.mcse, b.mcse) for a, b in pairs])
    doubts = {"all data": whole.verdict, "training samples": _verdict([*first, *second])}
    verdict, left_out = combined_verdict(doubts), 1 - share

    def factor(average: Callable[..., tuple[float, float]]) -> LogBayesFactor:
        value, own = average(log_ratio, error, left_out)
        value, mcse = whole.log_bayes_factor + value, float(np.hypot(whole.mcse, own))
        half = float(norm.ppf(0.975)) * mcse
        return LogBayesFactor(
            value, mcse, (value - half, value + half), verdict, models=whole.models
        )

    return IntrinsicBayesFactors(factor(_arithmetic), factor(_geometric), factor(_median))


def _arithmetic(r: np.ndarray, s: np.ndarray, left_out: float) -> tuple[float, float]:
    """Return the log of the mean ratio, and its error."""
    weight = softmax(r)
    between = left_out * (weight * len(r)).var(ddof=1) / len(r) if len(r) > 1 else 0.0
    error = np.sqrt(np.log1p((weight**2 * s**2).sum() + between))
    return float(logsumexp(r) - np.log(len(r))), float(error)


def _geometric(r: np.ndarray, s: np.ndarray, left_out: float) -> tuple[float, float]:
    """Return the mean log ratio, and its error."""
    between = left_out * r.var(ddof=1) / len(r) if len(r) > 1 else 0.0
    return float(r.mean()), float(np.sqrt((s**2).mean() / len(r) + between))


def _median(r: np.ndarray, s: np.ndarray, left_out: float) -> tuple[float, float]:
    """Return the median log ratio, and its error by repetitions with noise and with other rows."""
    rng = np.random.default_rng(1998)  # the error is a function of the ratios
    noisy = np.median(r + s * rng.normal(size=(_REPETITIONS, len(r))), axis=1)
    again = np.median(rng.choice(r, size=(_REPETITIONS, len(r))), axis=1)
    return float(np.median(r)), float(np.sqrt(noisy.var() + left_out * again.var()))


def _verdict(evidences: Sequence[LogEvidence]) -> Verdict:
    """Return one verdict on the evidences of all training samples."""
    doubtful = [e.verdict for e in evidences if e.verdict.status == "do not trust"]
    if doubtful:
        reason = "; ".join(doubtful[0].reasons)
        return verdict_from(
            [f"{len(doubtful)} of {len(evidences)} evidences, the first because {reason}"], []
        )
    short = [e.verdict for e in evidences if not e.verdict.trusted]
    return short[0] if short else verdict_from([], [])

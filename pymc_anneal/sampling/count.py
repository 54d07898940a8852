"""`count`: how many components, planets or lags there are, by evidences of a sequence.

    P(k | y) = p(k) Z_k / sum_l p(l) Z_l

(Kass & Raftery 1995). The sequence ends where further models cannot matter as long as their
probabilities go on falling: after two in a row that are below the one before, the last of them less
probable than a given share of the best.

Each run is shown the draws of the one before (`embed.py`), as further starts of the climbs that
look for modes: what they find may get a component of the reference. Survey, witnesses and the
counted run know nothing of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
import pymc as pm

from pymc_anneal.base.arviz_compat import Container
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import RandomSeed, seed_sequence, spawned
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.results.compare_models import compare
from pymc_anneal.results.log_evidence import log_evidence
from pymc_anneal.results.model_comparison import ModelComparison
from pymc_anneal.sampling.embed import embedded
from pymc_anneal.sampling.run_arguments import CallArguments
from pymc_anneal.sampling.sample_ais import sample_ais
from pymc_anneal.sampling.several_runs import check_several_runs, is_interrupted

# Models in a row that are less probable than the one before, after which the sequence may end.
_FALLING = 2
# Number of the child of a run's seed that embeds draws; those of its stages are the first ones.
_OWN = 100


@dataclass(frozen=True, eq=False)
class Count:
    """The models of a sequence, with their probabilities; of :func:`count`.

    Attributes
    ----------
    results : dict of str to InferenceData or DataTree
        The runs by number, as text.
    comparison : ModelComparison
        Of these models; the table of :func:`compare`, and what :func:`plot_compare` takes.
    left_out : tuple of int
        Numbers that were not run, because the probabilities had fallen too far.
    """

    results: dict[str, Container]
    comparison: ModelComparison
    left_out: tuple[int, ...]

    @property
    def probability(self) -> dict[int, float]:
        """Posterior probability of each number, among those that were run."""
        details = self.comparison.details
        return {int(name): float(details.loc[name, "probability"]) for name in self.results}

    def __repr__(self) -> str:
        """Return the comparison, and what was left out."""
        return f"{self.comparison!r}\n{self._remark}".rstrip()

    def _repr_html_(self) -> str:
        """Return the comparison for notebooks."""
        return f"{self.comparison._repr_html_()}<p>{self._remark}</p>"

    @property
    def _remark(self) -> str:
        if not self.left_out:
            return ""
        numbers = ", ".join(map(str, self.left_out))
        return f"not run, as the probabilities had fallen: {numbers}"


@double_precision
def count(
    build: Callable[[int], pm.Model],
    numbers: Sequence[int],
    *,
    prior: Callable[[int], float] | None = None,
    negligible: float = 1e-3,
    share_starts: bool = True,
    random_seed: RandomSeed = None,
    **settings: Unpack[CallArguments],
) -> Count:
    """Find the probabilities of the number of components by the evidences of a sequence of models.

    Parameters
    ----------
    build : callable
        From a number to the model with so many components.
    numbers : sequence of int
        In increasing order, such as ``range(6)``.
    prior : callable, optional
        From a number to its prior probability, up to a factor. Default: all are equal.
    negligible : float
        The sequence ends after two models in a row that are less probable than the one before, if
        the last is less probable than this share of the best; 0: all are run.
    share_starts : bool
        Whether draws of each model, with one more entry from the prior in variables that have one,
        are starts for the search of the next one (`search_from` of :func:`sample_ais`). It needs
        models that the search of modes takes: with gradients and without discrete variables.
    random_seed : int, sequence of int, SeedSequence or Generator, optional
        The same seed gives the same results; that of a model depends on its place.
    **settings
        Arguments of :func:`sample_ais`, the same for all models.

    Returns
    -------
    Count
        After Ctrl-C in a counted run, up to that one.

    Raises
    ------
    ValueError
        There are fewer than two numbers, they do not increase, or a prior is not positive.
    TypeError
        An argument belongs to a single run, as a checkpoint.

    See Also
    --------
    sample_models : Models that do not form a sequence.
    plot_compare : The probabilities as a figure.

    References
    ----------
    Kass & Raftery (1995), Bayes factors, eq. 4.

    Examples
    --------
    >>> found = pymc_anneal.count(mixture, range(1, 7))
    >>> pymc_anneal.plot_compare(found.comparison)
    """
    check_several_runs("count", settings)
    wanted = [int(number) for number in numbers]
    if len(wanted) < 2 or wanted != sorted(set(wanted)):
        raise ValueError(f"`numbers` is {wanted}, expected two or more increasing numbers.")
    odds = [1.0 if prior is None else float(prior(number)) for number in wanted]
    if not (np.isfinite(odds) & (np.array(odds) > 0)).all():
        raise ValueError(f"The prior of {wanted} is {odds}, expected positive numbers.")
    settings = {"progressbar": False, **settings}
    results, score = dict[str, Container](), list[float]()
    seeds = seed_sequence(random_seed).spawn(len(wanted))
    for number, own, seed in zip(wanted, odds, seeds, strict=True):
        compiled = as_compiled(build(number))
        before = next(reversed(results.values()), None) if share_starts else None
        shared = _with_starts(settings, before, compiled, seed)
        results[str(number)] = sample_ais(compiled, random_seed=seed, **shared)
        score.append(log_evidence(results[str(number)]).log_evidence + np.log(own))
        if is_interrupted(results[str(number)]) or _has_fallen(score, negligible):
            break
    run = len(score)
    comparison = compare(results, odds[:run], warnings=settings.get("warnings", True))
    return Count(results, comparison, tuple(wanted[run:]))


def _with_starts(
    settings: CallArguments,
    before: Container | None,
    compiled: CompiledModel,
    seed: np.random.SeedSequence,
) -> CallArguments:
    """Return the arguments, with the draws of the model before if there are any to share."""
    if before is None or compiled.lacking or compiled.ndim == 0 or "search_from" in settings:
        return settings
    starts = embedded(before, compiled, spawned(seed, _OWN))
    return settings if starts is None else {**settings, "search_from": starts}


def _has_fallen(score: list[float], negligible: float) -> bool:
    """Whether log probabilities have fallen twice in a row, to a negligible share of the best."""
    falls = len(score) > _FALLING and bool((np.diff(score[-_FALLING - 1 :]) < 0).all())
    return falls and score[-1] - max(score) < np.log(negligible) if negligible else False

"""`sample_models`: the evidences of many models.

Models that differ in the values of ``pm.Data`` (masks of regressors, hyperparameters, observations)
are compiled once; with an executor of processes, models run side by side.
"""

import warnings

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, TypeAlias, Unpack, cast

import numpy as np
import pymc as pm

from pymc_anneal.base.arviz_compat import Container
from pymc_anneal.base.caller import levels_to_caller
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.pickling import SharedPickle
from pymc_anneal.base.seeds import RandomSeed, seed_sequence
from pymc_anneal.evidence.verdict import EvidenceWarning, warn_unless_trusted
from pymc_anneal.execution.progress import ProgressDisplay
from pymc_anneal.execution.side_by_side import run_calls
from pymc_anneal.execution.workers import check_executor, runs_processes
from pymc_anneal.model.bambi import unwrap_bambi
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.family import ModelFamily
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.results.log_evidence import log_evidence
from pymc_anneal.sampling.run_arguments import CallArguments, DrawArguments
from pymc_anneal.sampling.sample_ais import sample_ais
from pymc_anneal.sampling.several_runs import check_several_runs, is_interrupted

# Largest number of runs that have a row of their own.
_MAX_ROWS = 20

# A model, or values of the pm.Data of a model that several share.
Member: TypeAlias = pm.Model | CompiledModel | Mapping[str, Any]


@double_precision
def sample_models(
    models: Mapping[str, Member],
    *,
    model: pm.Model | CompiledModel | None = None,
    executor: Executor | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
    **settings: Unpack[DrawArguments],
) -> dict[str, Container]:
    """Run :func:`sample_ais` for several models.

    Parameters
    ----------
    models : dict of str to pymc.Model, CompiledModel or dict
        The models by name. A dict stands for ``model`` with these values of its ``pm.Data``, of
        the same shapes; such models are compiled once.
    model : pymc.Model or CompiledModel, optional
        The model that the dicts refer to. Default: the model on the context stack.
    executor : concurrent.futures.Executor, optional
        With processes, of this machine or of a cluster, models run side by side, each on one
        processor unless `cores` is given, and each process compiles its own. With threads, and by
        default, one model runs after another. The same seed gives the same results on each.
    random_seed : int, sequence of int, SeedSequence or Generator, optional
        The same seed gives the same results; that of a model depends on its place.
    progressbar : bool
        Whether to show which models are done, and their evidences.
    **settings
        Arguments of :func:`sample_ais`, the same for all models.

    Returns
    -------
    dict of str to InferenceData or DataTree
        Results by name, for :func:`compare`, :func:`inclusion` and :func:`average`. After Ctrl-C
        those of the models that were done.

    Raises
    ------
    ValueError
        There are no models; or a dict has a name that is not a ``pm.Data`` of the model, or a
        value of another shape. Errors of :func:`sample_ais` carry a note with the name of the
        model, and the results of the models that are done in their attribute ``results``.
    TypeError
        A model or the executor is none, or an argument belongs to a single run, as a checkpoint.

    Warns
    -----
    EvidenceWarning
        The verdict on a model is not "trust"; or some models are missing after Ctrl-C.

    See Also
    --------
    compare : Rank the models.
    inclusion : Which variables belong to the model.
    average : Means over the models.

    Examples
    --------
    >>> masks = {"none": [0, 0], "first": [1, 0], "both": [1, 1]}
    >>> pymc_anneal.sample_models({k: {"mask": v} for k, v in masks.items()}, model=model)
    """
    if not isinstance(models, Mapping) or not models:
        raise ValueError(f"`models` is {models!r}, expected a dict of at least one model by name.")
    _check_members(models)
    check_executor(executor)
    check_several_runs("sample_models", settings)
    warn = settings.get("warnings", True)
    shared = cast(CallArguments, {**settings, "progressbar": False, "warnings": False})
    if runs_processes(executor):
        shared.setdefault("cores", 1)
    else:
        shared["executor"], executor = executor, None
    with ProgressDisplay(progressbar) as display:
        progress = _RunsProgress(display, "Models", list(models))
        found = _run(_calls(models, model, random_seed, shared), executor, progress)
    results = {name: found[name] for name in models if name in found}
    if warn:
        _warn(results, [name for name in models if name not in found])
    return results


def _check_members(models: Mapping[str, Any]) -> None:
    for name, member in models.items():
        if not isinstance(unwrap_bambi(member), pm.Model | CompiledModel | Mapping):
            raise TypeError(
                f"`models[{name!r}]` is {member!r:.80}, expected a pymc.Model, the result of "
                "compile_model, or a dict of values of the pm.Data of `model`."
            )


class _RunsProgress:
    """Progress of several runs: a bar for all of them, and a row for each if there are few.

    Parameters
    ----------
    display : ProgressDisplay
    label : str
        Of the bar for all.
    names : sequence of str
        Names of the runs.
    """

    def __init__(self, display: ProgressDisplay, label: str, names: Sequence[str]) -> None:
        self._finished, self._bar = 0, display.add_bar(label, len(names), status="")
        shown = names if len(names) <= _MAX_ROWS else []
        self._rows = {name: display.add_bar(name, status="waiting") for name in shown}

    def begin(self, name: str) -> None:
        """Show that a run has begun."""
        self._show(name, 0, "running")

    def finish(self, name: str, result: str) -> None:
        """Show the result of a run, in words."""
        self._finished += 1
        self._show(name, 1, result)

    def _show(self, name: str, completed: float, status: str) -> None:
        if name in self._rows:
            self._rows[name].update(completed, status)
        self._bar.update(self._finished, "" if name in self._rows else f"{name}: {status}")


@dataclass(frozen=True)
class _Call:
    """A call of :func:`sample_ais`, which another process can make.

    Attributes
    ----------
    name : str
        Of the model.
    source : SharedPickle
        The model, or the family that ``values`` select it from.
    values : mapping of str to array, or None
    seed : SeedSequence
    settings : SharedPickle
        Arguments of :func:`sample_ais`, by name.
    """

    name: str
    source: SharedPickle[Any]
    values: Mapping[str, Any] | None
    seed: np.random.SeedSequence
    settings: SharedPickle[CallArguments]

    def __call__(self) -> Container:
        """Return the result of the model."""
        try:
            return sample_ais(model=self._compile(), random_seed=self.seed, **self.settings.value)
        except Exception as error:
            error.add_note(f"This happened in the model '{self.name}'.")
            raise

    def _compile(self) -> CompiledModel:
        if self.values is None:
            return as_compiled(self.source.value)
        family: ModelFamily = self.source.value
        return family.member(self.values)


def _calls(
    models: Mapping[str, Member],
    model: pm.Model | CompiledModel | None,
    random_seed: RandomSeed,
    settings: CallArguments,
) -> list[_Call]:
    """Return the call of each model; members of a family share its pickle."""
    families: dict[tuple[str, ...], SharedPickle[ModelFamily]] = {}
    base = as_compiled(model) if any(isinstance(m, Mapping) for m in models.values()) else None
    seeds, calls = seed_sequence(random_seed).spawn(len(models)), list[_Call]()
    shared = SharedPickle(settings)
    for (name, member), seed in zip(models.items(), seeds, strict=True):
        if base is None or not isinstance(member, Mapping):
            calls.append(_Call(name, SharedPickle(member), None, seed, shared))
            continue
        names = tuple(sorted(member))
        if names not in families:
            families[names] = SharedPickle(ModelFamily(base, names))
        families[names].value.check(member)
        calls.append(_Call(name, families[names], member, seed, shared))
    return calls


def _run(
    calls: Sequence[_Call], executor: Executor | None, progress: _RunsProgress
) -> dict[str, Container]:
    """Return the results by name; after Ctrl-C those that are there, if there are any.

    An error has them in its attribute ``results``.
    """
    results: dict[str, Container] = {}

    def begin(number: int) -> None:
        progress.begin(calls[number].name)

    try:
        for number, result in run_calls(calls, executor, begin):
            results[calls[number].name] = result
            progress.finish(calls[number].name, _describe(result))
            if is_interrupted(result):
                break
    except KeyboardInterrupt:
        if not results:
            raise
    except Exception as error:  # Of any class: that of a black box.
        if results:
            error.results = results  # type: ignore[attr-defined]
            error.add_note(
                f"Models that are done: {list(results)}. Their results are in the attribute "
                "`results` of this error, in a notebook `sys.last_value.results`."
            )
        raise
    return results


def _describe(result: Container) -> str:
    found = log_evidence(result)
    return f"{found.headline}, {found.verdict.status}"


def _warn(results: Mapping[str, Container], missing: Sequence[str]) -> None:
    for name, result in results.items():
        found = log_evidence(result)
        warn_unless_trusted(found.verdict, f"{name}, {found.headline}")
    if missing:
        warnings.warn(
            f"Stopped: there are results of {len(results)} models, and none of {missing}.",
            EvidenceWarning,
            stacklevel=levels_to_caller(),
        )

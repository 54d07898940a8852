"""`sample_models`: the evidences of many models.

Models that differ in the values of ``pm.Data`` (masks of regressors, hyperparameters, observations)
are compiled once.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import pymc as pm

from pymc_anneal.base.arviz_compat import Container
from pymc_anneal.base.seeds import RandomSeed, seed_sequence
from pymc_anneal.execution.progress import ProgressDisplay
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.family import ModelFamily
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.sampling.sample_ais import sample_ais

# A model, or values of the pm.Data of a model that several share.
Member: TypeAlias = pm.Model | CompiledModel | Mapping[str, Any]


def sample_models(
    models: Mapping[str, Member],
    *,
    model: pm.Model | CompiledModel | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
    **settings: Any,
) -> dict[str, Container]:
    """Run :func:`sample_ais` for several models.

    Parameters
    ----------
    models : dict of str to pymc.Model, CompiledModel or dict
        The models by name. A dict stands for ``model`` with these values of its ``pm.Data``, of
        the same shapes; such models are compiled once.
    model : pymc.Model or CompiledModel, optional
        The model that the dicts refer to. Default: the model on the context stack.
    random_seed : int, sequence of int, SeedSequence or Generator, optional
        The same seed gives the same results; that of a model depends on its place.
    progressbar : bool
        Whether to show how many models are done.
    **settings
        Arguments of :func:`sample_ais`, the same for all models.

    Returns
    -------
    dict of str to InferenceData or DataTree
        Results by name, for :func:`compare`, :func:`inclusion` and :func:`average`.

    Raises
    ------
    ValueError
        There are no models; or a dict has a name that is not a ``pm.Data`` of the model, or a
        value of another shape. Errors of :func:`sample_ais` carry a note with the name of the
        model.

    Examples
    --------
    >>> masks = {"none": [0, 0], "first": [1, 0], "both": [1, 1]}
    >>> pymc_anneal.sample_models({k: {"mask": v} for k, v in masks.items()}, model=model)
    """
    if not isinstance(models, Mapping) or not models:
        raise ValueError(f"`models` is {models!r}, expected a dict of at least one model by name.")
    seeds = seed_sequence(random_seed).spawn(len(models))
    results: dict[str, Container] = {}
    with ProgressDisplay(progressbar) as display:
        bar = display.add_bar("Models", len(models))
        for (name, compiled), seed in zip(_compiled(models, model), seeds, strict=True):
            bar.update(len(results), name)
            results[name] = _sample(name, compiled, seed, settings)
        bar.update(len(models), "")
    return results


def _sample(
    name: str, compiled: CompiledModel, seed: np.random.SeedSequence, settings: Mapping[str, Any]
) -> Container:
    try:
        return sample_ais(model=compiled, random_seed=seed, progressbar=False, **settings)
    except Exception as error:
        error.add_note(f"This happened in the model '{name}'.")
        raise


def _compiled(
    models: Mapping[str, Member], model: pm.Model | CompiledModel | None
) -> Iterator[tuple[str, CompiledModel]]:
    """Yield the compiled models by name, those of a family from one compilation."""
    families: dict[tuple[str, ...], ModelFamily] = {}
    base = as_compiled(model) if any(isinstance(m, Mapping) for m in models.values()) else None
    for name, member in models.items():
        if base is None or not isinstance(member, Mapping):
            yield name, as_compiled(member)
            continue
        names = tuple(sorted(member))
        if names not in families:
            families[names] = ModelFamily(base, names)
        yield name, families[names].member(member)

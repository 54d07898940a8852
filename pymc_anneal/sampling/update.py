"""`update`: the evidence of a model with more data, from the posterior without them.

For data in blocks ``y_1, ..., y_T`` the evidence is a product of predictive densities (Dawid 1984),

    log p(y_1, ..., y_T) = sum_t log p(y_t | y_1, ..., y_{t-1}),

each the difference of two log evidences. The posterior after one block is where that after the next
one is looked for, beside draws of the prior: a mode that few of these lead to is not lost again.
"""

from collections.abc import Mapping
from typing import Unpack

import numpy as np
import pymc as pm

from pymc_anneal.base.arviz_compat import Container
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.posterior_draws import posterior_values
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.sampling.run_arguments import SeededArguments
from pymc_anneal.sampling.sample_ais import sample_ais

# Old draws from which climbs look for modes: one with 5 % of them is missed once in 700 times.
_STARTS = 128


@double_precision
def update(
    idata: Container,
    model: pm.Model | CompiledModel | None = None,
    **settings: Unpack[SeededArguments],
) -> Container:
    """Run :func:`sample_ais` for a model with more data, with what draws given fewer have seen.

    Parameters
    ----------
    idata : InferenceData or DataTree
        Result of :func:`sample_ais`, :func:`update` or :func:`pymc.sample` for a model with the
        same free variables and prior, and other data.
    model : pymc.Model or CompiledModel, optional
        The model with all data, old and new. Default: the model on the context stack.
    **settings
        Arguments of :func:`sample_ais`, except ``search_from``, which the old draws are. They are
        not used where nothing is searched: discrete variables that are not summed out,
        ``reference="prior"``.

    Returns
    -------
    InferenceData or DataTree
        As :func:`sample_ais`. Its log evidence is that of all data; minus that of `idata`, it is
        the log predictive density of the new data given the old ones. Both have independent errors,
        and the evidence is unbiased whatever the old draws are: they only help to find modes.

    Raises
    ------
    ValueError
        A free variable of the model is missing from the draws, or has another shape.
    TypeError
        `settings` contain ``search_from``.

    See Also
    --------
    sample_ais : A run from scratch.

    References
    ----------
    Dawid (1984), Statistical theory: the prequential approach. Chopin (2002), A sequential particle
    filter method for static models.

    Examples
    --------
    >>> monday = pymc_anneal.sample_ais(model_of_monday)
    >>> week = pymc_anneal.update(monday, model_of_the_week)
    """
    if "search_from" in settings:
        raise TypeError("`search_from` are the old draws: use sample_ais to choose others.")
    compiled = as_compiled(model)
    if compiled.ndim:
        starts = spaced_draws(idata)
        if grown := other_shape(starts, compiled):
            raise ValueError(
                f"Variable '{grown}' has another shape in the draws than in the model: its length "
                "grows with the data, and old draws say nothing about new entries. Use sample_ais."
            )
        compiled.unconstrain(starts)  # raises if they are not of this model
        settings["search_from"] = starts
    return sample_ais(model=compiled, **settings)


def spaced_draws(idata: Container) -> dict[str, np.ndarray]:
    """Return the old draws from which modes are looked for, shapes ``(n, ...)``, by variable."""
    values = posterior_values(idata)
    count = len(next(iter(values.values())))
    spaced = np.linspace(0, count - 1, min(count, _STARTS)).astype(int)
    return {name: value[spaced] for name, value in values.items()}


def other_shape(values: Mapping[str, np.ndarray], compiled: CompiledModel) -> str:
    """Return the first variable whose draws have another shape than in the model, or ""."""
    draw = compiled.constrain(compiled.sample_prior(np.random.SeedSequence(0), 1))
    names = (rv.name for rv in compiled.model.free_RVs if rv.name in values)
    return next((k for k in names if values[k].shape[1:] != draw[k].shape[1:]), "")

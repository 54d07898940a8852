"""Fit a reference to draws of the posterior.

Mean and scale come from draws and from the gradients of the log density at them, as the scale of a
kernel does (`adaptation/preconditioner.py`): for a Gaussian posterior both are exact from few
draws. The fit affects the cost of a run, never the expectation of its estimate (Surjanovic et al.
2022).
"""

from typing import Any

import jax
import numpy as np
import pymc as pm

from pymc_anneal.adaptation.laplace_reference import Family, reference_of
from pymc_anneal.adaptation.preconditioner import locate
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.derivatives import NO_GRADIENT
from pymc_anneal.model.posterior_draws import posterior_draws
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.paths.references import GaussianReference, StudentTReference

# Draws to which a reference is fitted: more of them do not change it.
_MAX_DRAWS = 4000


@double_precision
def fit_reference(
    idata: Any, *, model: pm.Model | CompiledModel | None = None, family: Family = "gaussian"
) -> GaussianReference | StudentTReference:
    """Fit a reference to the posterior draws, or their approximation, of an earlier run.

    Parameters
    ----------
    idata : InferenceData or DataTree
        A container with a group ``posterior`` that holds all free variables: from
        :func:`pymc.sample`, ``pymc.fit(...).sample(...)`` (ADVI), Pathfinder or
        :func:`sample_ais`. The draws need not be exact: they affect the cost of the run, not the
        expectation of the estimate.
    model : pymc.Model or CompiledModel, optional
        The model, or the result of :func:`compile_model`. Default: the model on the context stack.
    family : {"gaussian", "student_t"}
        "student_t" has 10 degrees of freedom, for posteriors with heavy tails.

    Returns
    -------
    GaussianReference or StudentTReference
        To pass to ``sample_ais(reference=...)``.

    Raises
    ------
    ValueError
        There are no draws of the model, or the family is unknown.
    NotImplementedError
        The model has discrete variables, or a prior whose density is not normalised.

    Examples
    --------
    >>> reference = pymc_anneal.fit_reference(pymc.sample(model=model), model=model)
    >>> pymc_anneal.sample_ais(model=model, reference=reference)
    """
    compiled = as_compiled(model)
    compiled.require_normalised("A reference other than the prior")
    draws = posterior_draws(idata, compiled).reshape(-1, compiled.ndim)
    spaced = np.linspace(0, len(draws) - 1, min(len(draws), _MAX_DRAWS)).astype(int)
    return fit_to_draws(compiled, draws[spaced], family)


@double_precision
def fit_to_draws(
    compiled: CompiledModel, draws: np.ndarray, family: Family = "gaussian"
) -> GaussianReference | StudentTReference:
    """Fit a reference to draws in the unconstrained space, shape ``(n, d)``."""
    reference = reference_of(family)
    gradient = np.full(draws.shape, np.nan)
    if compiled.derivatives.order > NO_GRADIENT:
        slope = jax.grad(lambda x: compiled.log_terms(x).log_posterior)
        gradient = np.asarray(jax.jit(jax.vmap(slope))(draws))
    return reference(*locate(draws, gradient))

"""Fit a reference to what is known of the posterior: draws, or its mode.

Mean and scale come from draws and from the gradients of the log density at them, as the scale of a
kernel does (`preconditioner.py`): for a Gaussian posterior both are exact from few draws. The fit
decides only what a run costs, never what it estimates (Surjanovic et al. 2022).
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm

from scipy import optimize

from pymc_anneal.adaptation.preconditioner import estimate_scale
from pymc_anneal.base.seeds import seed_sequence
from pymc_anneal.model.compile import CompiledModel, as_compiled
from pymc_anneal.model.posterior_draws import posterior_draws
from pymc_anneal.paths.references import GaussianReference, StudentTReference

FAMILIES = ("gaussian", "student_t")


_MAX_DRAWS = 4000


_MAX_DENSE = 512  # a density multiplies by the matrix once


_STARTS = 64


def fit_reference(
    idata: Any,
    *,
    model: pm.Model | CompiledModel | None = None,
    family: str = "gaussian",
) -> GaussianReference | StudentTReference:
    """Fit a reference to posterior draws: of NUTS, of an approximation, of an earlier run.

    Parameters
    ----------
    idata : InferenceData or DataTree
        A container with a group ``posterior`` that holds all free variables: from
        :func:`pymc.sample`, ``pymc.fit(...).sample(...)`` (ADVI), Pathfinder or
        :func:`sample_ais`. The draws need not be exact: they decide what the run costs, not what
        it estimates.
    model
        The model, or the result of :func:`compile_model`. Default: the model on the context stack.
    family
        "gaussian", or "student_t" with 10 degrees of freedom, for posteriors with heavy tails.

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


def laplace_reference(
    model: pm.Model | CompiledModel | None = None,
    *,
    family: str = "gaussian",
    random_seed: Any = None,
) -> GaussianReference | StudentTReference:
    """Fit a reference to the mode of the posterior and the curvature there.

    Parameters
    ----------
    model
        The model, or the result of :func:`compile_model`. Default: the model on the context stack.
    family
        "gaussian" or "student_t".
    random_seed
        Seed of the prior draws among which the search begins.

    Returns
    -------
    GaussianReference or StudentTReference

    Raises
    ------
    ValueError
        The search finds no mode with positive curvature in all directions.
    NotImplementedError
        The model has discrete variables, or a prior whose density is not normalised.
    """
    compiled = as_compiled(model)
    compiled.require_normalised("A reference other than the prior")
    start = compiled.sample_prior(seed_sequence(random_seed), _STARTS)
    with jax.enable_x64(True):
        log_density = _log_density(compiled)
        first = start[np.nanargmax(np.asarray(jax.vmap(log_density)(jnp.asarray(start))))]
        slope = jax.jit(jax.value_and_grad(lambda x: -log_density(x)))
        found = optimize.minimize(
            lambda x: tuple(np.asarray(v, dtype=float) for v in slope(x)),
            first,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 2000},
        )
        curvature = -np.asarray(jax.hessian(log_density)(jnp.asarray(found.x)))
    try:
        root = np.linalg.cholesky(np.linalg.inv(curvature))
    except np.linalg.LinAlgError:
        raise ValueError(
            "The log density has no mode with positive curvature in all directions near "
            f"x = {found.x}: a Laplace approximation does not exist. Use reference='pilot', or fit "
            "to posterior draws."
        ) from None
    return _member(_checked_family(family), found.x, root)


def fit_to_draws(
    compiled: CompiledModel, draws: np.ndarray, family: str = "gaussian"
) -> GaussianReference | StudentTReference:
    """Fit a reference to draws in the unconstrained space, shape ``(n, d)``."""
    _checked_family(family)
    with jax.enable_x64(True):
        gradient = np.asarray(jax.jit(jax.vmap(jax.grad(_log_density(compiled))))(draws))
    scale = estimate_scale(draws, np.ones(len(draws)), gradient, largest=_MAX_DENSE)
    sound = np.isfinite(gradient).all(axis=1)
    # A Newton step from the mean of the draws: exact for a Gaussian, its noise cancels.
    slope = gradient[sound].mean(axis=0)
    step = scale @ (scale.T @ slope) if scale.ndim == 2 else scale**2 * slope
    return _member(family, draws[sound].mean(axis=0) + step, scale)


def _member(family: str, mean: np.ndarray, scale: np.ndarray) -> Any:
    if family == "gaussian":
        return GaussianReference(mean, scale)
    return StudentTReference(mean, scale)


def _checked_family(family: str) -> str:
    if family not in FAMILIES:
        raise ValueError(f"Unknown `family` {family!r}; expected one of {list(FAMILIES)}.")
    return family


def _log_density(compiled: CompiledModel) -> Callable[[jax.Array], jax.Array]:
    return lambda x: compiled.log_terms(x).log_posterior

"""Fit a reference to draws of the posterior, or to its mode.

Mean and scale come from draws and from the gradients of the log density at them, as the scale of a
kernel does (`preconditioner.py`): for a Gaussian posterior both are exact from few draws. The fit
affects the cost of a run, never the expectation of its estimate (Surjanovic et al. 2022).

The Laplace reference is the same as `pymc_extras.fit_laplace`; it is written out here because it
needs nothing but a mode and a Hessian, which the compiled model has.
"""

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm

from pymc_anneal.adaptation.climb import climb_together
from pymc_anneal.adaptation.preconditioner import bulk_deviation, estimate_scale
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import seed_sequence
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.derivatives import NO_GRADIENT, SMOOTH
from pymc_anneal.model.posterior_draws import posterior_draws
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.paths.geometric import GeometricPath
from pymc_anneal.paths.references import GaussianReference, StudentTReference

Family = Literal["gaussian", "student_t"]
FAMILIES: tuple[Family, ...] = ("gaussian", "student_t")
# Draws to which a reference is fitted: more of them do not change it.
_MAX_DRAWS = 4000
# Largest dimension in which a reference has correlations: its density costs d^2.
MAX_DENSE = 512
# Length of a Newton step from the mean of draws, in their standard deviations, that leaves them.
_OUTSIDE = 3.0
# Prior draws, of which the best is the start of the climb to the mode, and calls of the gradient.
_STARTS, _MAX_CALLS = 64, 2000


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
def laplace_reference(
    *,
    model: pm.Model | CompiledModel | None = None,
    family: Family = "gaussian",
    random_seed: Any = None,
) -> GaussianReference | StudentTReference:
    """Fit a reference to the mode of the posterior and the curvature there.

    Parameters
    ----------
    model : pymc.Model or CompiledModel, optional
        The model, or the result of :func:`compile_model`. Default: the model on the context stack.
    family : {"gaussian", "student_t"}
        Family of the reference.
    random_seed : int, sequence of int, SeedSequence or Generator, optional
        Seed of the prior draws, the best of which starts the search.

    Returns
    -------
    GaussianReference or StudentTReference

    Raises
    ------
    ValueError
        The search finds no mode with positive curvature in all directions.
    NotImplementedError
        The model has discrete variables, a prior whose density is not normalised, or a part
        without second derivatives.
    """
    _check_family(family)
    compiled = as_compiled(model)
    compiled.require_normalised("A reference other than the prior")
    compiled.derivatives.require("A Laplace approximation", SMOOTH)
    draws = compiled.sample_prior(seed_sequence(random_seed), _STARTS)
    target = TargetDensity(GeometricPath(compiled.log_terms), _STARTS)
    start, spread = draws[[np.nanargmax(target.log_density(draws))]], bulk_deviation(draws)
    spread = np.where(spread > 0, spread, 1.0)
    (mode,), _ = climb_together(target.value_and_gradient_singly, start, spread, _MAX_CALLS)
    root = scale_of_curvature(-np.asarray(jax.hessian(_log_density(compiled))(jnp.asarray(mode))))
    if root is None:
        raise ValueError(
            "The log density has no mode with positive curvature in all directions near "
            f"x = {mode}: a Laplace approximation does not exist. Use reference='pilot', or fit "
            "to posterior draws."
        )
    return _build(family, mode, root)


def scale_of_curvature(curvature: np.ndarray) -> np.ndarray | None:
    """Return the lower root of the inverse of a curvature, shape ``(d, d)``.

    None if the curvature is not finite and positive in all directions.
    """
    if not np.isfinite(curvature).all():
        return None
    try:
        return np.linalg.cholesky(np.linalg.inv(curvature))
    except np.linalg.LinAlgError:
        return None


@double_precision
def fit_to_draws(
    compiled: CompiledModel, draws: np.ndarray, family: Family = "gaussian"
) -> GaussianReference | StudentTReference:
    """Fit a reference to draws in the unconstrained space, shape ``(n, d)``."""
    _check_family(family)
    gradient = np.full(draws.shape, np.nan)
    if compiled.derivatives.order > NO_GRADIENT:
        gradient = np.asarray(jax.jit(jax.vmap(jax.grad(_log_density(compiled))))(draws))
    return _build(family, *locate(draws, gradient))


def locate(draws: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return location and scale of a density from draws and its log gradients there.

    Parameters
    ----------
    draws, gradient : ndarray, shape (n, d)
        Rows whose gradient is not finite are left out; if all are, the moments of the draws are
        taken.

    Returns
    -------
    mean : ndarray, shape (d,)
    scale : ndarray, shape (d,) or (d, d)
        With gradients both are exact for a Gaussian density, from any ``d + 1`` draws. A step far
        out of many draws says that an edge ends the density: their moments are taken.
    """
    each, middle = np.ones(len(draws)), draws.mean(axis=0)
    scale = estimate_scale(draws, each, gradient, largest=MAX_DENSE)
    if not np.isfinite(gradient).all(axis=1).any():
        return middle, scale
    mean = newton_step(draws, gradient, scale)
    if len(draws) > 2 * len(mean) and _is_outside(mean - middle, draws):
        return middle, estimate_scale(draws, each, largest=MAX_DENSE)
    return mean, scale


def _is_outside(step: np.ndarray, draws: np.ndarray) -> bool:
    """Whether a step from the mean of draws, shape ``(d,)``, leaves them in some coordinate."""
    largest = np.maximum(np.abs(draws).max(axis=0), np.finfo(float).tiny)
    spread = (draws / largest).std(axis=0)  # squares of 1e300 overflow
    return bool((np.abs(step) / largest > _OUTSIDE * spread).any())


def newton_step(draws: np.ndarray, gradient: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return the end of a Newton step from the mean of draws, shape ``(d,)``.

    It is exact for a Gaussian density of this scale: the noise of the mean cancels.
    """
    finite = np.isfinite(gradient).all(axis=1)
    slope = gradient[finite].mean(axis=0)
    step = scale @ (scale.T @ slope) if scale.ndim == 2 else scale * (scale * slope)
    return np.asarray(draws[finite].mean(axis=0) + step)


def _build(
    family: Family, mean: np.ndarray, scale: np.ndarray
) -> GaussianReference | StudentTReference:
    if family == "gaussian":
        return GaussianReference(mean, scale)
    return StudentTReference(mean, scale)


def _check_family(family: str) -> None:
    if family not in FAMILIES:
        raise ValueError(f"Unknown `family` {family!r}; expected one of {list(FAMILIES)}.")


def _log_density(compiled: CompiledModel) -> Callable[[jax.Array], jax.Array]:
    return lambda x: compiled.log_terms(x).log_posterior

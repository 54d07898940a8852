"""Laplace approximations: a reference from the mode of the posterior and the curvature there.

The same as `pymc_extras.fit_laplace`; it is written out here because it needs nothing but a mode
and a Hessian, which the compiled model has.
"""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm

from pymc_anneal.adaptation.climb import climb_together
from pymc_anneal.adaptation.preconditioner import bulk_deviation
from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import seed_sequence
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.derivatives import SMOOTH
from pymc_anneal.model.recent import as_compiled
from pymc_anneal.paths.geometric import GeometricPath
from pymc_anneal.paths.references import GaussianReference, StudentTReference

Family = Literal["gaussian", "student_t"]
# Prior draws, of which the best is the start of the climb to the mode, and calls of the gradient.
_STARTS, _MAX_CALLS = 64, 2000


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
    reference = reference_of(family)
    compiled = as_compiled(model)
    compiled.require_normalised("A reference other than the prior")
    compiled.derivatives.require("A Laplace approximation", SMOOTH)
    draws = compiled.sample_prior(seed_sequence(random_seed), _STARTS)
    target = TargetDensity(GeometricPath(compiled.log_terms), _STARTS)
    start, spread = draws[[np.nanargmax(target.log_density(draws))]], bulk_deviation(draws)
    spread = np.where(spread > 0, spread, 1.0)
    (mode,), _ = climb_together(target.value_and_gradient_singly, start, spread, _MAX_CALLS)
    hessian = jax.hessian(lambda x: compiled.log_terms(x).log_posterior)(jnp.asarray(mode))
    root = scale_of_curvature(-np.asarray(hessian))
    if root is None:
        raise ValueError(
            "The log density has no mode with positive curvature in all directions near "
            f"x = {mode}: a Laplace approximation does not exist. Use reference='pilot', or fit "
            "to posterior draws."
        )
    return reference(mode, root)


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


def reference_of(family: str) -> type[GaussianReference] | type[StudentTReference]:
    """Return the references of a family."""
    families = {"gaussian": GaussianReference, "student_t": StudentTReference}
    if family not in families:
        raise ValueError(f"Unknown `family` {family!r}; expected one of {list(families)}.")
    return families[family]

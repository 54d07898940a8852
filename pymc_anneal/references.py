"""References other than the prior: normalised densities fitted to what is known of the posterior.

From a reference ``r`` near the posterior the path is short, and its normaliser is known, so the
evidence stays exact; the fit decides only what it costs. Both families live in the unconstrained
space, ``x = m + S z``:

    Gaussian:   log r(x) = -z'z/2 - d/2 log 2 pi - log |S|,
    Student-t:  log r(x) = -(nu + d)/2 log(1 + z'z/nu) + c(nu, d) - log |S|.

``m`` and ``S`` come from draws and from the gradients of the log density at them, as the scale of a
kernel does (:mod:`preconditioning`): for a Gaussian posterior both are exact from few draws. After
Surjanovic et al. (2022), who temper from a variational reference.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm

from jax.scipy.special import gammaln
from scipy import optimize

from pymc_anneal.bridge import posterior_draws
from pymc_anneal.model import CompiledModel, as_compiled
from pymc_anneal.options import seed_sequence
from pymc_anneal.preconditioning import scale_of

__all__ = [
    "GaussianReference",
    "Reference",
    "StudentTReference",
    "fit_reference",
    "fit_to_draws",
    "laplace_reference",
]

FAMILIES = ("gaussian", "student_t")
_DEGREES_OF_FREEDOM = 10.0
_MAX_DRAWS = 4000
_MAX_DENSE = 512  # a density multiplies by the matrix once
_STARTS = 64


class Reference(Protocol):
    """A normalised density to anneal from; a JAX pytree."""

    def log_density(self, position: jax.Array) -> jax.Array:
        """Return the log density, shape ``(n,)``, at ``(n, d)`` positions, in nats."""

    def sample(self, seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        """Draw, shape ``(draws, d)``."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class GaussianReference:
    """A multivariate normal distribution in the unconstrained space.

    Parameters
    ----------
    mean : Array, shape (d,)
    scale : Array, shape (d,) or (d, d)
        Standard deviations, or the lower Cholesky factor of the covariance.
    whitening : Array, optional
        Inverse of ``scale``; computed if left out.
    """

    mean: Any
    scale: Any
    whitening: Any = None

    def __post_init__(self):
        _set_whitening(self)

    def log_density(self, position: jax.Array) -> jax.Array:
        """Return the log density, shape ``(n,)``, at ``(n, d)`` positions, in nats."""
        z, log_volume = _standardised(position, self.mean, self.whitening)
        d = position.shape[1]
        return -0.5 * (z**2).sum(axis=1) - 0.5 * d * jnp.log(2 * jnp.pi) - log_volume

    def sample(self, seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        """Draw, shape ``(draws, d)``."""
        z = np.random.default_rng(seed).standard_normal((draws, len(self.mean)))
        return self.mean + _spread(self.scale, z)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class StudentTReference:
    """A multivariate Student-t distribution in the unconstrained space.

    Parameters
    ----------
    mean : Array, shape (d,)
    scale : Array, shape (d,) or (d, d)
        Scale of each coordinate, or the lower Cholesky factor of the scale matrix.
    degrees_of_freedom : float
    whitening : Array, optional
        Inverse of ``scale``; computed if left out.
    """

    mean: Any
    scale: Any
    degrees_of_freedom: Any = _DEGREES_OF_FREEDOM
    whitening: Any = None

    def __post_init__(self):
        _set_whitening(self)

    def log_density(self, position: jax.Array) -> jax.Array:
        """Return the log density, shape ``(n,)``, at ``(n, d)`` positions, in nats."""
        z, log_volume = _standardised(position, self.mean, self.whitening)
        d, nu = position.shape[1], self.degrees_of_freedom
        constant = gammaln((nu + d) / 2) - gammaln(nu / 2) - 0.5 * d * jnp.log(nu * jnp.pi)
        return -0.5 * (nu + d) * jnp.log1p((z**2).sum(axis=1) / nu) + constant - log_volume

    def sample(self, seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        """Draw, shape ``(draws, d)``."""
        rng = np.random.default_rng(seed)
        z = rng.standard_normal((draws, len(self.mean)))
        mixing = rng.chisquare(self.degrees_of_freedom, (draws, 1)) / self.degrees_of_freedom
        return self.mean + _spread(self.scale, z / np.sqrt(mixing))


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
    scale = scale_of(draws, np.ones(len(draws)), gradient, largest=_MAX_DENSE)
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


def _set_whitening(reference: Any) -> None:
    """Invert the scale once: solving at every density would cost more than the model."""
    if reference.whitening is None:
        scale = np.asarray(reference.scale)
        inverse = np.linalg.inv(scale) if scale.ndim == 2 else 1 / scale
        object.__setattr__(reference, "whitening", inverse)


def _standardised(position, mean, whitening) -> tuple[jax.Array, jax.Array]:
    """Return ``z``, shape ``(n, d)``, and the log volume of the scale."""
    centred = position - mean
    if jnp.ndim(whitening) == 2:
        return centred @ whitening.T, -jnp.log(jnp.diag(jnp.asarray(whitening))).sum()
    return centred * whitening, -jnp.log(jnp.asarray(whitening)).sum()


def _spread(scale: np.ndarray, z: np.ndarray) -> np.ndarray:
    return z @ scale.T if np.ndim(scale) == 2 else z * scale

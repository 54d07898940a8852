"""References: normalised densities other than the prior, from which a path may start.

A path from a reference ``r`` near the posterior is short. The normaliser of ``r`` is known, so the
evidence stays exact. Both families live in the unconstrained space, ``x = m + S z``:

    Gaussian:   log r(x) = -z'z/2 - d/2 log 2 pi - log |S|,
    Student-t:  log r(x) = -(nu + d)/2 log(1 + z'z/nu) + c(nu, d) - log |S|.
"""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.array_namespace import array_namespace, special_functions
from pymc_anneal.base.contracts import Scalar

_Array: TypeAlias = jax.Array | np.ndarray

# Tails heavier than those of a normal distribution, with finite moments up to the ninth.
_DEGREES_OF_FREEDOM = 10.0


class Reference(Protocol):
    """A normalised density in the unconstrained space; a JAX pytree."""

    def log_density(self, position: _Array) -> jax.Array:
        """Return the log density in nats, shape ``(n,)``, at ``(n, d)`` positions.

        Of NumPy's arrays it may be one of NumPy's, which spares compilation.
        """

    def sample(self, seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        """Draw from the density, shape ``(draws, d)``."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class GaussianReference:
    """A multivariate normal distribution in the unconstrained space.

    Parameters
    ----------
    mean : Array, shape (d,)
    scale : float or Array, shape (d,) or (d, d)
        Standard deviations, or the lower Cholesky factor of the covariance. Another root ``S`` of
        the covariance ``S S'`` is replaced by it.
    whitening : Array, shape (d,) or (d, d), optional
        Inverse of ``scale``; default: computed from it.

    Raises
    ------
    ValueError
        The scale is symmetric, as a covariance is, or singular, or does not fit to the mean.
    """

    mean: _Array
    scale: _Array
    whitening: _Array | None = None

    def __post_init__(self) -> None:
        if self.whitening is None:
            _set_scale(self)

    def log_density(self, position: _Array) -> jax.Array:
        """Return the log density in nats, shape ``(n,)``, at ``(n, d)`` positions."""
        z, log_volume = _standardise(position, self.mean, self.whitening)
        d = position.shape[1]
        constant = 0.5 * d * np.log(2 * np.pi)
        with np.errstate(over="ignore"):  # a density of zero
            log_density: jax.Array = -0.5 * (z**2).sum(axis=1) - constant - log_volume
        return log_density

    def sample(self, seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        """Draw from the density, shape ``(draws, d)``."""
        z = np.random.default_rng(seed).standard_normal((draws, len(self.mean)))
        return np.asarray(self.mean + _multiply(self.scale, z))

    def draw(self, key: jax.Array, draws: int) -> jax.Array:
        """Draw from the density by JAX, shape ``(draws, d)``."""
        z = jax.random.normal(key, (draws, len(self.mean)))
        return jnp.asarray(self.mean + _multiply(self.scale, z))


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class StudentTReference:
    """A multivariate Student-t distribution in the unconstrained space.

    Parameters
    ----------
    mean : Array, shape (d,)
        Location.
    scale : float or Array, shape (d,) or (d, d)
        Scale of each coordinate, or the lower Cholesky factor of the scale matrix. Another root
        ``S`` of the scale matrix ``S S'`` is replaced by it.
    degrees_of_freedom : float
    whitening : Array, shape (d,) or (d, d), optional
        Inverse of ``scale``; default: computed from it.

    Raises
    ------
    ValueError
        The scale is symmetric, as a scale matrix is, or singular, or does not fit to the mean; the
        degrees of freedom are not positive.
    """

    mean: _Array
    scale: _Array
    degrees_of_freedom: Scalar = _DEGREES_OF_FREEDOM
    whitening: _Array | None = None

    def __post_init__(self) -> None:
        if self.whitening is None:
            _set_scale(self)
            if not self.degrees_of_freedom > 0:
                raise ValueError(
                    f"`degrees_of_freedom` is {self.degrees_of_freedom}, expected a positive "
                    "number."
                )

    def log_density(self, position: _Array) -> jax.Array:
        """Return the log density in nats, shape ``(n,)``, at ``(n, d)`` positions."""
        z, log_volume = _standardise(position, self.mean, self.whitening)
        d, nu = position.shape[1], self.degrees_of_freedom
        xp = array_namespace(z, nu)
        gammaln = special_functions(xp).gammaln
        constant = gammaln((nu + d) / 2) - gammaln(nu / 2) - 0.5 * d * xp.log(nu * np.pi)
        quadratic = -0.5 * (nu + d) * xp.log1p((z**2).sum(axis=1) / nu)
        log_density: jax.Array = quadratic + constant - log_volume
        return log_density

    def sample(self, seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        """Draw from the density, shape ``(draws, d)``."""
        rng = np.random.default_rng(seed)
        z = rng.standard_normal((draws, len(self.mean)))
        mixing = rng.chisquare(self.degrees_of_freedom, (draws, 1)) / self.degrees_of_freedom
        return np.asarray(self.mean + _multiply(self.scale, z / np.sqrt(mixing)))

    def draw(self, key: jax.Array, draws: int) -> jax.Array:
        """Draw from the density by JAX, shape ``(draws, d)``."""
        key_normal, key_mixing = jax.random.split(key)
        z = jax.random.normal(key_normal, (draws, len(self.mean)))
        nu = jnp.asarray(self.degrees_of_freedom, z.dtype)
        mixing = jax.random.chisquare(key_mixing, nu, (draws, 1)) / nu
        return jnp.asarray(self.mean + _multiply(self.scale, z / jnp.sqrt(mixing)))


def _set_scale(reference: GaussianReference | StudentTReference) -> None:
    """Check the location and the scale of a new reference, and set its scale and whitening."""
    mean, scale = np.asarray(reference.mean), np.asarray(reference.scale)
    if mean.ndim != 1 or not np.isfinite(mean).all():
        raise ValueError(f"`mean` is {mean}, expected finite numbers, shape (d,).")
    d = len(mean)
    if scale.shape not in [(), (d,), (d, d)] or not np.isfinite(scale).all():
        raise ValueError(
            f"`scale` has shape {scale.shape}, expected finite numbers, shape {(d,)} or {(d, d)}."
        )
    root = _checked_root(scale) if scale.ndim == 2 else np.broadcast_to(scale, (d,))
    if not (np.diag(root) > 0 if root.ndim == 2 else root > 0).all():
        raise ValueError("`scale` is zero or negative in some direction, expected positive.")
    object.__setattr__(reference, "scale", root)
    # Kept, because solving at every density would cost more than the model.
    inverse = np.linalg.inv(root) if root.ndim == 2 else 1 / root
    object.__setattr__(reference, "whitening", inverse)


def _checked_root(scale: np.ndarray) -> np.ndarray:
    """Return the lower triangular root of ``S S'`` with a positive diagonal."""
    if not np.triu(scale, 1).any() and (np.diag(scale) > 0).all():
        return scale
    if np.allclose(scale, scale.T) and np.triu(scale, 1).any():
        raise ValueError(
            "`scale` is symmetric, as a covariance is. Of a covariance pass its lower Cholesky "
            "factor, `numpy.linalg.cholesky(covariance)`; of a symmetric root S pass "
            "`numpy.linalg.cholesky(S @ S.T)`."
        )
    return lower_root(scale)


def lower_root(root: np.ndarray) -> np.ndarray:
    """Return the lower triangular root of ``A A'``, shape ``(d, d)``; rounding does not stop it."""
    upper = np.asarray(np.linalg.qr(root.T, mode="r"))  # A' = Q R gives A A' = R' R
    return np.asarray((upper * np.where(np.diag(upper) < 0, -1, 1)[:, None]).T)


def _standardise(position: _Array, mean: _Array, whitening: _Array | None) -> tuple[_Array, _Array]:
    """Return ``z``, shape ``(n, d)``, of positions, and ``log |S|``."""
    assert whitening is not None  # set by __post_init__
    xp, centred = array_namespace(position, mean, whitening), position - mean
    if whitening.ndim == 2:
        return centred @ whitening.T, -xp.log(xp.diag(whitening)).sum()
    return centred * whitening, -xp.log(whitening).sum()


def _multiply(scale: _Array, z: _Array) -> _Array:
    """Return ``S z``, shape ``(draws, d)``."""
    return z @ scale.T if np.ndim(scale) == 2 else z * scale

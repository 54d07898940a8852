"""References: normalised densities other than the prior, from which a path starts.

From a reference ``r`` near the posterior the path is short, and its normaliser is known, so the
evidence stays exact. Both families live in the unconstrained space, ``x = m + S z``:

    Gaussian:   log r(x) = -z'z/2 - d/2 log 2 pi - log |S|,
    Student-t:  log r(x) = -(nu + d)/2 log(1 + z'z/nu) + c(nu, d) - log |S|.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jax.scipy.special import gammaln

_DEGREES_OF_FREEDOM = 10.0


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

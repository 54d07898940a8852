"""Paths between two Gaussians: averages of natural parameters or of moments.

The Gaussian with full covariance is the exponential family ``exp(eta.T(x)) / Z(eta)`` (Grosse,
Maddison & Salakhutdinov 2013, eq. 6) of the statistics ``x`` and ``-x x'/2``, with natural
parameters ``(Lambda mu, Lambda)``, ``Lambda`` the precision. Averages of the natural parameters
give the geometric path (eq. 7). Averages of the moments (eq. 8) give the path (eq. 9 and 10)

    mu(beta) = (1 - beta) mu_0 + beta mu_1,
    Sigma(beta) = (1 - beta) Sigma_0 + beta Sigma_1 + beta (1 - beta) (mu_1 - mu_0)(mu_1 - mu_0)'.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.contracts import Scalar
from pymc_anneal.paths.custom import derivative


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Gaussian:
    """A multivariate normal distribution as a member of an exponential family.

    Parameters
    ----------
    mean : Array, shape (d,)
    covariance : Array, shape (d, d)
    """

    mean: jax.Array | np.ndarray
    covariance: jax.Array | np.ndarray

    @property
    def natural(self) -> tuple[jax.Array, jax.Array]:
        """Natural parameters ``Lambda mu``, shape ``(d,)``, and ``Lambda``, shape ``(d, d)``."""
        precision = jnp.linalg.inv(self.covariance)
        return precision @ self.mean, precision

    @classmethod
    def from_natural(cls, shift: jax.Array, precision: jax.Array) -> "Gaussian":
        """Return the Gaussian with natural parameters ``Lambda mu`` and ``Lambda``."""
        covariance = jnp.linalg.inv(precision)
        return cls(covariance @ shift, covariance)

    @property
    def moments(self) -> tuple[jax.Array, jax.Array]:
        """Expected statistics ``E[x]``, shape ``(d,)``, and ``-E[x x']/2``, shape ``(d, d)``."""
        mean = jnp.asarray(self.mean)
        return mean, -0.5 * (jnp.outer(mean, mean) + self.covariance)

    def log_normaliser(self) -> jax.Array:
        """Return ``log int exp(eta.T(x)) dx``, in nats."""
        shift, precision = self.natural
        d = len(self.mean)
        log_volume = 0.5 * (d * jnp.log(2 * jnp.pi) - jnp.linalg.slogdet(precision)[1])
        log_normaliser: jax.Array = 0.5 * shift @ self.mean + log_volume
        return log_normaliser

    def sample(self, key: jax.Array, n: int) -> jax.Array:
        """Draw from the distribution, shape ``(n, d)``."""
        noise = jax.random.normal(key, (n, len(self.mean)))
        draws: jax.Array = self.mean + noise @ jnp.linalg.cholesky(self.covariance).T
        return draws


Average: TypeAlias = Callable[[Gaussian, Gaussian, Scalar], Gaussian]


def geometric_average(first: Gaussian, second: Gaussian, beta: Scalar) -> Gaussian:
    """Return the Gaussian of averaged natural parameters (Grosse et al. 2013, eq. 7)."""
    averaged = (
        (1 - beta) * a + beta * b for a, b in zip(first.natural, second.natural, strict=True)
    )
    return Gaussian.from_natural(*averaged)


def moment_average(first: Gaussian, second: Gaussian, beta: Scalar) -> Gaussian:
    """Return the Gaussian of averaged moments (Grosse et al. 2013, eq. 9 and 10)."""
    between = jnp.asarray(second.mean - first.mean)
    spread = beta * (1 - beta) * jnp.outer(between, between)
    covariance = (1 - beta) * first.covariance + beta * second.covariance + spread
    return Gaussian((1 - beta) * first.mean + beta * second.mean, covariance)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class GaussianPath:
    """Path between two Gaussians of unnormalised densities ``exp(eta(beta).T(x))``.

    Parameters
    ----------
    first, second : Gaussian
        Distributions at 0 and at 1.
    average : callable
        Distribution between them: :func:`geometric_average` or :func:`moment_average`.

    References
    ----------
    Grosse, Maddison & Salakhutdinov (2013), Annealing between distributions by averaging moments,
    section 4.
    """

    first: Gaussian
    second: Gaussian
    average: Average = field(metadata={"static": True})

    def at(self, beta: Scalar) -> Gaussian:
        """Return the distribution at ``beta``."""
        return self.average(self.first, self.second, beta)

    def evaluate(self, position: jax.Array) -> jax.Array:
        """Return the positions, shape ``(n, d)``, from which the statistics follow."""
        return position

    def log_density(self, terms: jax.Array, beta: Scalar) -> jax.Array:
        """Return ``eta(beta).T(x)``, shape ``(n,)``."""
        return _inner_product(*self.at(beta).natural, terms)

    def log_ratio(self, terms: jax.Array, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``(eta(stop) - eta(start)).T(x)``, shape ``(n,)``."""
        (h0, p0), (h1, p1) = self.at(start).natural, self.at(stop).natural
        return _inner_product(h1 - h0, p1 - p0, terms)

    def velocity(self, terms: jax.Array, beta: Scalar) -> jax.Array:
        """Return the derivative of ``log f_beta`` in ``beta``, shape ``(n,)``."""
        return derivative(lambda b: self.log_density(terms, b), beta)


def _inner_product(shift: jax.Array, precision: jax.Array, x: jax.Array) -> jax.Array:
    """Return ``eta.T(x)``, shape ``(n,)``, for positions of shape ``(n, d)``."""
    return x @ shift - 0.5 * ((x @ precision) * x).sum(axis=-1)

"""Exponential families ``h(x) exp(eta.T(x)) / Z(eta)``: natural parameters and moments.

The full-covariance Gaussian, with statistics ``x`` and ``-x x'/2``, has natural parameters
``(Lambda mu, Lambda)``, ``Lambda`` the precision. Averages of the natural parameters give the
geometric path; averages of the moments (Grosse, Maddison & Salakhutdinov 2013, eq. 9 and 10)

    mu(beta) = (1 - beta) mu_0 + beta mu_1,
    Sigma(beta) = (1 - beta) Sigma_0 + beta Sigma_1 + beta (1 - beta) (mu_1 - mu_0)(mu_1 - mu_0)'.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from pymc_anneal.base.contracts import Scalar


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Gaussian:
    """A multivariate normal distribution.

    Parameters
    ----------
    mean : Array, shape (d,)
    covariance : Array, shape (d, d)
    """

    mean: Any
    covariance: Any

    @property
    def natural(self) -> tuple[jax.Array, jax.Array]:
        """Natural parameters ``Lambda mu``, shape ``(d,)``, and ``Lambda``, shape ``(d, d)``."""
        precision = jnp.linalg.inv(self.covariance)
        return precision @ self.mean, precision

    @classmethod
    def from_natural(cls, shift: jax.Array, precision: jax.Array) -> "Gaussian":
        """Return the Gaussian of natural parameters."""
        covariance = jnp.linalg.inv(precision)
        return cls(covariance @ shift, covariance)

    @property
    def moments(self) -> tuple[jax.Array, jax.Array]:
        """Expected statistics ``E[x]`` and ``-E[x x']/2``."""
        return self.mean, -0.5 * (self.covariance + jnp.outer(self.mean, self.mean))

    def log_normaliser(self) -> jax.Array:
        """``log int exp(eta.T(x)) dx``, in nats."""
        shift, precision = self.natural
        d = len(self.mean)
        log_volume = 0.5 * (d * jnp.log(2 * jnp.pi) - jnp.linalg.slogdet(precision)[1])
        return 0.5 * shift @ self.mean + log_volume

    def sample(self, key: jax.Array, draws: int) -> jax.Array:
        """Draw, shape ``(draws, d)``."""
        noise = jax.random.normal(key, (draws, len(self.mean)))
        return self.mean + noise @ jnp.linalg.cholesky(self.covariance).T


def geometric_average(first: Gaussian, second: Gaussian, beta: Scalar) -> Gaussian:
    """Average the natural parameters."""
    averaged = (
        (1 - beta) * a + beta * b for a, b in zip(first.natural, second.natural, strict=True)
    )
    return Gaussian.from_natural(*averaged)


def moment_average(first: Gaussian, second: Gaussian, beta: Scalar) -> Gaussian:
    """Average the moments (Grosse et al. 2013, eq. 9 and 10)."""
    between = second.mean - first.mean
    spread = beta * (1 - beta) * jnp.outer(between, between)
    covariance = (1 - beta) * first.covariance + beta * second.covariance + spread
    return Gaussian((1 - beta) * first.mean + beta * second.mean, covariance)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class GaussianPath:
    """Path of normal distributions, densities without their normalisers.

    Parameters
    ----------
    first, second : Gaussian
        The ends.
    moments : bool
        Average moments; else natural parameters.
    """

    first: Gaussian
    second: Gaussian
    moments: Any

    def at(self, beta: Scalar) -> Gaussian:
        """Return the distribution at ``beta``."""
        natural = geometric_average(self.first, self.second, beta)
        averaged = moment_average(self.first, self.second, beta)
        return jax.tree.map(lambda m, n: jnp.where(self.moments, m, n), averaged, natural)

    def evaluate(self, position: jax.Array) -> jax.Array:
        """Return the positions: the statistics follow from them at once."""
        return position

    def log_density(self, terms: jax.Array, beta: Scalar) -> jax.Array:
        """Return ``eta(beta).T(x)``, shape ``(n,)``."""
        shift, precision = self.at(beta).natural
        return terms @ shift - 0.5 * ((terms @ precision) * terms).sum(axis=-1)

    def log_ratio(self, terms: jax.Array, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``(eta(stop) - eta(start)).T(x)``, shape ``(n,)``."""
        (h0, p0), (h1, p1) = self.at(start).natural, self.at(stop).natural
        return terms @ (h1 - h0) - 0.5 * ((terms @ (p1 - p0)) * terms).sum(axis=-1)

    def velocity(self, terms: jax.Array, beta: Scalar) -> jax.Array:
        """Return the derivative of ``log f_beta`` with respect to ``beta``, shape ``(n,)``."""
        beta = jnp.asarray(beta)
        return jax.jvp(lambda b: self.log_density(terms, b), (beta,), (jnp.ones_like(beta),))[1]

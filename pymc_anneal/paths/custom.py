"""Path given by a log density of position and inverse temperature."""

from collections.abc import Callable
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp

from pymc_anneal.base.contracts import Scalar


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class CustomPath:
    """A path defined by a log density; JAX differentiates it for the velocity.

    Parameters
    ----------
    log_density_fn : callable
        JAX function ``(x, beta)`` of one unconstrained position of shape ``(d,)`` and the inverse
        temperature, which returns the unnormalised log density ``log f_beta(x)`` in nats. It must
        be the log prior at 0 and the log prior plus the log likelihood at 1, as
        :attr:`CompiledModel.log_terms` returns them, and differentiable in both arguments.

    Examples
    --------
    >>> terms = pymc_anneal.compile_model(model).log_terms
    >>> def squared(x, beta):
    ...     log_prior, log_likelihood = terms(x)
    ...     return log_prior + beta**2 * log_likelihood
    >>> pymc_anneal.sample_ais(model=model, path=pymc_anneal.CustomPath(squared))
    """

    log_density_fn: Callable[[jax.Array, Scalar], jax.Array] = field(metadata={"static": True})

    def evaluate(self, position: jax.Array) -> jax.Array:
        """Return the positions, shape ``(n, d)``: all other terms depend on ``beta``."""
        return position

    def log_density(self, terms: jax.Array, beta: Scalar) -> jax.Array:
        """Return ``log f_beta``, shape ``(n,)``."""
        return jax.vmap(self.log_density_fn, (0, None))(terms, beta)

    def log_ratio(self, terms: jax.Array, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``log f_stop - log f_start``, shape ``(n,)``."""
        change = self.log_density(terms, stop) - self.log_density(terms, start)
        # Both densities are zero: the ratio is undefined, and the particle already has no weight.
        return jnp.where(stop == start, 0.0, jnp.where(jnp.isnan(change), -jnp.inf, change))

    def velocity(self, terms: jax.Array, beta: Scalar) -> jax.Array:
        """Return the derivative of ``log f_beta`` in ``beta``, shape ``(n,)``."""
        return derivative(lambda b: self.log_density(terms, b), beta)


def derivative(function: Callable[[jax.Array], jax.Array], at: Scalar) -> jax.Array:
    """Return the derivative of a function of one number, of the shape of its value."""
    at = jnp.asarray(at, dtype=jnp.result_type(float))
    slope: jax.Array = jax.jvp(function, (at,), (jnp.ones_like(at),))[1]
    return slope

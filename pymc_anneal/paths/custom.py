"""Any path that is given by a log density in the position and in beta."""

from collections.abc import Callable
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp

from pymc_anneal.base.contracts import Scalar


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class CustomPath:
    """A path from its log density; the velocity is its derivative, by JAX.

    Parameters
    ----------
    density
        JAX function of one unconstrained position of shape ``(d,)`` and of ``beta``, to the log
        density of the path. It has to be the log prior at 0 and the log prior plus the log
        likelihood at 1, as :attr:`CompiledModel.log_terms` gives them, and differentiable in both.

    Examples
    --------
    >>> terms = pymc_anneal.compile_model(model).log_terms
    >>> def squared(x, beta):
    ...     log_prior, log_likelihood = terms(x)
    ...     return log_prior + beta**2 * log_likelihood
    >>> pymc_anneal.sample_ais(model=model, path=pymc_anneal.CustomPath(squared))
    """

    density: Callable[[jax.Array, Scalar], jax.Array] = field(metadata={"static": True})

    def evaluate(self, position: jax.Array) -> jax.Array:
        """Return the positions: all else depends on ``beta``."""
        return position

    def log_density(self, terms: jax.Array, beta: Scalar) -> jax.Array:
        """Return ``log f_beta``, shape ``(n,)``."""
        return jax.vmap(self.density, (0, None))(terms, beta)

    def log_ratio(self, terms: jax.Array, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``log f_stop - log f_start``, shape ``(n,)``."""
        change = self.log_density(terms, stop) - self.log_density(terms, start)
        # Where both densities are zero there is no ratio, and no particle with a weight.
        return jnp.where(stop == start, 0.0, jnp.where(jnp.isnan(change), -jnp.inf, change))

    def velocity(self, terms: jax.Array, beta: Scalar) -> jax.Array:
        """Return ``d/dbeta log f_beta``, shape ``(n,)``."""
        beta = jnp.asarray(beta, dtype=jnp.result_type(float))
        return jax.jvp(lambda b: self.log_density(terms, b), (beta,), (jnp.ones_like(beta),))[1]

"""Geometric paths: log densities linear in ``beta``.

From the prior (power posteriors), with the log likelihood ``V``:

    log f_beta(x) = log prior(x) + beta V(x),    v_beta(x) = V(x),

the exponential family with the prior as base measure and ``V`` as statistic, so
``d/dbeta E_beta[V] = Var_beta[V] = g(beta)`` (Grosse, Maddison & Salakhutdinov 2013, section 3).
From another normalised reference ``r``, with ``log prior + V - log r`` in the place of ``V``:

    log f_beta(x) = (1 - beta) log r(x) + beta (log prior(x) + V(x)).

A share of the prior in the reference, ``r = w_0 prior + (1 - w_0) q``, bounds the ratio of target
to reference by the likelihood over ``w_0`` wherever ``q`` misses the posterior.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from jax.tree_util import Partial

from pymc_anneal.base.batches import in_parts
from pymc_anneal.base.contracts import NEGLIGIBLE, LogTerms, Scalar, rejected_nan
from pymc_anneal.paths.references import Reference


def as_pytree(function: Callable[[jax.Array], LogTerms]) -> Callable[[jax.Array], LogTerms]:
    """Make a function a pytree without leaves, unless it is one; leave anything else as it is."""
    # JAX rebuilds paths with placeholders, which are not callable, in the place of functions.
    if isinstance(function, Partial) or not callable(function):
        return function
    wrapped: Callable[[jax.Array], LogTerms] = Partial(function)  # type: ignore[no-untyped-call]
    return wrapped


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GeometricPath:
    """Geometric path from the prior to the posterior.

    Parameters
    ----------
    log_terms : callable
        JAX function of one unconstrained position of shape ``(d,)`` that returns
        :class:`~pymc_anneal.base.LogTerms`, such as :attr:`CompiledModel.log_terms`. Arrays that a
        ``jax.tree_util.Partial`` binds are leaves of the path: other values need no compilation.

    References
    ----------
    Grosse, Maddison & Salakhutdinov (2013), Annealing between distributions by averaging moments,
    eq. 1.
    """

    log_terms: Callable[[jax.Array], LogTerms]
    # log f_beta is a sum over the terms of log prior and log likelihood, for each of them alone.
    separable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "log_terms", as_pytree(self.log_terms))

    def evaluate(self, position: jax.Array) -> LogTerms:
        """Return log prior and log likelihood, shape ``(n,)`` each, at ``(n, d)`` positions."""
        terms: LogTerms = in_parts(jax.vmap(self.log_terms), position, self.log_terms)
        return terms

    def log_density(self, terms: LogTerms, beta: Scalar) -> jax.Array:
        """Return ``log prior + beta V``, shape ``(n,)``; at 0 the log prior, even if V = -inf."""
        return terms.log_prior + jnp.where(beta == 0, 0.0, beta * terms.log_likelihood)

    def log_ratio(self, terms: LogTerms, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``(stop - start) V``, shape ``(n,)``."""
        return jnp.where(stop == start, 0.0, (stop - start) * terms.log_likelihood)

    def velocity(self, terms: LogTerms, beta: Scalar) -> jax.Array:
        """Return ``V``, shape ``(n,)``."""
        return terms.log_likelihood


class ReferenceTerms(NamedTuple):
    """Log densities of both ends of a path from a reference.

    Attributes
    ----------
    log_reference : Array, shape (n,)
        Normalised log density of the reference, in nats.
    log_target : Array, shape (n,)
        Log prior plus log likelihood, in nats.
    rejected : Array of bool, shape (n,), or None
        As in `ScreenedTerms`.
    """

    log_reference: jax.Array
    log_target: jax.Array
    rejected: jax.Array | None = None


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ReferencePath:
    """Geometric path from a reference other than the prior to the posterior.

    Parameters
    ----------
    log_terms : callable
        As for :class:`GeometricPath`.
    reference : Reference
        A normalised density, such as :class:`GaussianReference`; see :func:`fit_reference`.
    prior_share : float
        Share of the prior in the reference, in [0, 1); the start positions must have it too.
    """

    log_terms: Callable[[jax.Array], LogTerms]
    reference: Reference
    prior_share: Scalar = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "log_terms", as_pytree(self.log_terms))

    def evaluate(self, position: jax.Array) -> ReferenceTerms:
        """Return the log densities of both ends at ``(n, d)`` positions."""
        terms = in_parts(jax.vmap(self.log_terms), position, self.log_terms)
        share = jnp.asarray(self.prior_share, position.dtype)
        log_reference = jnp.logaddexp(
            jnp.log1p(-share) + self.reference.log_density(position),
            jnp.log(share) + terms.log_prior,
        )
        negligible = terms.log_prior < log_reference - NEGLIGIBLE
        zero = negligible & jnp.isnan(terms.log_likelihood)
        log_target = jnp.where(zero, -jnp.inf, terms.log_posterior)
        return ReferenceTerms(log_reference, log_target, rejected_nan(terms))

    def log_density(self, terms: ReferenceTerms, beta: Scalar) -> jax.Array:
        """Return ``(1 - beta) log r + beta log target``, shape ``(n,)``; at 0 ``log r``."""
        log_density: jax.Array = (1 - beta) * terms.log_reference + jnp.where(
            beta == 0, 0.0, beta * terms.log_target
        )
        return log_density

    def log_ratio(self, terms: ReferenceTerms, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``(stop - start) (log target - log r)``, shape ``(n,)``."""
        return jnp.where(stop == start, 0.0, (stop - start) * self.velocity(terms, stop))

    def velocity(self, terms: ReferenceTerms, beta: Scalar) -> jax.Array:
        """Return ``log target - log r``, shape ``(n,)``."""
        return terms.log_target - terms.log_reference

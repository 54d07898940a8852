"""Paths of q-averages (Brekelmans et al. 2020, eq. 9): between arithmetic and geometric averages.

    log f_beta = log f_0 + log(1 - beta + beta e^{(1-q) l}) / (1 - q) + beta c,

    l = log f_1 - log f_0 - c,

the geometric path for ``q -> 1`` and mixtures for ``q = 0``. The path depends on the level ``c`` of
the target, which ``log Z`` of the pilot makes that of a density; ``beta c`` puts it back.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pymc_anneal.base.contracts import Path, Scalar

_UNDERFLOW = -700.0  # where an exponential is about to become zero


class QTerms(NamedTuple):
    """Log density of the reference, and log ratio of the target to it."""

    log_base: jax.Array
    log_ratio: jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class QAveragePath:
    """Path of q-averages.

    Parameters
    ----------
    base : Path
        Geometric path between the same ends.
    q : float
        Below 1.
    level : float
        ``c``, about the log evidence.
    """

    base: Path
    q: Any
    level: Any = 0.0

    def evaluate(self, position: jax.Array) -> QTerms:
        """Return the terms at ``(n, d)`` positions."""
        terms = self.base.evaluate(position)
        return QTerms(self.base.log_density(terms, 0.0), self.base.velocity(terms, 0.0))

    def log_density(self, terms: QTerms, beta: Scalar) -> jax.Array:
        """Return ``log f_beta``, shape ``(n,)``."""
        return terms.log_base + self._raised(terms, beta)

    def log_ratio(self, terms: QTerms, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``log f_stop - log f_start``, shape ``(n,)``."""
        far = self._raised(terms, stop) - self._raised(terms, start)
        # The argument of the log is linear in beta; where little is left of it, far is as good.
        growth = (stop - start) * self._growth(terms, start)
        near = jnp.log1p(jnp.maximum(growth, -0.5)) / (1 - self.q) + (stop - start) * self.level
        change = jnp.where(growth > -0.5, near, far)
        return jnp.where(stop == start, 0.0, jnp.where(jnp.isnan(change), -jnp.inf, change))

    def velocity(self, terms: QTerms, beta: Scalar) -> jax.Array:
        """Return ``(e^a - 1) / ((1 - beta + beta e^a) (1 - q)) + c``, ``a = (1 - q) l``."""
        return self._growth(terms, beta) / (1 - self.q) + self.level

    def _growth(self, terms: QTerms, beta: Scalar) -> jax.Array:
        a = self._power(terms)
        # Divided by the larger of 1 and e^a, so that nothing overflows.
        small = jnp.exp(-jnp.abs(a))
        rising = (1 - small) / ((1 - beta) * small + beta)
        falling = (small - 1) / (1 - beta + beta * small)
        return jnp.where(a > 0, rising, falling)

    def _power(self, terms: QTerms) -> jax.Array:
        return (1 - self.q) * (terms.log_ratio - self.level)

    def _raised(self, terms: QTerms, beta: Scalar) -> jax.Array:
        a, beta = self._power(terms), jnp.asarray(beta, dtype=terms.log_ratio.dtype)
        lost = (a < _UNDERFLOW) & (beta == 1)
        small = jnp.where(lost, 1.0, jnp.exp(-jnp.abs(a)))
        rising = a + jnp.log(beta + (1 - beta) * small)
        falling = jnp.where(lost, a, jnp.log(1 - beta + beta * small))
        inside = jnp.where(a > 0, rising, falling) / (1 - self.q)
        return jnp.where(beta == 0, 0.0, inside + beta * self.level)

"""Paths of q-averages, between arithmetic and geometric averages (Brekelmans et al. 2020, eq. 9).

    log f_beta = log f_0 + log(1 - beta + beta e^a) / (1 - q) + beta c,
    a = (1 - q) (log f_1 - log f_0 - c).

``q -> 1`` gives the geometric path and ``q = 0`` a mixture. A q-average depends on the constant
factor of ``f_1``: subtracting ``c``, an estimate of ``log Z``, from ``log f_1`` gives it about the
same mass as ``f_0``, and ``beta c`` restores the end at 1.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from pymc_anneal.base.contracts import Path, Scalar, rejected_nan

# Smallest exponent ``a``: exp(-708) is the smallest normal double-precision number.
_MIN_EXPONENT = -700.0


class QTerms(NamedTuple):
    """Terms of a path of q-averages.

    Attributes
    ----------
    log_base : Array, shape (n,)
        Log density of the reference, ``log f_0``, in nats.
    log_ratio : Array, shape (n,)
        ``log f_1 - log f_0``, in nats.
    rejected : Array of bool, shape (n,), or None
        As in `ScreenedTerms`.
    """

    log_base: jax.Array
    log_ratio: jax.Array
    rejected: jax.Array | None = None


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class QAveragePath:
    """Path of q-averages.

    Parameters
    ----------
    base : Path
        Geometric path between the same ends.
    q : float
        Order of the average, below 1.
    log_level : float
        Constant ``c``, in nats: an estimate of the log evidence.

    References
    ----------
    Brekelmans, Masrani, Bui, Wood, Galstyan, Ver Steeg & Nielsen (2020), Annealed importance
    sampling with q-paths, eq. 9.
    """

    base: Path
    q: Scalar
    log_level: Scalar = 0.0

    def evaluate(self, position: jax.Array) -> QTerms:
        """Return the terms at ``(n, d)`` positions."""
        terms = self.base.evaluate(position)
        log_base, log_ratio = self.base.log_density(terms, 0.0), self.base.velocity(terms, 0.0)
        return QTerms(log_base, log_ratio, rejected_nan(terms))

    def log_density(self, terms: QTerms, beta: Scalar) -> jax.Array:
        """Return ``log f_beta``, shape ``(n,)``."""
        return terms.log_base + self._log_ratio_to_base(terms, beta)

    def log_ratio(self, terms: QTerms, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``log f_stop - log f_start``, shape ``(n,)``."""
        far = self._log_ratio_to_base(terms, stop) - self._log_ratio_to_base(terms, start)
        # The argument of the logarithm is linear in beta. Its relative growth gives short steps to
        # all digits; if the argument shrinks by more than half, the difference is as accurate.
        growth = (stop - start) * self._growth_rate(terms, start)
        near = jnp.log1p(jnp.maximum(growth, -0.5)) / (1 - self.q) + (stop - start) * self.log_level
        change = jnp.where(growth > -0.5, near, far)
        return jnp.where(stop == start, 0.0, jnp.where(jnp.isnan(change), -jnp.inf, change))

    def velocity(self, terms: QTerms, beta: Scalar) -> jax.Array:
        """Return ``(e^a - 1) / ((1 - beta + beta e^a) (1 - q)) + c``, shape ``(n,)``."""
        velocity: jax.Array = self._growth_rate(terms, beta) / (1 - self.q) + self.log_level
        return velocity

    def _exponent(self, terms: QTerms) -> jax.Array:
        """Return ``a``, shape ``(n,)``."""
        a: jax.Array = (1 - self.q) * (terms.log_ratio - self.log_level)
        return a

    def _growth_rate(self, terms: QTerms, beta: Scalar) -> jax.Array:
        """Return ``(e^a - 1) / (1 - beta + beta e^a)``, shape ``(n,)``."""
        a = self._exponent(terms)
        # Numerator and denominator are divided by the larger of 1 and e^a to avoid overflow.
        small = jnp.exp(-jnp.abs(a))
        rising = (1 - small) / ((1 - beta) * small + beta)
        falling = (small - 1) / (1 - beta + beta * small)
        return jnp.where(a > 0, rising, falling)

    def _log_ratio_to_base(self, terms: QTerms, beta: Scalar) -> jax.Array:
        """Return ``log f_beta - log f_0``, shape ``(n,)``."""
        a, beta = self._exponent(terms), jnp.asarray(beta, dtype=terms.log_ratio.dtype)
        underflow = (a < _MIN_EXPONENT) & (beta == 1)
        small = jnp.where(underflow, 1.0, jnp.exp(-jnp.abs(a)))
        rising = a + jnp.log(beta + (1 - beta) * small)
        falling = jnp.where(underflow, a, jnp.log(1 - beta + beta * small))
        inside = jnp.where(a > 0, rising, falling) / (1 - self.q)
        return jnp.where(beta == 0, 0.0, inside + beta * self.log_level)

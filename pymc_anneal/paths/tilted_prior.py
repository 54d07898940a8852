"""The tilted prior: an exponential family that contains both the prior and the posterior.

    p_eta(x) ~ prior(x) exp(eta.T(x)),    T(x) = (V, s) or (V, s, s^2) or (V, s, s s'),

with the log likelihood ``V`` and standardised coordinates ``s`` of ``x``. ``eta = 0`` is the prior
and ``eta = (1, 0, ..., 0)`` the posterior, so for any model a curve between the two in this family
is a path. Along averages of the moments ``E[T]`` (eq. 8 of Grosse, Maddison & Salakhutdinov 2013)
it is the moment-averaged path.

Linear tilts move the prior and keep its curvature: a log-concave density stays log-concave. Squares
also stretch it until it spans prior and posterior; if the likelihood is far from quadratic, they
may match an average of moments by two separate modes, between which no transition moves.

The tilt acts on coordinates ``u`` in which the prior has light tails (:class:`TailTransform`),
since a linear tilt of a heavy tail has a second mode. Standardised to ``z``, they are bounded
smoothly, ``s = z / (1 + (z / c)^4)^(1/4)``: within the range of prior and posterior ``s`` is
practically ``z``, and far outside it the tilt is bounded, so that every ``eta`` with
``eta_V >= 0`` is a proper density.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.contracts import Path, rejected_nan
from pymc_anneal.paths.tail_transform import TailTransform

Statistics: TypeAlias = Literal["linear", "squares", "products"]

# Bound of the standardised coordinates, in units of the range of prior and posterior draws.
_BOUND = 4.0


class TiltedTerms(NamedTuple):
    """Terms of the tilted prior, which serve every ``eta``.

    Attributes
    ----------
    log_base : Array, shape (n,)
        Log density of the prior or reference, in nats.
    statistics : Array, shape (n, p)
        ``T``, the log likelihood first.
    rejected : Array of bool, shape (n,), or None
        As in `ScreenedTerms`.
    """

    log_base: jax.Array
    statistics: jax.Array
    rejected: jax.Array | None = None


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class TiltedPrior:
    """Exponential family of the prior tilted by the likelihood and by bounded coordinates.

    Parameters
    ----------
    base : Path
        Geometric path from the reference to the posterior, whose velocity is ``V``.
    centre, scale, bound : Array, shape (d,)
        ``z = (u - centre) / scale``, and ``c``.
    statistics : {"linear", "squares", "products"}
        Statistics beside ``V``: ``s``; ``s`` and its squares; ``s`` and all products of two.
    tail_transform : TailTransform, optional
        Map from ``x`` to ``u``; default: ``u = x``.
    """

    base: Path
    centre: jax.Array | np.ndarray
    scale: jax.Array | np.ndarray
    bound: jax.Array | np.ndarray
    statistics: Statistics = field(default="linear", metadata={"static": True})
    tail_transform: TailTransform | None = None

    @classmethod
    def around(
        cls, base: Path, first: np.ndarray, last: np.ndarray, statistics: Statistics = "linear"
    ) -> "TiltedPrior":
        """Return the family standardised to draws of both ends, shape ``(n, d)`` each."""
        n, tail_transform = min(len(first), len(last)), TailTransform.from_draws(first)
        both = np.asarray(tail_transform(np.concatenate([first[:n], last[:n]])))
        low, centre, high = np.quantile(both, [0.16, 0.5, 0.84], axis=0)
        scale = np.where(high > low, 0.5 * (high - low), 1.0)
        span = np.quantile(np.abs(both - centre) / scale, 0.98, axis=0)
        bound = _BOUND * np.maximum(span, 1.0)
        return cls(base, centre, scale, bound, statistics, tail_transform)

    def evaluate(self, position: jax.Array) -> TiltedTerms:
        """Return the terms at ``(n, d)`` positions."""
        terms = self.base.evaluate(position)
        u = position if self.tail_transform is None else self.tail_transform(position)
        z = (u - self.centre) / self.scale
        s = z / (1 + (z / self.bound) ** 4) ** 0.25
        log_likelihood = self.base.velocity(terms, 0.0)
        parts = [log_likelihood[:, None], s, STATISTICS[self.statistics](s)]
        log_base, statistics = self.base.log_density(terms, 0.0), jnp.concatenate(parts, axis=1)
        return TiltedTerms(log_base, statistics, rejected_nan(terms))

    @property
    def size(self) -> int:
        """Number of statistics ``p``."""
        d = len(self.centre)
        return 1 + d + STATISTICS[self.statistics](jnp.zeros((1, d))).shape[1]

    @property
    def posterior(self) -> np.ndarray:
        """Natural parameters of the posterior, shape ``(p,)``; those of the prior are 0."""
        posterior: np.ndarray = np.eye(1, self.size)[0]
        return posterior


def _products(s: jax.Array) -> jax.Array:
    i, j = np.tril_indices(s.shape[1])
    return s[:, i] * s[:, j]


# Statistics beside the log likelihood and the coordinates, from ``s`` of shape (n, d).
STATISTICS: dict[Statistics, Callable[[jax.Array], jax.Array]] = {
    "linear": lambda s: s[:, :0],
    "squares": lambda s: s**2,
    "products": _products,
}


def inner_product(eta: jax.Array, statistics: jax.Array) -> jax.Array:
    """Return ``eta.T``, shape ``(n,)``; -inf at zero likelihood unless all of ``eta`` is zero.

    Parameters
    ----------
    eta : Array, shape (p,)
    statistics : Array, shape (n, p)
        The log likelihood first.
    """
    log_likelihood = statistics[:, 0]
    dead = jnp.isneginf(log_likelihood)
    inner = eta[0] * jnp.where(dead, 0.0, log_likelihood) + statistics[:, 1:] @ eta[1:]
    return jnp.where(dead & (eta != 0).any(), -jnp.inf, inner)

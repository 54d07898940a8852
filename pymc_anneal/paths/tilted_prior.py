"""The tilted prior: an exponential family that holds both the prior and the posterior.

    p_eta(x) ~ prior(x) exp(eta.T(x)),    T(x) = (V, s) or (V, s, s^2) or (V, s, s s'),

``V`` the log likelihood and ``s`` standardised coordinates of ``x``. ``eta = 0`` is the prior and
``eta = (1, 0, ..., 0)`` the posterior, so a curve between the two in this family is a path,
whatever the model. Along averages of the moments ``E[T]`` it is the moment-averaged path of Grosse,
Maddison & Salakhutdinov (2013) for the tempering of the model's likelihood.

Linear tilts move the prior and leave its curvature alone: what was log-concave stays so. Squares
also stretch it, until it spans prior and posterior; where the likelihood is far from quadratic,
they may match an average of moments by two separate modes, between which no transition moves.

The coordinates are scores of those of ``x`` (:mod:`scores`), in which the prior has light tails: a
linear tilt of a heavy tail has a second mode in it. And they are bounded smoothly,
``s = z / (1 + (z / c)^4)^(1/4)``: within the range of prior and posterior ``s`` is ``z``, and far
outside it the tilt is bounded, so that every ``eta`` with ``eta_V >= 0`` is a proper density.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.contracts import Path
from pymc_anneal.paths.tail_transform import TailTransform

_BOUND = 4.0  # of a coordinate, in units of the range of prior and posterior


class TiltedTerms(NamedTuple):
    """What a position contributes at any ``eta``.

    Attributes
    ----------
    log_base : Array, shape (n,)
    statistics : Array, shape (n, p)
        ``T``, the log likelihood first.
    """

    log_base: jax.Array
    statistics: jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class TiltedPrior:
    """The family.

    Parameters
    ----------
    base : Path
        Geometric path from the reference to the posterior, whose velocity is ``V``.
    centre, scale, bound : Array, shape (d,)
        ``z = (u - centre) / scale`` and ``c``.
    statistics : str
        Beside ``V``: "linear", "squares" (and linear) or "products" (and linear).
    scores : TailTransform, optional
        Give ``u`` for ``x``; default: ``u = x``.
    """

    base: Path
    centre: Any
    scale: Any
    bound: Any
    statistics: str = field(default="linear", metadata={"static": True})
    scores: TailTransform | None = None

    @classmethod
    def around(
        cls, base: Path, first: np.ndarray, last: np.ndarray, statistics: str = "linear"
    ) -> "TiltedPrior":
        """Return the family standardised to draws of both ends, shape ``(n, d)`` each."""
        n, scores = min(len(first), len(last)), TailTransform.of(first)
        both = np.asarray(scores(np.concatenate([first[:n], last[:n]])))
        low, centre, high = np.quantile(both, [0.16, 0.5, 0.84], axis=0)
        scale = np.where(high > low, 0.5 * (high - low), 1.0)
        reach = np.quantile(np.abs(both - centre) / scale, 0.98, axis=0)
        return cls(base, centre, scale, _BOUND * np.maximum(reach, 1.0), statistics, scores)

    def evaluate(self, position: jax.Array) -> TiltedTerms:
        """Return the terms at ``(n, d)`` positions."""
        terms = self.base.evaluate(position)
        u = position if self.scores is None else self.scores(position)
        z = (u - self.centre) / self.scale
        s = z / (1 + (z / self.bound) ** 4) ** 0.25
        log_likelihood = self.base.velocity(terms, 0.0)
        parts = [log_likelihood[:, None], s, STATISTICS[self.statistics](s)]
        return TiltedTerms(self.base.log_density(terms, 0.0), jnp.concatenate(parts, axis=1))

    @property
    def size(self) -> int:
        """Number of statistics ``p``."""
        s = np.zeros((1, len(self.centre)))
        return 1 + s.shape[1] + STATISTICS[self.statistics](s).shape[1]

    @property
    def posterior(self) -> np.ndarray:
        """Natural parameter of the posterior, shape ``(p,)``; that of the prior is 0."""
        return np.eye(1, self.size)[0]


def _products(s: Any) -> Any:
    i, j = np.tril_indices(s.shape[1])
    return s[:, i] * s[:, j]


# What is added to the likelihood and the coordinates.
STATISTICS: dict[str, Callable] = {
    "linear": lambda s: s[:, :0],
    "squares": lambda s: s**2,
    "products": _products,
}


def inner_product(eta: jax.Array, statistics: jax.Array) -> jax.Array:
    """``eta.T``, shape ``(n,)``; a likelihood of zero counts wherever ``eta`` is not zero."""
    log_likelihood = statistics[:, 0]
    dead = jnp.isneginf(log_likelihood)
    inner = eta[0] * jnp.where(dead, 0.0, log_likelihood) + statistics[:, 1:] @ eta[1:]
    return jnp.where(dead & (eta != 0).any(), -jnp.inf, inner)

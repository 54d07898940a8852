"""TailTransform of coordinates: their tails made no heavier than those of a normal distribution.

    u = median + delta asinh((x - median) / delta),

with one ``delta`` on either side of the median (Johnson 1949, system S_U). Heavy tails are
compressed, light ones stay as they are (``delta`` very large, ``u = x``). A density moves as a
whole when it is tilted by ``exp(eta u)``; tilted by ``exp(eta x)``, a heavy tail becomes a second
mode: that of Student's t falls as a power of ``x``, and every tilt overtakes it.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_NEAR, _FAR = 0.84, 0.98


_NORMAL_RATIO = 2.0537 / 0.9945  # of those quantiles, of a normal distribution


_NOISE = 4.2  # times n^-1/2: three standard errors of the ratio in n normal draws, relative to it


_STRAIGHT = 1e6


_LEAST = 0.01


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class TailTransform:
    """The map from coordinates to scores.

    Parameters
    ----------
    median : Array, shape (d,)
    lower, upper : Array, shape (d,)
        ``delta`` below and above the median.
    """

    median: Any
    lower: Any
    upper: Any

    @classmethod
    def of(cls, draws: np.ndarray) -> "TailTransform":
        """Return the scores of a distribution from draws, shape ``(n, d)``.

        On each side ``delta`` gives the quantiles of scores the ratio that a normal distribution
        has, where more than the noise of the draws sets them apart.
        """
        probability = [1 - _FAR, 1 - _NEAR, 0.5, _NEAR, _FAR]
        least, low, median, high, most = np.quantile(draws, probability, axis=0)
        lower = _delta(median - low, median - least, len(draws))
        return cls(median, lower, _delta(high - median, most - median, len(draws)))

    def __call__(self, position: jax.Array | np.ndarray) -> jax.Array:
        """Return the scores, shape ``(n, d)``."""
        away = position - self.median
        delta = jnp.where(away > 0, self.upper, self.lower)
        return self.median + delta * jnp.arcsinh(away / delta)


def _delta(near: np.ndarray, far: np.ndarray, n: int) -> np.ndarray:
    """Solve ``asinh(far / delta) / asinh(near / delta) = _NORMAL_RATIO`` by bisection."""
    unit = np.where(near > 0, near, 1.0)
    ratio = np.where(near > 0, far / unit, 1.0)
    heavy = ratio > _NORMAL_RATIO * (1 + _NOISE / np.sqrt(n))
    low, high = np.full(unit.shape, np.log(_LEAST)), np.full(unit.shape, np.log(_STRAIGHT))
    for _ in range(60):
        delta = np.exp(0.5 * (low + high))
        above = np.arcsinh(ratio / delta) > _NORMAL_RATIO * np.arcsinh(1 / delta)
        low = np.where(above, low, np.log(delta))
        high = np.where(above, np.log(delta), high)
    return np.where(heavy, delta, _STRAIGHT) * unit

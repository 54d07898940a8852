"""Maximisation of a JAX function by SciPy's L-BFGS-B (Byrd, Lu, Nocedal & Zhu 1995)."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np

from scipy import optimize


class Maximum(NamedTuple):
    """A local maximum.

    Attributes
    ----------
    position : ndarray, shape (d,)
    value : float
        The function there.
    """

    position: np.ndarray
    value: float


def maximise(
    function: Callable[[jax.Array], jax.Array], start: np.ndarray, **options: Any
) -> Maximum:
    """Climb from a start to a local maximum of a function.

    Parameters
    ----------
    function
        JAX function of shape (d,) to a scalar.
    start : ndarray, shape (d,)
    **options
        Of SciPy's ``L-BFGS-B``.
    """
    compiled = _compile(function)

    def loss(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, slope = compiled(x)
        return -np.asarray(value, dtype=float), -np.asarray(slope, dtype=float)

    found = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    return Maximum(found.x, -float(found.fun))


@lru_cache(maxsize=8)
def _compile(
    function: Callable[[jax.Array], jax.Array],
) -> Callable[[np.ndarray], tuple[jax.Array, jax.Array]]:
    """Return value and gradient of a function, compiled once for several starts."""
    compiled: Callable[[np.ndarray], tuple[jax.Array, jax.Array]]
    compiled = jax.jit(jax.value_and_grad(function))
    return compiled

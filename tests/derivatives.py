"""Value, gradient and curvature of a function in one program.

Compiling takes most of the time of such a test, and the matrix of second derivatives most of that.
Its product with a vector, forwards over backwards, is made by the same rules.
"""

from collections.abc import Callable

import jax
import numpy as np

Derivatives = tuple[jax.Array, jax.Array, jax.Array]


def derivatives_along(
    function: Callable[[jax.Array], jax.Array], step: np.ndarray
) -> Callable[[jax.Array], Derivatives]:
    """Return a function of x to its value, its gradient and the Hessian times ``step``."""

    def derivatives(x: jax.Array) -> Derivatives:
        (value, slope), (_, change) = jax.jvp(jax.value_and_grad(function), (x,), (step,))
        return value, slope, change

    return derivatives

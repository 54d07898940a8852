"""JAX in double precision for the duration of a call.

Log weights accumulate in float64. JAX's switch for 64-bit numbers is a setting of the thread; the
decorator turns it on during a call and restores the user's setting afterwards. So it does with the
precision of products of float32 matrices, which JAX by default computes on recent GPUs with factors
rounded to eleven bits (TensorFloat-32): a transition would leave another density invariant than
the one that enters the weights.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
T = TypeVar("T")


def double_precision(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function to run with 64-bit numbers of JAX and products in full precision.

    Not for generators: their body runs after the call has returned.
    """

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        with jax.enable_x64(True), jax.default_matmul_precision("highest"):
            return function(*args, **kwargs)

    return wrapped

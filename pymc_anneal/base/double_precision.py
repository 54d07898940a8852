"""JAX in double precision for the duration of a call.

Log weights accumulate in float64. JAX's switch for 64-bit numbers is a setting of the thread; the
decorator turns it on during a call and restores the user's setting afterwards.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
T = TypeVar("T")


def double_precision(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function to run with 64-bit numbers of JAX.

    Not for generators: their body runs after the call has returned.
    """

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapped

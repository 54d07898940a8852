"""Double precision, for the duration of a call.

Log weights accumulate in float64. JAX's switch for 64-bit numbers is a setting of the thread;
functions with this decorator turn it on while they run and leave it as it was.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
T = TypeVar("T")


def double_precision(function: Callable[P, T]) -> Callable[P, T]:
    """Run a function with JAX's 64-bit numbers switched on."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapped

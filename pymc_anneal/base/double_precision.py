"""JAX in double precision for the duration of a call.

Log weights accumulate in float64. JAX has a switch for 64-bit numbers in every thread and one for
the process, which counts where a thread has set none: callbacks to Python run in threads of XLA.
The decorator turns on both, and the last of the calls that run at a time restores the process's. So
it does with the precision of products of float32 matrices, which JAX by default computes on recent
GPUs with factors rounded to eleven bits (TensorFloat-32): a transition would leave another density
invariant than the one that enters the weights.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from threading import Lock, get_ident
from typing import Any, ParamSpec, TypeVar

import jax

P = ParamSpec("P")
T = TypeVar("T")

_config: Any = jax.config  # whose settings and methods have no types in some versions


@dataclass
class _ProcessSwitch:
    """The process's switch for 64-bit numbers, on while at least one call needs it."""

    calls: Counter[int] = field(default_factory=Counter)  # by thread
    before: bool = False
    lock: Lock = field(default_factory=Lock)

    @contextmanager
    def on(self) -> Iterator[None]:
        with self.lock:
            if not self.calls.total():
                self.before = _of_process()
                _config.update("jax_enable_x64", True)
            self.calls[get_ident()] += 1
        try:
            yield
        finally:
            with self.lock:
                self.calls[get_ident()] -= 1
                if not self.calls.total():
                    self.calls.clear()
                    _config.update("jax_enable_x64", self.before)


def _of_process() -> bool:
    """Return the process's switch, which a thread with a setting of its own does not see."""
    with ThreadPoolExecutor(1) as other:
        return bool(other.submit(lambda: _config.values["jax_enable_x64"]).result())


_process = _ProcessSwitch()


def other_threads() -> bool:
    """Whether calls run in other threads of the process."""
    with _process.lock:
        return any(n and thread != get_ident() for thread, n in _process.calls.items())


def double_precision(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function to run with 64-bit numbers of JAX and products in full precision.

    Not for generators: their body runs after the call has returned.
    """

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        with _process.on(), jax.enable_x64(True), jax.default_matmul_precision("highest"):
            return function(*args, **kwargs)

    return wrapped

"""Functions that can be sent to another process, where they are built once.

A compiled model's functions are closures over translated graphs. What is sent is the graph; the
process that receives it translates it when the first copy arrives, and later copies are the same
object there, so that JAX compiles for it once in each process.
"""

import pickle
import threading

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

import cloudpickle

# A worker serves few models at a time; each one kept holds its compiled programs.
_KEPT = 4


_LOCK = threading.Lock()


class PicklableFunction:
    """A function that remains one object however often it is sent to a process.

    Parameters
    ----------
    function
        Can be pickled by :mod:`cloudpickle`.
    """

    def __init__(self, function: Callable):
        self._function = function

    def __call__(self, *args: Any) -> Any:
        """Call the function."""
        return self._function(*args)

    @cached_property
    def _payload(self) -> bytes:
        return cloudpickle.dumps(self._function)

    def __reduce__(self) -> tuple[Callable, tuple[bytes]]:
        return _received, (self._payload,)


def _received(payload: bytes) -> PicklableFunction:
    with _LOCK:
        return _built(payload)


@lru_cache(maxsize=_KEPT)
def _built(payload: bytes) -> PicklableFunction:
    return PicklableFunction(pickle.loads(payload))

"""Functions that are built once in each process that receives them.

A compiled model's functions are closures over translated graphs. Their pickle holds the graph. A
process translates it when the first copy arrives; later copies are the same object there, so that
JAX compiles for it once per process.
"""

import pickle
import threading

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

import cloudpickle

from pymc_anneal.base.pickling import SharedPickle

# Functions cached per process. Each holds its compiled programs, and a worker process serves few
# models at a time.
_CACHE_SIZE = 4

# A function may hold others, which are loaded while it is.
_LOCK = threading.RLock()


class PicklableFunction:
    """A function whose copies in another process are one object.

    Parameters
    ----------
    function
        Function that :mod:`cloudpickle` can pickle.
    """

    def __init__(self, function: Callable[..., Any]):
        self._function = function

    def __call__(self, *args: Any) -> Any:
        """Call the function."""
        return self._function(*args)

    @cached_property
    def _payload(self) -> bytes:
        return bytes(cloudpickle.dumps(self._function))

    def __reduce__(self) -> "tuple[Callable[[bytes], PicklableFunction], tuple[bytes]]":
        return _load, (self._payload,)


def pack(value: Any) -> tuple[Any, ...]:
    """Return how to pickle an object, for its ``__reduce__``, such that its arrays keep 64 bits.

    JAX rounds arrays that are unpickled while its 64-bit numbers are off, as they are by default.
    """
    return _unpack, (type(value), SharedPickle(dict(vars(value))))


def _unpack(kind: type, state: SharedPickle[dict[str, Any]]) -> Any:
    value: Any = object.__new__(kind)
    vars(value).update(state.value)
    return value


def _load(payload: bytes) -> PicklableFunction:
    with _LOCK:
        return _load_cached(payload)


@lru_cache(maxsize=_CACHE_SIZE)
def _load_cached(payload: bytes) -> PicklableFunction:
    return PicklableFunction(pickle.loads(payload))

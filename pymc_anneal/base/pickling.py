"""Objects that a process unpickles once, however often it receives them.

JAX compiles a program for each function object. A function or kernel that arrives with every block
of particles must therefore become the same object in the receiving process each time.
"""

import pickle
import threading

from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar

import cloudpickle

from pymc_anneal.base.double_precision import double_precision

T = TypeVar("T")

# A worker serves few models and stages at a time, and each entry holds its compiled programs.
_CACHE_SIZE = 8

# Reentrant, because one shared object may contain another.
_LOCK = threading.RLock()


class SharedPickle(Generic[T]):
    """An object that is pickled once and unpickled once in each process.

    Parameters
    ----------
    value
        Any object that :mod:`cloudpickle` can pickle. It must not change afterwards.
    """

    def __init__(self, value: T) -> None:
        self.value = value

    @cached_property
    def _payload(self) -> bytes:
        payload: bytes = cloudpickle.dumps((type(self), self.value))
        return payload

    def __reduce__(self) -> tuple[Any, ...]:
        return _receive, (self._payload,)


def _receive(payload: bytes) -> SharedPickle[Any]:
    with _LOCK:
        return _build(payload)


@lru_cache(maxsize=_CACHE_SIZE)
@double_precision
def _build(payload: bytes) -> SharedPickle[Any]:
    kind, value = pickle.loads(payload)
    shared: SharedPickle[Any] = kind(value)
    return shared

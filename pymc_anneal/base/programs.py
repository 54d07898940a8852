"""Compiled programs of many models, and how they are forgotten.

JAX keeps the programs of a function as long as the function lives, and the functions of this
package live as long as the process. A process has room for the programs of about 75 models: each
takes hundreds of memory maps, of which Linux gives a process 65,530, and LLVM ends the process
when there are no more.
"""

import threading

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from pymc_anneal.base.double_precision import other_threads

Program = TypeVar("Program", bound=Callable[..., Any])

# Models, and memory maps (functions of the user have programs too), after which the programs of all
# are forgotten. Those in use are compiled again, or read from the cache on disk.
_MOST_MODELS, _MOST_MAPS = 24, 32_000

_functions: list[Any] = []
_models: set[Hashable] = set()
_lock = threading.Lock()


def forgettable(compiled: Program) -> Program:
    """Let the programs of a function that :func:`jax.jit` returned be forgotten with the others."""
    _functions.append(compiled)
    return compiled


def count_model(description: Hashable) -> None:
    """Count a model that has programs of its own, and forget those of all if they are too many.

    Nothing is forgotten while calls run in other threads: the next model that is counted when they
    have ended brings it about.
    """
    with _lock:
        if description not in _models and len(_models) >= _MOST_MODELS:
            _forget()
        _models.add(description)


def forget_if_full() -> None:
    """Forget all programs if the memory maps of the process fill half of its room."""
    with _lock:
        if memory_maps() > _MOST_MAPS:
            _forget()


def _forget() -> None:
    if not other_threads():
        for function in _functions:
            function.clear_cache()
        _models.clear()


def memory_maps() -> int:
    """Return the number of memory maps of this process; zero where nothing counts them."""
    try:
        with open("/proc/self/maps", "rb") as maps:
            return sum(1 for _ in maps)
    except OSError:
        return 0

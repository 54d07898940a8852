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

# Models after which the programs of all are forgotten. Those in use are compiled again, or read
# from the cache on disk.
_MOST_MODELS = 24

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
        too_many = description not in _models and len(_models) >= _MOST_MODELS
        if too_many and not other_threads():
            for function in _functions:
                function.clear_cache()
            _models.clear()
        _models.add(description)

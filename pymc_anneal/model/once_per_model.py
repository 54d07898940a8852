"""Results that are found once for each compiled model."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from pymc_anneal.model.compile import CompiledModel

_Found = TypeVar("_Found")


def once_per_model(find: Callable[[CompiledModel], _Found]) -> Callable[[CompiledModel], _Found]:
    """Keep what a function returns for a model as long as the model lives.

    The result must not refer to the model, which would then live for ever.
    """
    known: WeakKeyDictionary[CompiledModel, _Found] = WeakKeyDictionary()

    @wraps(find)
    def look_up(compiled: CompiledModel) -> _Found:
        if compiled not in known:
            known[compiled] = find(compiled)
        return known[compiled]

    return look_up

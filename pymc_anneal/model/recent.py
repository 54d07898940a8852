"""What is kept of models between calls: compiled ones of recent calls, and what is found of each.

A model is recognised by its identity and by all that can change in place: its variables, the
transforms, coordinates, and the values of ``pm.Data`` and other shared variables.
"""

import hashlib

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import pymc as pm

from pymc_anneal.model.bambi import unwrap_bambi
from pymc_anneal.model.compile import CompiledModel, compile_model
from pymc_anneal.model.frozen_data import FrozenData

_Found = TypeVar("_Found")
_How = ParamSpec("_How")
# Number of models that are kept, with their data, until others replace them.
_CAPACITY = 4


class _Entry(NamedTuple):
    model: pm.Model
    state: tuple[object, ...]
    compiled: CompiledModel


_recent: OrderedDict[int, _Entry] = OrderedDict()
_lock = Lock()


def as_compiled(model: pm.Model | CompiledModel | None = None) -> CompiledModel:
    """Return a compiled model: the one given, or that of an earlier call if nothing changed.

    Parameters
    ----------
    model : pymc.Model, bambi.Model or CompiledModel, optional
        Default: the model on the context stack.
    """
    if isinstance(model, CompiledModel):
        return model
    model = unwrap_bambi(pm.modelcontext(model))
    if not isinstance(model, pm.Model):
        return compile_model(model)  # raises, with the type that it found
    state = _state(model)
    with _lock:
        found = _recent.get(id(model))
    if found is None or found.state != state:
        found = _Entry(model, state, compile_model(model))
    with _lock:
        _recent[id(model)] = found
        _recent.move_to_end(id(model))
        while len(_recent) > _CAPACITY:
            _recent.popitem(last=False)
    return found.compiled


def once_per_model(
    find: Callable[Concatenate[CompiledModel, _How], _Found],
) -> Callable[Concatenate[CompiledModel, _How], _Found]:
    """Keep what a function returns for a model as long as the model lives.

    The result must not refer to the model, which would then live for ever, and not depend on the
    further arguments, which say how it is found.
    """
    known: WeakKeyDictionary[CompiledModel, _Found] = WeakKeyDictionary()

    @wraps(find)
    def look_up(compiled: CompiledModel, /, *how: _How.args, **named: _How.kwargs) -> _Found:
        if compiled not in known:
            known[compiled] = find(compiled, *how, **named)
        return known[compiled]

    return look_up


def _state(model: pm.Model) -> tuple[object, ...]:
    """Describe all of a model that can change in place."""
    frozen = FrozenData.of(model)
    # Variables are kept alive by the entry, so an identity is not used again.
    variables = [*model.basic_RVs, *model.potentials, *model.deterministics]
    graph = tuple((id(v), id(model.rvs_to_transforms.get(v))) for v in variables)
    values = tuple((id(v), _digest(value.data)) for v, value in frozen.values.items())
    return graph, values, repr(frozen.coords), repr(frozen.dims)


def _digest(value: object) -> str:
    array = np.ascontiguousarray(np.asarray(value))
    content = repr(value).encode() if array.dtype == object else array.tobytes()
    return f"{array.dtype} {array.shape} {hashlib.sha256(content).hexdigest()}"

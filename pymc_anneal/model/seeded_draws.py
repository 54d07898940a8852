"""Compiled draws of random variables, at a seed."""

import threading

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pytensor

from pymc.pytensorf import reseed_rngs
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorConstant

# A compiled function has one storage for its generators, inputs and outputs: threads take turns.
_DRAWING = threading.Lock()

# A compiled function of PyTensor.
Compiled: TypeAlias = Any


def compile_python(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> Compiled:
    """Compile in Python mode: NumPy makes the draws, and other modes compile for seconds."""
    mode = Mode("py", "fast_compile")
    made = pytensor.function(list(inputs), list(outputs), mode=mode, on_unused_input="ignore")
    _own_constants(made)
    return made


def _own_constants(function: Compiled) -> None:
    """Copy the constants of a compiled function, which it may share with other graphs.

    PyTensor makes a constant read-only where a later rewrite finds that it holds one number, and
    NumPy cannot broadcast a view of it that was made before: SciPy's draws end in "cannot set
    WRITEABLE flag to True".
    """
    for variable, storage in function.vm.storage_map.items():
        if isinstance(variable, TensorConstant):
            storage[0] = storage[0].copy()


def call_seeded(function: Compiled, seed: np.uint64, *inputs: np.ndarray) -> list[np.ndarray]:
    """Call a compiled function with its generators of random numbers at a seed."""
    with _DRAWING:
        reseed_rngs(_find_rngs(function), seed)
        drawn: list[np.ndarray] = function(*inputs)
        return drawn


def _find_rngs(function: Compiled) -> list[Variable]:
    """Return the generators of random numbers of a compiled function."""
    shared = function.get_shared()
    return [v for v in shared if isinstance(v.get_value(borrow=True), np.random.Generator)]

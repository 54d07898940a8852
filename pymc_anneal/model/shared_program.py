"""Compiled programs shared by models that differ in their data alone.

The arrays of a model (data, and what PyTensor computes from them when a model is translated) are
arguments of its log density, not parts of the program. JAX compiles once for all functions that
are equal, and two log densities are equal if they have the same operations on arrays of the same
shapes: the same model with other data needs no compilation.
"""

import hashlib
import uuid

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jax.extend.core import jaxpr_as_fun
from jax.tree_util import Partial

from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.programs import count_model
from pymc_anneal.model.log_densities import Translation, evaluate_log_terms
from pymc_anneal.model.operation_batching import batch_operations
from pymc_anneal.model.pickling import PicklableFunction
from pymc_anneal.model.variables import FreeVariable


class SharedProgram:
    """The operations of a log density, as a function of its arrays and the position.

    Parameters
    ----------
    function : PicklableFunction
        JAX function of a position that returns :class:`LogTerms`.
    ndim : int
        Length of the position.
    """

    @double_precision  # also where another process loads it
    def __init__(self, function: PicklableFunction, ndim: int):
        self._function, self._ndim = function, ndim
        self._closed = batch_operations(function, np.zeros(ndim))
        # JAX's own arrays: those that it makes of NumPy's cannot be pickled.
        self.arrays = [jax.device_put(constant) for constant in self._closed.consts]
        self._digest = self._describe()
        count_model(self._digest)

    def __call__(self, *arguments: jax.Array) -> LogTerms:
        """Evaluate the log terms; the last argument is the position, the others are the arrays."""
        *arrays, x = arguments
        if [a.dtype for a in arrays] != [c.dtype for c in self._closed.consts]:
            raise TypeError(
                "The arrays of a compiled model have lost precision: it was unpickled while JAX's "
                "64-bit numbers were switched off. Unpickle it under `jax.enable_x64(True)`."
            )
        bound = self._closed.replace(consts=arrays)
        with jax.enable_x64(True):
            return LogTerms(*jaxpr_as_fun(bound)(jnp.asarray(x, jnp.float64)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedProgram) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._function, self._ndim)

    def _describe(self) -> str:
        printed = str(self._closed.jaxpr)
        if "callback" in printed:  # different Python functions look alike
            return uuid.uuid4().hex
        # The printed operations name the rules of derivatives, but cut the digits of numbers
        # short; the lowered program has all digits.
        lowered = jax.jit(self.__call__).lower(*self.arrays, np.zeros(self._ndim)).as_text()
        return hashlib.sha256(f"{printed}\n{lowered}".encode()).hexdigest()


@lru_cache(maxsize=4)
def _rebuild(function: PicklableFunction, ndim: int) -> SharedProgram:
    """Rebuild a program in another process, once."""
    return SharedProgram(function, ndim)


def build_log_terms(
    density: Translation, variables: tuple[FreeVariable, ...], log_mass: float
) -> Callable[[jax.Array], LogTerms]:
    """Return the log densities of a model as a function of the unconstrained vector.

    The prior is normalised by ``log_mass``, the log prior mass in nats.
    """
    function = PicklableFunction(partial(evaluate_log_terms, density.graph, variables, log_mass))
    if density.calls:
        count_model(uuid.uuid4().hex)  # black boxes look alike
        return function
    program = SharedProgram(function, variables[-1].stop if variables else 0)
    log_terms: Callable[[jax.Array], LogTerms]
    log_terms = Partial(program, *program.arrays)  # type: ignore[no-untyped-call]
    return log_terms

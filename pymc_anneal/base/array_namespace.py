"""The modules that compute with an array: those of JAX for its own arrays, NumPy's for others.

A pilot evaluates some formulas a few times, at arrays of one shape after the other. JAX compiles
each operation for each shape, which takes longer than all of them; NumPy does not.
"""

from types import ModuleType

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
import scipy.special


def array_namespace(*arrays: object) -> ModuleType:
    """Return `jax.numpy` if one of the arrays is JAX's, otherwise `numpy`."""
    return jnp if any(isinstance(array, jax.Array) for array in arrays) else np


def special_functions(xp: ModuleType) -> ModuleType:
    """Return the special functions for the arrays of a namespace."""
    return jax.scipy.special if xp is jnp else scipy.special

"""The posterior density at many positions, and draws prepared for estimates from it."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import jax
import numpy as np

from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.compile import CompiledModel

# A function of positions, shape (n, d), to log densities, shape (n,).
LogDensity: TypeAlias = Callable[[np.ndarray], np.ndarray]

# Positions that are evaluated at a time, which bounds the memory.
_BATCH = 2000


def log_posterior(compiled: CompiledModel) -> LogDensity:
    """Return the log of prior times likelihood of a model as a function of positions.

    Parameters
    ----------
    compiled : CompiledModel

    Returns
    -------
    Callable
        From positions of shape ``(n, d)`` to values of shape ``(n,)``, in nats. It raises
        `ValueError` at the first density that is NaN or infinite, naming the term of the model.
    """

    @double_precision
    def evaluate(x: np.ndarray) -> np.ndarray:
        parts = [x[i : i + _BATCH] for i in range(0, len(x), _BATCH)]
        values = np.concatenate([np.asarray(_batch(compiled.log_terms, x)) for x in parts])
        if np.isnan(values).any():
            raise ValueError(compiled.explain_nan(x[np.isnan(values).argmax()]))
        if np.isposinf(values).any():
            raise ValueError("The posterior density is infinite at a draw: it is not a density.")
        return values

    return evaluate


# The function is part of the key: another call for the same compiled model compiles nothing.
@partial(jax.jit, static_argnums=0)
def _batch(log_terms: Callable[[jax.Array], LogTerms], x: jax.Array) -> jax.Array:
    terms: LogTerms = jax.vmap(log_terms)(x)
    return terms.log_posterior


def group_copies(x: np.ndarray) -> np.ndarray:
    """Move copies of a draw, shape ``(n, d)``, behind its first appearance.

    Copies, as resampling makes them, then count as autocorrelation.
    """
    _, first, index = np.unique(x, axis=0, return_index=True, return_inverse=True)
    return x[np.argsort(first[np.ravel(index)], kind="stable")]

"""The posterior density at many positions, and draws prepared for estimates from it."""

from collections.abc import Callable
from typing import TypeAlias

import jax
import numpy as np

from pymc_anneal.base.arviz_compat import Container
from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.programs import forgettable
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.posterior_draws import posterior_draws
from pymc_anneal.paths.geometric import GeometricPath

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
    in_parts = in_batches(GeometricPath(compiled.log_terms))

    def evaluate(x: np.ndarray) -> np.ndarray:
        values = in_parts(x)
        if np.isnan(values).any():
            raise ValueError(compiled.explain_nan(x[np.isnan(values).argmax()]))
        if np.isposinf(values).any():
            raise ValueError("The posterior density is infinite at a draw: it is not a density.")
        return values

    return evaluate


@double_precision
def terms_at(compiled: CompiledModel, x: np.ndarray) -> LogTerms:
    """Return log prior and log likelihood at positions, ``(n, d)`` to ``(n,)`` each, in nats."""
    path = GeometricPath(compiled.log_terms)
    parts = [_terms(path, x[i : i + _BATCH]) for i in range(0, len(x), _BATCH)]
    joined: LogTerms = jax.tree.map(lambda *rows: np.concatenate(rows), *parts)
    return joined


@forgettable
@jax.jit
def _terms(path: GeometricPath, x: jax.Array) -> LogTerms:
    return path.evaluate(x)


def in_batches(path: GeometricPath) -> LogDensity:
    """Return the log density at the end of a path as a function of any number of positions."""

    @double_precision
    def evaluate(x: np.ndarray) -> np.ndarray:
        parts = [x[i : i + _BATCH] for i in range(0, len(x), _BATCH)]
        return np.concatenate([np.asarray(_batch(path, x)) for x in parts])

    return evaluate


# Another call for the same compiled model, or for one of its family, compiles nothing.
@forgettable
@jax.jit
def _batch(path: GeometricPath, x: jax.Array) -> jax.Array:
    return path.evaluate(x).log_posterior


def grouped_draws(idata: Container, compiled: CompiledModel) -> np.ndarray:
    """Return posterior draws, unconstrained, shape ``(chains, draws, d)``, copies side by side.

    Copies, as resampling makes them, then count as autocorrelation. A part of a chain holds its
    share of the draws with many copies.

    Raises
    ------
    ValueError
        As `posterior_draws`.
    """
    return np.stack([group_copies(chain) for chain in posterior_draws(idata, compiled)])


def group_copies(x: np.ndarray) -> np.ndarray:
    """Move copies of a draw, shape ``(n, d)``, to the place of one of them.

    Not of the first one: the first of many copies comes early, and the second half of a shuffled
    chain would lack the draws that have most copies, as those of regions with few particles have.
    The sum of the places of ``k`` copies, modulo ``k``, is as good as a random number.
    """
    _, index, copies = np.unique(x, axis=0, return_inverse=True, return_counts=True)
    index = np.ravel(index)
    first = np.cumsum(copies) - copies
    chosen = np.bincount(index, weights=np.arange(len(x))).astype(int) % copies
    place = np.argsort(index, kind="stable")[first + chosen]
    return x[np.argsort(place[index], kind="stable")]

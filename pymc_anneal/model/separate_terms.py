"""The terms of a log density, and the discrete coordinates on which each of them depends.

A log density is a sum. Read off its program (`dependence.py`), its terms are the entries of the
arrays that are summed, and coordinates of which no term has two are independent given all others:

    log f(x) = sum_t f_t(x_S(t), rest),    |S(t)| <= 1 for the coordinates of one class.

So all of a class can be moved at once, each by its own terms, at the cost of one evaluation of the
density (chromatic sampling: Gonzalez, Low, Gretton & Guestrin 2011): the cells of a chessboard, the
states of a hidden chain in two turns, indicators that share only parameters in one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.checked_entries import checked_entry_by_entry
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.dependence import MOST_MASKS, dependences
from pymc_anneal.model.jaxify import JaxGraph, jaxify
from pymc_anneal.model.notes import or_noted
from pymc_anneal.model.operation_batching import batch_operations
from pymc_anneal.model.pickling import PicklableFunction
from pymc_anneal.model.recent import once_per_model
from pymc_anneal.model.summands import (
    Summand,
    colour_apart,
    find_summands,
    is_close,
    rows_of,
    size_of,
    summed_arrays,
)
from pymc_anneal.model.variables import FreeVariable, split_values

# Terms up to which they are held apart: each is a number for every particle.
_MOST_TERMS = 20_000
# Operations of a program up to which further programs of it are worth their compilation. With 1,148
# (20 states without batches) a run took three times as long.
_MOST_OPERATIONS = 600
# Coordinates from which on: fewer are moved in the time that it takes to find the terms.
_FEWEST = 6
# Draws of the prior at which terms are compared with their sum.
_TRIED = 8


@dataclass(frozen=True, eq=False)
class SeparateTerms:
    """Terms of a log density and classes of coordinates that no term joins.

    Attributes
    ----------
    function : callable
        JAX function of a position, shape ``(d,)``, to log prior and log likelihood.
    ndim : int
    coordinates : ndarray of int, shape (p,)
    colour : ndarray of int, shape (p,)
        The class of each coordinate.
    owner : ndarray of int, shape (classes, T)
        Of each term, the coordinate of the class on which it depends, as an index; or ``p``.
    tempered : ndarray of bool, shape (T,)
        Whether a term is part of the log likelihood.
    """

    function: PicklableFunction
    ndim: int
    coordinates: np.ndarray
    colour: np.ndarray
    owner: np.ndarray
    tempered: np.ndarray

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SeparateTerms) and self.function is other.function

    def __hash__(self) -> int:
        return hash(id(self.function))

    def evaluate(self, position: jax.Array) -> LogTerms:
        """Return the terms, shape ``(n, T)``, of the log prior and of the log likelihood.

        Those of the one are zero in the other.
        """
        terms = jax.vmap(_separated(self.function, self.ndim))(position)
        tempered = jnp.asarray(self.tempered)
        return LogTerms(jnp.where(tempered, 0.0, terms), jnp.where(tempered, terms, 0.0))


@once_per_model
def separate_terms(compiled: CompiledModel) -> SeparateTerms | None:
    """Find the terms of a model, and classes of its discrete coordinates.

    Parameters
    ----------
    compiled
        The model.

    Returns
    -------
    SeparateTerms or None
        None if classes have fewer than two coordinates on average, as far as the program shows, or
        there are too many terms.
    """
    coordinates = np.array([j for v in compiled.discrete for j in range(v.start, v.stop)], int)
    # Terms are those of the whole density.
    if len(coordinates) < _FEWEST or compiled.calls or compiled.taken_out:
        return None
    note = "Discrete variables are moved one after the other: {}."
    return or_noted(lambda: _find(compiled, coordinates), compiled.fallbacks, note)


def _find(compiled: CompiledModel, coordinates: np.ndarray) -> SeparateTerms | None:
    outputs = compiled.freeze(compiled.graphs)
    graph = jaxify(*checked_entry_by_entry(compiled.model.value_vars, outputs))
    function = PicklableFunction(partial(_raw_terms, graph, compiled.variables))
    found = _analyse(function, compiled.ndim, coordinates)
    return found if found is not None and _agrees(found, compiled) else None


def _raw_terms(
    graph: JaxGraph, variables: Sequence[FreeVariable], x: jax.Array
) -> tuple[jax.Array, jax.Array]:
    with jax.enable_x64(True):
        log_prior, log_likelihood = graph(*split_values(variables, x))
        return jnp.asarray(log_prior, jnp.float64), jnp.asarray(log_likelihood, jnp.float64)


@lru_cache(maxsize=8)
def _program(function: PicklableFunction, ndim: int) -> tuple[Any, tuple[Summand, ...]]:
    """Return the program of a density, and the arrays that it sums."""
    with jax.enable_x64(True):
        # Entries of one array seem to depend on more than those of many, where there is no rule.
        program = batch_operations(function, np.zeros(ndim), fewest=_MOST_OPERATIONS)
    return program, find_summands(program)


@lru_cache(maxsize=8)
def _separated(function: PicklableFunction, ndim: int) -> Any:
    """Return the JAX function from a position to all terms, shape ``(T,)``."""
    program, leaves = _program(function, ndim)
    evaluate = summed_arrays(program, leaves)
    return lambda x: jnp.concatenate(evaluate(x))


def _analyse(
    function: PicklableFunction, ndim: int, coordinates: np.ndarray
) -> SeparateTerms | None:
    program, leaves = _program(function, ndim)
    if len(program.jaxpr.eqns) > _MOST_OPERATIONS:
        return None
    sizes = [size_of(v) for eqn in program.jaxpr.eqns for v in eqn.outvars]
    if sum(size_of(leaf.variable) for leaf in leaves) > _MOST_TERMS:
        return None
    if max(sizes, default=0) * len(coordinates) > MOST_MASKS:
        return None
    with jax.enable_x64(True):
        masks = dependences(program, coordinates.tolist())
    depends = np.concatenate([rows_of(leaf, masks, len(coordinates)) for leaf in leaves])
    colour = colour_apart(depends)
    if 2 * (colour.max() + 1) > len(coordinates):
        return None
    owner = np.full((colour.max() + 1, len(depends)), len(coordinates))
    for j, c in enumerate(colour):
        owner[c, depends[:, j]] = j
    tempered = np.concatenate(
        [np.full(size_of(leaf.variable), bool(leaf.output)) for leaf in leaves]
    )
    return SeparateTerms(function, ndim, coordinates, colour, owner, tempered)


@double_precision
def _agrees(found: SeparateTerms, compiled: CompiledModel) -> bool:
    """Whether the terms add up, and those of a class change apart, at draws of the prior."""
    draws = compiled.sample_prior(np.random.SeedSequence(1), 2 * _TRIED)
    first, second = jnp.asarray(draws[:_TRIED]), jnp.asarray(draws[_TRIED:])
    evaluate = jax.jit(found.evaluate)
    terms, own = evaluate(first), jax.jit(jax.vmap(compiled.log_terms))(first)
    log_prior = own.log_prior + compiled.log_prior_mass
    sums = [part.sum(axis=1) for part in terms]
    if not (is_close(sums[0], log_prior) and is_close(sums[1], own.log_likelihood)):
        return False
    # Coordinates of other draws: a term may change only with the coordinate that it belongs to.
    for c in range(found.colour.max() + 1):
        members = np.flatnonzero(found.colour == c)
        for chosen in (members[::2], members[1::2]):
            at = found.coordinates[chosen]
            moved = evaluate(first.at[:, at].set(second[:, at]))
            still = ~np.isin(found.owner[c], chosen)
            for new, old in zip(moved, terms, strict=True):
                if not np.array_equal(new[:, still], old[:, still], equal_nan=True):
                    return False
    return True

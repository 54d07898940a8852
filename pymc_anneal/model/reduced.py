"""Models that have taken some of their variables out of the density, exactly.

A run moves the other variables, ``x``; those taken out are drawn from their conditional
distribution given ``x`` where variables, deterministics or terms of the likelihood are wanted.
"""

import hashlib

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.batches import map_batches
from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.checked_entries import checked_entry_by_entry
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.jaxify import JaxGraph, jaxify
from pymc_anneal.model.log_densities import likelihood_graph, prior_graph
from pymc_anneal.model.mapped import MappedModel, map_model
from pymc_anneal.model.pickling import PicklableFunction
from pymc_anneal.model.variables import FreeVariable

# Draws in a batch of variables that are taken out.
BATCH = 256
# Variables that a note names.
_NAMED = 4

Reduced = TypeVar("Reduced", bound="ReducedModel")
# From a model and positions, shape (n, d), to log densities and their gradients.
Evaluate: TypeAlias = Callable[[CompiledModel, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class ReducedModel(MappedModel):
    """A compiled model some of whose variables are taken out of the density.

    Attributes
    ----------
    _taken : tuple of FreeVariable
        The variables taken out, with their places among these.
    _function : PicklableFunction
        JAX function of a position to `LogTerms`.
    """

    _taken: tuple[FreeVariable, ...]
    _function: PicklableFunction

    @property
    @abstractmethod
    def _drawing(self) -> Callable[[np.ndarray], jax.Array]:
        """Compiled function from rows, shape ``(n, d + 2)``, to draws of what is taken out.

        A row is a position and the two words of a key.
        """

    @property
    def taken_out(self) -> tuple[FreeVariable, ...]:
        """Variables that are taken out of the density, which is one of the others."""
        return (*self._full.taken_out, *self._taken)

    @double_precision
    def to_model(self, position: np.ndarray) -> np.ndarray:
        """Map positions to those with all variables: those taken out are drawn given the others.

        The seed is a hash of the positions: the same positions give the same draws.
        """
        position = np.ascontiguousarray(position, dtype=float)
        seed = int.from_bytes(hashlib.sha256(position.tobytes()).digest()[:4], "little")
        keys = jax.random.split(jax.random.key(seed), max(len(position), 1))
        words = np.asarray(jax.random.key_data(keys)).astype(float)[: len(position)]
        rows = np.concatenate([position, words], axis=1)
        return self._join(position, map_batches(self._drawing, rows, BATCH))

    def from_model(self, position: np.ndarray) -> np.ndarray:
        """Return the coordinates of the variables that are left."""
        return position[:, self._kept]

    @cached_property
    def _kept(self) -> np.ndarray:
        """Places of the variables that are left in the vector of all."""
        return _places_of(self.variables, self._full)

    @cached_property
    def _own(self) -> np.ndarray:
        """Places of the variables that are taken out in the vector of all."""
        return _places_of(self._taken, self._full)

    def _join(self, position: np.ndarray, taken: np.ndarray) -> np.ndarray:
        whole = np.empty((len(position), position.shape[1] + taken.shape[1]))
        whole[:, self._kept], whole[:, self._own] = position, taken
        return whole


def reduce_model(
    kind: type[Reduced],
    compiled: CompiledModel,
    log_terms: Callable[[jax.Array], LogTerms],
    taken: tuple[FreeVariable, ...],
    others: tuple[FreeVariable, ...],
    note: str,
    **own: Any,
) -> Reduced:
    """Return a model without some of its variables; see `map_model`.

    `taken` and `others` are the variables, each with their places among these.
    """
    function = PicklableFunction(log_terms)
    own |= {"_taken": taken, "_function": function}
    return map_model(kind, compiled, function, note, others, **own)


def join_names(words: Sequence[str]) -> str:
    """Join what variables are called in a note, which names few."""
    if len(words) > _NAMED:
        words = [*words[: _NAMED - 1], f"{len(words) - _NAMED + 1} more"]
    return ", ".join(words)


def split_density(
    compiled: CompiledModel, taken: Sequence[FreeVariable], others: Sequence[FreeVariable]
) -> PicklableFunction:
    """Return the density as a function of the vector taken out and of that of the others.

    Its outputs are the log priors of the others and of what is taken out, and the log likelihood.
    """
    model, names = compiled.model, {v.name for v in taken}
    groups = [[rv for rv in model.free_RVs if (rv.name in names) is own] for own in (False, True)]
    outputs = [prior_graph(model, group) for group in groups]
    outputs.append(likelihood_graph(model, compiled.overflows))
    graph = jaxify(*checked_entry_by_entry(model.value_vars, compiled.freeze(outputs)))
    order = tuple(rv.name for rv in model.free_RVs)
    return PicklableFunction(partial(_evaluate, graph, order, tuple(taken), tuple(others)))


def _evaluate(
    graph: JaxGraph,
    order: Sequence[str],
    taken: Sequence[FreeVariable],
    others: Sequence[FreeVariable],
    z: jax.Array,
    x: jax.Array,
) -> list[jax.Array]:
    with jax.enable_x64(True):
        values = {}
        for vector, variables in ((z, taken), (x, others)):
            for v in variables:
                values[v.name] = vector[v.start : v.stop].reshape(v.shape).astype(v.dtype)
        return [jnp.asarray(v, jnp.float64) for v in graph(*(values[name] for name in order))]


def lay_out(variables: Iterable[FreeVariable]) -> tuple[FreeVariable, ...]:
    """Return variables with places one after the other."""
    found, start = list[FreeVariable](), 0
    for v in variables:
        stop = start + v.stop - v.start
        found.append(v._replace(start=start, stop=stop))
        start = stop
    return tuple(found)


def length(variables: Sequence[FreeVariable]) -> int:
    """Return the length of the vector of variables."""
    return variables[-1].stop if variables else 0


def _places_of(variables: Iterable[FreeVariable], model: CompiledModel) -> np.ndarray:
    """Return the places of variables, by their names, in the vector of a model."""
    names = {v.name for v in variables}
    return places([v for v in model.variables if v.name in names])


def places(variables: Sequence[FreeVariable]) -> np.ndarray:
    """Return the places of variables in their vector."""
    return np.array([j for v in variables for j in range(v.start, v.stop)], int)


def evaluate_at_low_cost(model: CompiledModel, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log densities at positions and their gradients, shapes ``(n,)`` and ``(n, d)``."""
    found: tuple[np.ndarray, np.ndarray]
    found = at_low_cost(jax.vmap(jax.value_and_grad(lambda y: sum(model.log_terms(y)))), x)
    return found


def values_with_gradients(
    model: CompiledModel, x: np.ndarray, evaluate: Evaluate = evaluate_at_low_cost
) -> np.ndarray:
    """Return log densities at positions, shape ``(n,)``; raise if one has a gradient of NaN."""
    value, gradient = evaluate(model, x)
    if np.isnan(gradient[np.isfinite(value)]).any():
        raise ValueError("the gradient is NaN")
    return value


def at_low_cost(function: Callable[..., Any], x: np.ndarray) -> Any:
    """Evaluate a JAX function once: most of the time would go into its compilation."""
    options: dict[str, Any] = {"xla_backend_optimization_level": 0}
    found = jax.jit(function).lower(x).compile(compiler_options=options)(x)
    return jax.tree.map(np.asarray, found)

"""Branches of a model: the terms of the sums of densities inside of it.

    log f(x) = g(x) + log( exp a_1(x) + ... + exp a_K(x) )

is the form of mixtures, of spikes and slabs, of contaminated likelihoods. Its modes lie near the
maxima of the branches ``g + a_k``. A narrow branch has no influence outside of its own small basin,
so that neither particles nor climbs of the gradient find it (Brewer, Partay & Csanyi 2011, section
4), but its own maximum is easily climbed. A model with several such sums has a branch for each
choice of one term from each.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytensor.tensor as pt

from pytensor.graph.basic import Variable
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors
from pytensor.scalar.basic import Add, Log
from pytensor.tensor.math import Sum

from pymc_anneal.model.jaxify import JaxGraph, jaxify
from pymc_anneal.model.notes import first_line
from pymc_anneal.model.underflow import scalar_op
from pymc_anneal.model.variables import FreeVariable, split_values

# Sums of a model beyond which its branches are too many to be worth a search, and terms of a sum.
_MAX_SUMS, _MAX_TERMS = 32, 256


class _Choice(NamedTuple):
    """A sum of densities: number of its terms, and the log of the one with a symbolic number."""

    terms: int
    pick: Callable[[Variable], Variable]


@dataclass(frozen=True, eq=False)
class Branches:
    """The branches of a model as a JAX function.

    Parameters
    ----------
    inputs : sequence of Variable
        Value variables of the graphs.
    variables : sequence of FreeVariable
    outputs : sequence of Variable
        Graphs of log prior and log likelihood.
    fallbacks : list of str
        It grows if there are branches that cannot be used.
    """

    inputs: Sequence[Variable] = field(repr=False)
    variables: Sequence[FreeVariable]
    outputs: Sequence[Variable] = field(repr=False)
    fallbacks: list[str] = field(default_factory=list, repr=False)

    def __reduce__(self) -> tuple[type["Branches"], tuple[Any, ...]]:
        """Leave out compiled programs, which cannot be pickled."""
        return Branches, (self.inputs, self.variables, self.outputs)

    @property
    def terms(self) -> tuple[int, ...]:
        """Number of terms of each sum; empty if there are none, too many, or no JAX form."""
        return () if self._graph is None else self._branched[0]

    def choices(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Choose one term of each sum, at most ``count`` times.

        Returns
        -------
        ndarray of int, shape (m, sums)
            All choices if there are no more than ``count``, otherwise random ones.
        """
        if np.prod(np.array(self.terms, dtype=float)) <= count:
            return np.stack([c.ravel() for c in np.indices(self.terms)], axis=1)
        return rng.integers(0, self.terms, size=(count, len(self.terms)))

    @property
    def log_density(self) -> Callable[[jax.Array, jax.Array], jax.Array]:
        """Log density of one branch, from a position, shape (d,), and a choice, shape (sums,)."""
        graph = self._graph
        assert graph is not None  # there are sums

        def evaluate(x: jax.Array, choice: jax.Array) -> jax.Array:
            terms = graph(choice, *split_values(self.variables, x))
            return jnp.asarray(terms, jnp.float64).sum()

        return evaluate

    @cached_property
    def value_and_gradient(self) -> Callable[..., tuple[jax.Array, jax.Array]]:
        """Log densities and gradients at positions ``(n, d)`` and choices ``(n, sums)``."""
        program: Callable[..., tuple[jax.Array, jax.Array]]
        program = jax.jit(jax.vmap(jax.value_and_grad(self.log_density)))
        return program

    @cached_property
    def _branched(self) -> tuple[tuple[int, ...], Variable, Sequence[Variable]]:
        """Terms of each sum, the symbolic choice, and the graphs of log prior and likelihood."""
        chosen, terms = pt.lvector("branch"), list[int]()
        outputs = self.outputs
        if sum(1 for _ in _sums(outputs)) > _MAX_SUMS:
            self._give_up(f"there are more than {_MAX_SUMS} sums")
            return (), chosen, outputs
        # One at a time, the outer ones first: a term may hold further sums.
        while (found := next(_sums(outputs), None)) is not None:
            if len(terms) == _MAX_SUMS:
                self._give_up(f"there are more than {_MAX_SUMS} sums")
                return (), chosen, outputs
            variable, choice = found
            picked = choice.pick(chosen[len(terms)]).astype(variable.dtype)
            outputs = list(graph_replace(outputs, {variable: picked}, strict=False))
            terms.append(choice.terms)
        return tuple(terms), chosen, outputs

    @cached_property
    def _graph(self) -> JaxGraph | None:
        terms, chosen, outputs = self._branched
        if not terms:
            return None
        try:
            return jaxify([chosen, *self.inputs], outputs)
        except Exception as error:  # Of any class: what JAX cannot evaluate, PyTensor does.
            self._give_up(f"JAX does not evaluate them ({first_line(error)})")
            return None

    def _give_up(self, reason: str) -> None:
        self.fallbacks.append(
            "The terms of sums of densities (mixtures) are not searched for modes one by one, "
            f"because {reason}."
        )


def _sums(outputs: Sequence[Variable]) -> Iterator[tuple[Variable, _Choice]]:
    """Yield the sums of densities on the way from outputs to inputs."""
    found = ((v, _as_choice(v)) for v in ancestors(outputs))
    return ((v, choice) for v, choice in found if choice is not None)


def _as_choice(variable: Variable) -> _Choice | None:
    """Return the terms of a sum of densities; None if the variable is no such sum."""
    if variable.owner is None or not str(getattr(variable, "dtype", "")).startswith("float"):
        return None
    operation = scalar_op(variable)
    name, inputs = type(operation or variable.owner.op).__name__, variable.owner.inputs
    if name == "LogAddExp":
        return _of_inputs(inputs, lambda term: term)
    if name == "LogSumExp":
        return _along_axis(inputs[0], variable.owner.op.axis, lambda term: term)
    if not isinstance(operation, Log) or inputs[0].owner is None:
        return None
    inner = inputs[0].owner
    if isinstance(scalar_op(inputs[0]), Add):
        return _of_inputs(inner.inputs, pt.log)
    if isinstance(inner.op, Sum):
        return _along_axis(inner.inputs[0], inner.op.axis, pt.log)
    return None


def _of_inputs(inputs: Sequence[Variable], log: Callable[[Variable], Variable]) -> _Choice:
    shaped = pt.broadcast_arrays(*inputs)

    def pick(number: Variable) -> Variable:
        chosen = log(shaped[-1])
        for i, term in enumerate(shaped[:-1]):
            chosen = pt.switch(pt.eq(number, i), log(term), chosen)
        return chosen

    return _Choice(len(inputs), pick)


def _along_axis(
    each: Variable, axis: tuple[int, ...] | None, log: Callable[[Variable], Variable]
) -> _Choice | None:
    axes = tuple(range(each.type.ndim)) if axis is None else axis
    length = each.type.shape[axes[0]] if len(axes) == 1 else None
    if length is None or not 1 < length <= _MAX_TERMS:
        return None
    return _Choice(length, lambda number: log(pt.take(each, number, axis=axes[0])))

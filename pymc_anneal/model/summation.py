"""The log density of a model with discrete variables summed out, by elimination.

With ``z`` the variables summed out and ``x`` the others, of which the prior of no real one depends
on ``z``,

    log prior(x) = log p(x),    log likelihood(x) = log sum_z p(z | x) L(x, z).

If one does, as of a slab and a spike, both are ratios of sums:

    log prior(x) = log sum_z p(x, z),    log likelihood(x) = log sum_z p(x, z) L(x, z) - log prior.

The terms of the density, and the entries of ``z`` on which each of them depends, are read off its
program (`dependence.py`). Entries of one colour share no term, so that all terms are known for all
of their values if the density is evaluated once for each combination of values of the colours: of
independent indicators twice, of a chain of two states four times, whatever their number. Where a
term depends on all entries, there is one evaluation for each of their values (`ConfigurationSum`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.model.dependence import MOST_MASKS, dependences
from pymc_anneal.model.elimination import Elimination, log_product, log_sum, plan_elimination
from pymc_anneal.model.operation_batching import batch_operations
from pymc_anneal.model.pickling import PicklableFunction
from pymc_anneal.model.summands import (
    Summand,
    colour_apart,
    find_summands,
    rows_of,
    size_of,
    summed_arrays,
)

# Outputs of the density: log prior of the other variables and of those summed out, log likelihood.
_OTHERS, _OWN, _LIKELIHOOD = range(3)
# Entries that a term may join if there are others to anneal: of more, as in a regression on
# indicators, the sum has narrow modes, which a search over configurations finds.
_MOST_JOINED = 2
# Evaluations of the density in one of the sum, and terms of all of them, 8 bytes for each particle.
_MOST_EVALUATIONS, _MOST_TERMS = 1024, 50_000
# Operations of a program whose gradient compiles in seconds: one of 1,465 (a chain of 60 states
# without batches) did not in minutes.
_MOST_OPERATIONS = 800


def _harmless(log: Callable[[jax.Array], jax.Array], zero: float) -> Callable[..., Any]:
    """Return a logarithm of ``x - zero`` with a derivative of 0 where it is -inf.

    A term that is -inf for some value of z has no share in the gradient of the sum; but zero times
    an infinite derivative, of ``log(p z)`` at ``z = 0``, would be NaN.
    """
    own = jax.custom_jvp(log)

    @own.defjvp
    def derivative(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> Any:
        (x,), (tangent,) = primals, tangents
        finite = x != zero
        return own(x), jnp.where(finite, tangent / jnp.where(finite, x - zero, 1.0), 0.0)

    return own


# Primitives that are evaluated in another form.
_FORMS = {"log": _harmless(jnp.log, 0.0), "log1p": _harmless(jnp.log1p, -1.0)}

# Smallest and largest value of each entry.
Bounds = Sequence[tuple[int, int]]


class CannotSumError(ValueError):
    """Some entries cannot be summed out; `entries` holds their numbers."""

    def __init__(self, message: str, entries: np.ndarray):
        super().__init__(message)
        self.entries = entries


class Terms(NamedTuple):
    """Terms of the density that depend on z.

    Attributes
    ----------
    depends : ndarray of bool, shape (T, p)
        On which entries.
    output : ndarray of int, shape (T,)
        Of which output each is a part.
    """

    depends: np.ndarray
    output: np.ndarray


@dataclass(frozen=True, eq=False)
class Summation:
    """A density of ``z`` and ``x`` as one of ``x`` alone.

    Attributes
    ----------
    function : PicklableFunction
        JAX function of z, shape ``(p,)``, and x, shape ``(d,)``, to its three outputs.
    ndim : int
        Length of x.
    low : ndarray of int, shape (p,)
        Smallest value of each entry.
    values : ndarray of int, shape (c, p)
        Values of z at which the density is evaluated.
    stride : ndarray of int, shape (p,)
        What a step of each entry adds to the number of an evaluation.
    terms : Terms
    joint : Elimination
        The sum of all terms, or without those of the other variables' prior.
    prior : Elimination or None
        The sum without the likelihood, if that prior depends on z.
    """

    function: PicklableFunction
    ndim: int
    low: np.ndarray
    values: np.ndarray
    stride: np.ndarray
    terms: Terms
    joint: Elimination
    prior: Elimination | None

    def evaluate(self, x: jax.Array) -> LogTerms:
        """Return log prior and log likelihood of x, two scalars in nats."""
        table, constants = self.tabulate(x)
        joint = self.joint.log_sum(table.ravel()) + constants[_OWN] + constants[_LIKELIHOOD]
        if self.prior is None:
            return LogTerms(constants[_OTHERS], joint)
        log_prior = self.prior.log_sum(table.ravel()) + constants[_OWN]
        return LogTerms(log_prior + constants[_OTHERS], likelihood_of(joint, log_prior))

    def draw(self, x: jax.Array, key: jax.Array, values: jax.Array | None = None) -> jax.Array:
        """Draw z, shape ``(p,)``, from its conditional distribution given x and the data."""
        return self.joint.draw(self.tabulate(x, values)[0].ravel(), key) + self.low

    def tabulate(
        self, x: jax.Array, values: jax.Array | None = None
    ) -> tuple[jax.Array, list[jax.Array]]:
        """Return all terms that depend on z, shape ``(c, T)``, and the sum of others by output."""
        constant, evaluate = _arrays(self.function, len(self.low), self.ndim)
        own = jnp.asarray(self.values, float) if values is None else values
        table = jax.vmap(lambda z: jnp.concatenate(evaluate(z, x)))(own)
        same = ~self.terms.depends.any(axis=1)
        constants = constant(x)
        for output in range(3):
            rest = np.flatnonzero(same & (self.terms.output == output))
            constants[output] += table[0, rest].sum()
        return table, constants

    def number(self, z: np.ndarray) -> np.ndarray:
        """Return the evaluation that holds each term at z, shapes ``(T,)`` and ``(p,)``."""
        # Entries of one colour have one stride, and a term depends on one of them at most.
        return np.asarray(self.terms.depends @ (self.stride * (z - self.low)))


@dataclass(frozen=True, eq=False)
class ConfigurationSum:
    """A density of ``z`` and ``x`` as one of ``x``, by an evaluation for each value of ``z``.

    Attributes
    ----------
    function : PicklableFunction
        JAX function of z and x, joined to a position, to log prior and log likelihood.
    ndim : int
        Length of x.
    place : ndarray of int, shape (p + d,)
        Places in z followed by x of the entries of a position.
    values : ndarray of int, shape (c, p)
        All values of z.
    at_once : int
        Evaluations that are made side by side.
    """

    function: PicklableFunction
    ndim: int
    place: np.ndarray
    values: np.ndarray
    at_once: int

    def evaluate(self, x: jax.Array) -> LogTerms:
        """Return log prior and log likelihood of x, two scalars in nats."""
        table = self.tabulate(x)[0]
        log_prior = log_sum(table[:, 0])
        return LogTerms(log_prior, likelihood_of(log_sum(log_product(table)), log_prior))

    def draw(self, x: jax.Array, key: jax.Array, values: jax.Array | None = None) -> jax.Array:
        """Draw z, shape ``(p,)``, from its conditional distribution given x and the data."""
        table = self.tabulate(x, values)[0]
        return jnp.asarray(self.values)[jax.random.categorical(key, log_product(table))]

    def tabulate(self, x: jax.Array, values: jax.Array | None = None) -> tuple[jax.Array, Any]:
        """Return log prior and log likelihood, shape ``(c, 2)``, and what does not depend on z."""

        # The way back computes the inner of one evaluation anew, rather than keep that of all.
        @jax.checkpoint
        def evaluate(z: jax.Array) -> jax.Array:
            return jnp.stack(self.function(jnp.concatenate([z, x])[self.place]))

        own = jnp.asarray(self.values, float) if values is None else values
        if len(own) <= self.at_once:
            return jax.vmap(evaluate)(own), ()
        return jax.lax.map(evaluate, own, batch_size=self.at_once), ()


def likelihood_of(joint: jax.Array, log_prior: jax.Array) -> jax.Array:
    """Return the log likelihood of a sum; where its prior is zero, so is what it is part of."""
    return joint - jnp.where(log_prior != -jnp.inf, log_prior, 0.0)


@lru_cache(maxsize=8)
def _arrays(function: PicklableFunction, p: int, ndim: int) -> tuple[Any, Any]:
    """Return the sums by output that do not depend on z, and the arrays that do, as functions."""
    program, masks = _program(function, p, ndim)
    found = find_summands(program)
    dependent = [s for s in found if _depends(s, masks, p)]
    others = [s for s in found if not _depends(s, masks, p)]
    rest = summed_arrays(program, others, masks, _FORMS)

    def constants(x: jax.Array) -> list[jax.Array]:
        sums = [jnp.zeros(())] * 3
        for s, value in zip(others, rest(jnp.zeros(p), x), strict=True):
            sums[s.output] = sums[s.output] + value.sum()
        return sums

    return constants, summed_arrays(program, dependent, masks, _FORMS)


@lru_cache(maxsize=8)
def _program(function: PicklableFunction, p: int, ndim: int) -> tuple[Any, dict[Any, Any]]:
    """Return the program of a density, and the masks of its arrays."""
    # Also where a process that has received the function traces it for the first time.
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        example = np.zeros(p), np.zeros(ndim)
        program = batch_operations(function, *example, fewest=_MOST_OPERATIONS)
        sizes = [size_of(v) for eqn in program.jaxpr.eqns for v in eqn.outvars]
        if len(sizes) > _MOST_OPERATIONS or max(sizes, default=0) * p > MOST_MASKS:
            raise CannotSumError("the program of the density is too long", np.arange(p))
        return program, dependences(program, range(p))


def _depends(summand: Summand, masks: dict[Any, Any], p: int) -> bool:
    return bool(rows_of(summand, masks, p).any())


def plan_summation(
    function: PicklableFunction, ndim: int, bounds: Bounds, most: float = _MOST_TERMS
) -> Summation:
    """Plan a sum over discrete variables ``z`` of a density of ``z`` and ``x``, of length `ndim`.

    The bounds are the smallest and largest value of each entry of ``z``.

    Raises
    ------
    CannotSumError
        It would take too long, or some entries are joined with too many others.
    """
    low, high = np.array(bounds).T
    sizes = high - low + 1
    terms = _find_terms(function, len(low), ndim)
    _check_joined(terms, ndim)
    colour = colour_apart(terms.depends)
    widths = [int(sizes[colour == c].max()) for c in range(colour.max() + 1)]
    evaluations = float(np.prod(np.array(widths, float)))
    long = evaluations > _MOST_EVALUATIONS and np.isfinite(most)
    if long or evaluations * len(terms.output) > most:
        largest = np.flatnonzero(sizes == sizes.max())
        raise CannotSumError(f"a sum takes {evaluations:.4g} evaluations", largest)
    steps = np.indices(widths).reshape(len(widths), -1).T
    stride = np.array([int(np.prod(widths[c + 1 :])) for c in range(len(widths))])[colour]
    values = low + np.minimum(steps[:, colour], sizes - 1)
    others = terms.depends.any(axis=1) & (terms.output == _OTHERS)
    prior = _eliminate(terms, sizes, stride, len(values), _LIKELIHOOD) if others.any() else None
    joint = _eliminate(terms, sizes, stride, len(values), None if others.any() else _OTHERS)
    return Summation(function, ndim, low, values, stride, terms, joint, prior)


def _find_terms(function: PicklableFunction, p: int, ndim: int) -> Terms:
    program, masks = _program(function, p, ndim)
    arrays = [s for s in find_summands(program) if _depends(s, masks, p)]
    depends = [np.zeros((0, p), bool), *(rows_of(s, masks, p) for s in arrays)]
    output = [np.full(size_of(s.variable), s.output) for s in arrays]
    return Terms(np.concatenate(depends), np.concatenate([np.zeros(0, int), *output]))


def _check_joined(terms: Terms, ndim: int) -> None:
    joined = terms.depends[terms.depends.sum(axis=1) > _MOST_JOINED]
    if ndim and len(joined):
        most, often = int(joined.sum(axis=1).max()), joined.sum(axis=0)
        entries = np.flatnonzero(often == often.max())
        raise CannotSumError(f"a term of the density joins {most} entries", entries)


def _eliminate(
    terms: Terms, sizes: np.ndarray, stride: np.ndarray, evaluations: int, without: int | None
) -> Elimination:
    """Plan the sum of the terms of all outputs but one."""
    count = len(terms.output)
    by_entries: dict[tuple[int, ...], list[int]] = {}
    for t in np.flatnonzero((terms.output != without) & terms.depends.any(axis=1)):
        entries = tuple(np.flatnonzero(terms.depends[t]).tolist())
        by_entries.setdefault(entries, []).append(int(t))
    places = {}
    for entries, own in by_entries.items():
        steps = np.indices([sizes[j] for j in entries])
        number = np.tensordot(stride[list(entries)], steps, 1)
        places[entries] = number[..., None] * count + np.array(own)
    found = plan_elimination(sizes.tolist(), places, evaluations * count)
    if found is None:
        raise CannotSumError("a sum joins too many entries", np.arange(len(sizes)))
    return found

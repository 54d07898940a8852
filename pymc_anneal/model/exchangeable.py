"""Exchangeable components in one order: mixtures without label switching.

Where a density stays the same if the entries of some variables are permuted together (weights,
means and scales of a mixture, units of a layer), each mode of the posterior has K! copies. One
order is enough (Stephens 2000): with the entries ``x_1 < ... < x_K`` of one of the variables,

    y_1 = x_1,    y_k = log(x_k - x_{k-1}),    f(y) = K! f(x) prod_{k > 1} exp(y_k)

has the integral of ``f``. Draws of the prior are put in order, and those of the posterior leave it
again, each by a permutation of its own. That a density stays the same is seen at draws of the
prior.
"""

import hashlib

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import lgamma
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pymc.logprob import transforms

from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.derivatives import SMOOTH
from pymc_anneal.model.mapped import MappedModel, map_model
from pymc_anneal.model.notes import or_noted
from pymc_anneal.model.pickling import PicklableFunction
from pymc_anneal.model.recent import once_per_model
from pymc_anneal.model.reduced import at_low_cost, join_names
from pymc_anneal.model.shared_program import SharedProgram
from pymc_anneal.model.variables import FreeVariable

# Components at least and at most, and axes of variables, whose subsets are tried. Of two components
# both orders cost less than one of them, which ends where these overlap: two clusters of galaxies
# took twice the evaluations for 1.4 times the error. Three had half the error with a seventh of the
# evaluations, four in full a quarter, in place of "more steps needed".
_FEWEST, _MOST, _MOST_AXES = 3, 32, 6
# Draws of the prior at which densities are compared, those of them that have to be finite, and the
# difference in units of the density up to which two are the same: of 32 bits there are too few.
_TRIED, _LEAST_TRIED, _SAME = 8, 4, 1e-10
# Draws of the posterior at which they are compared again.
_COMPARED = 64
_ONE_BY_ONE = transforms.LogTransform, transforms.LogOddsTransform, transforms.IntervalTransform
_NOTE = "Exchangeable components keep all of their orders: {}."


class Axis(NamedTuple):
    """An axis of a variable, along which each entry belongs to a component.

    Along the last axis of a simplex, the last entry of the unconstrained values is minus the sum of
    the others, and left out.
    """

    variable: FreeVariable
    axis: int
    of_simplex: bool

    @property
    def components(self) -> int:
        """Number of components."""
        return self.variable.shape[self.axis] + self.of_simplex

    def permute(self, position: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Put the entries in an order, that of each position of its own.

        Parameters
        ----------
        position : ndarray, shape (n, d)
        order : ndarray of int, shape (n, K)
        """
        own = slice(self.variable.start, self.variable.stop)
        entries = position[:, own].reshape(-1, *self.variable.shape)
        if self.of_simplex:
            last = -entries.sum(axis=-1, keepdims=True)
            entries = np.concatenate([entries, last], axis=-1)
        others = [1] * (entries.ndim - 1)
        others[self.axis] = self.components
        entries = np.take_along_axis(entries, order.reshape(-1, *others), axis=1 + self.axis)
        if self.of_simplex:
            entries = entries[..., :-1]
        return np.concatenate(
            [position[:, : own.start], entries.reshape(len(position), -1), position[:, own.stop :]],
            axis=1,
        )

    @property
    def first(self) -> np.ndarray:
        """Places of its entries in the vector, the first ones of all other axes, shape ``(K,)``."""
        every = np.arange(self.variable.start, self.variable.stop).reshape(self.variable.shape)
        return np.asarray(np.moveaxis(every, self.axis, -1).reshape(-1, self.components)[0])

    def may_order(self, axes: Sequence["Axis"]) -> bool:
        """Whether its entries are free, and moved along no other of the axes."""
        own = [axis for axis in axes if axis.variable.name == self.variable.name]
        return not self.of_simplex and len(own) == 1


@dataclass(frozen=True, eq=False)
class OrderedModel(MappedModel):
    """A compiled model whose exchangeable components are in the order of one of their variables.

    Attributes
    ----------
    _axes : tuple of Axis
        The variables of the components, the one that orders them first.
    """

    _axes: tuple[Axis, ...]

    def to_model(self, position: np.ndarray) -> np.ndarray:
        """Map positions to those of components in any order, which is random.

        The seed is a hash of the positions: the same positions give the same order.
        """
        position = np.ascontiguousarray(position, dtype=float)
        digest = hashlib.sha256(position.tobytes()).digest()
        rng = np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))
        order = np.tile(np.arange(self._axes[0].components), (len(position), 1))
        x, own = position.copy(), self._axes[0].first
        x[:, own[1:]] = np.exp(position[:, own[1:]])
        x[:, own] = x[:, own].cumsum(axis=1)
        return _permuted(x, rng.permuted(order, axis=1), self._axes)

    def from_model(self, position: np.ndarray) -> np.ndarray:
        """Put the components in order."""
        own = self._axes[0].first
        y = _permuted(position, position[:, own].argsort(axis=1), self._axes)
        y[:, own[1:]] = np.log(np.diff(y[:, own], axis=1))
        return y

    @double_precision
    def doubt_density(self, position: np.ndarray) -> str:
        """Say that orders have different densities at draws of the posterior, or ""."""
        x = self.to_model(position[:: -(-len(position) // _COMPARED)])
        ordered = _permuted(x, x[:, self._axes[0].first].argsort(axis=1), self._axes)
        terms = at_low_cost(jax.vmap(self._full.log_terms), np.concatenate([ordered, x]))
        if all(_is_same(t.reshape(2, -1)).all() for t in terms):
            return self._full.doubt_density(self.to_model(position))
        return (
            f"the components of {_names(self._axes)} are exchangeable at draws of the prior, and "
            "not at those of the posterior; take reference='prior'"
        )


@once_per_model
def ordered_model(compiled: CompiledModel) -> CompiledModel | None:
    """Return a model with its exchangeable components in one order; None if it has none.

    Components have two or more variables, one of them free to order them: of a single one whose
    entries are exchangeable, as independent effects are, the posterior may have one mode.
    """
    # Members of a family share one compilation, and would each have one of their own.
    shared = isinstance(getattr(compiled.log_terms, "func", None), SharedProgram)
    smooth = compiled.derivatives.order == SMOOTH and not compiled.discrete
    if not shared or not smooth:
        return None
    return or_noted(lambda: _order(compiled), compiled.fallbacks, _NOTE)


def _order(compiled: CompiledModel) -> CompiledModel | None:
    found = find_exchangeable(compiled)
    if not found:
        return None
    model, free = compiled.model, [axis for axis in found if axis.may_order(found)]
    # One without a transform is most often a place, which tells components apart.
    first = min(free, key=lambda a: model.rvs_to_transforms[model[a.variable.name]] is not None)
    axes = (first, *(axis for axis in found if axis != first))
    note = (
        f"The {first.components} components of {_names(axes)} are exchangeable: the run keeps them "
        f"in the order of '{first.variable.name}', and draws have them in random order."
    )
    function = PicklableFunction(partial(_log_terms, compiled.log_terms, first.first))
    return map_model(OrderedModel, compiled, function, note, compiled.variables, _axes=axes)


def _log_terms(
    log_terms: Callable[[jax.Array], LogTerms], own: np.ndarray, y: jax.Array
) -> LogTerms:
    with jax.enable_x64(True):
        gaps = y[own[1:]]
        ordered = jnp.cumsum(jnp.concatenate([y[own[:1]], jnp.exp(gaps)]))
        terms = log_terms(y.at[own].set(ordered))
        return terms._replace(log_prior=terms.log_prior + gaps.sum() + lgamma(len(own) + 1))


@double_precision
def find_exchangeable(compiled: CompiledModel) -> tuple[Axis, ...]:
    """Return axes of variables whose entries may be permuted together, and not alone.

    Empty if there are none that can be put in order.
    """
    every = list(_axes(compiled))
    for components in sorted({axis.components for axis in every}):
        own = [axis for axis in every if axis.components == components]
        if 1 < len(own) <= _MOST_AXES and _FEWEST <= components <= _MOST:
            found = _exchangeable_among(compiled, own)
            if any(axis.may_order(found) for axis in found):
                return found
    return ()


def _axes(compiled: CompiledModel) -> Iterator[Axis]:
    """Yield the axes of variables whose entries are transformed one by one, and of simplices."""
    for v in compiled.variables:
        transform = compiled.model.rvs_to_transforms[compiled.model[v.name]]
        simplex = isinstance(transform, transforms.SimplexTransform)
        one_by_one = transform is None or isinstance(transform, _ONE_BY_ONE)
        if v.dtype == "float64" and (simplex or one_by_one):
            for axis in range(len(v.shape)):
                yield Axis(v, axis, simplex and axis == len(v.shape) - 1)


def _exchangeable_among(compiled: CompiledModel, axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """Return the fewest axes along which a density is symmetric, but along none of them alone."""
    sets = [s for size in range(1, 1 + len(axes)) for s in combinations(axes, size)]
    x = compiled.sample_prior(np.random.SeedSequence(1), _TRIED)
    count = axes[0].components
    # A swap and a turn make all permutations.
    orders = [np.r_[1, 0, 2:count], np.roll(np.arange(count), 1)]
    moved = [_permuted(x, np.tile(o, (len(x), 1)), s) for s in sets for o in orders]
    terms = at_low_cost(jax.vmap(compiled.log_terms), np.concatenate([x, *moved]))
    log_prior, log_likelihood = (t.reshape(-1, len(x)) for t in terms)
    if len(np.unique(log_likelihood[0])) < len(x):  # flat there, it may be anything elsewhere
        return ()
    same = _is_same(log_prior) & _is_same(log_likelihood)
    symmetric = [
        s for s, whole in zip(sets, same.reshape(-1, len(orders)), strict=True) if whole.all()
    ]
    alone = {s[0] for s in symmetric if len(s) == 1}
    together = (s for s in symmetric if len(s) > 1 and not alone.intersection(s))
    return next(together, ())


def _is_same(value: np.ndarray) -> np.ndarray:
    """Whether rows are the same as the first one, shape ``(m, n)`` to ``(m - 1,)``."""
    first, others = value[0], value[1:]
    if (finite := np.isfinite(first)).sum() < _LEAST_TRIED:
        return np.zeros(len(others), dtype=bool)
    close: np.ndarray = np.isclose(others[:, finite], first[finite], _SAME, _SAME).all(axis=1)
    return close


def _permuted(position: np.ndarray, order: np.ndarray, axes: Sequence[Axis]) -> np.ndarray:
    for axis in axes:
        position = axis.permute(position, order)
    return position


def _names(axes: Sequence[Axis]) -> str:
    return join_names([f"'{axis.variable.name}'" for axis in axes])

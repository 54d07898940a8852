"""Sums over discrete variables by variable elimination, and draws of them.

A density of discrete variables z is a product of factors, of few variables each. Summing one of
them out leaves a factor of its neighbours N, the variables that it shares factors with:

    log m(z_N) = log sum_k exp sum_{f: j in f} log f(z_N, z_j = k)

(Zhang & Poole 1994; Koller & Friedman 2009, algorithm 9.1). Variables that are no neighbours are
summed out in one round: indicators that share only parameters in one, a chain of n states in about
log2(n) rounds instead of the n steps of the forward recursion. Backwards, each variable is drawn
from its conditional distribution given its neighbours, all of which were summed out later.

The logs of all factors lie in one vector, which grows by the factors of each round; a round reads
it by an array of places that is found once for a model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

# Places of the vector that hold log 1 and log 0.
_ONE, _ZERO = 0, 1
# The vector begins with these two.
OFFSET = 2
# Values of a variable and its neighbours up to which it is summed out in an early round: a chain of
# up to 8 states in few rounds, one of more by its ends, whose factors are smaller.
_SMALL = 512
# Numbers read in all rounds up to which a sum is planned.
MOST_READ = 400_000


class _Factor(NamedTuple):
    """Variables of a factor, in increasing order, and the place of each of its values."""

    variables: tuple[int, ...]
    place: np.ndarray


class _Round(NamedTuple):
    """Variables summed out together.

    Attributes
    ----------
    read : ndarray of int, shape (m, K, F)
        Places of the factors of a variable, for values of its neighbours and each of its own.
    variables : ndarray of int, shape (b,)
    row : ndarray of int, shape (b,)
        First row of each variable in `read`.
    neighbours, stride : ndarray of int, shape (b, D)
        What a step of each neighbour adds to the row; 0 where there are fewer.
    """

    read: np.ndarray
    variables: np.ndarray
    row: np.ndarray
    neighbours: np.ndarray
    stride: np.ndarray


@dataclass(frozen=True, eq=False)
class Elimination:
    """A plan to sum products of factors over all variables, and to draw these.

    Attributes
    ----------
    sums : tuple of ndarray of int, shape (m, F)
        Places of terms whose sums are the logs of the first factors.
    rounds : tuple of _Round
    rest : ndarray of int
        Places of what is left when all variables are summed out.
    """

    sums: tuple[np.ndarray, ...]
    rounds: tuple[_Round, ...]
    rest: np.ndarray

    def log_sum(self, table: jax.Array) -> jax.Array:
        """Return the log of the sum over all variables, from the logs of terms, shape (t,)."""
        return self._forward(table)[0]

    def draw(self, table: jax.Array, key: jax.Array) -> jax.Array:
        """Draw all variables from their joint distribution: numbers from 0, shape (p,)."""
        scores = self._forward(table)[1]
        values = jnp.zeros(sum(len(r.variables) for r in self.rounds), int)
        keys = jax.random.split(key, max(len(self.rounds), 1))
        for r, score, own in zip(reversed(self.rounds), reversed(scores), keys, strict=False):
            row = r.row + (jnp.asarray(r.stride) * values[r.neighbours]).sum(axis=1)
            values = values.at[r.variables].set(jax.random.categorical(own, score[row]))
        return values

    def _forward(self, table: jax.Array) -> tuple[jax.Array, list[jax.Array]]:
        known = jnp.concatenate([jnp.array([0.0, -jnp.inf]), table])
        for places in self.sums:
            known = jnp.concatenate([known, log_product(known[places])])
        scores = []
        for r in self.rounds:
            scores.append(log_product(known[r.read]))
            known = jnp.concatenate([known, log_sum(scores[-1])])
        return log_product(known[self.rest]), scores


def log_product(logs: jax.Array) -> jax.Array:
    """Sum logs over the last axis: a product with a factor of zero is zero, whatever the others."""
    zero = (logs == -jnp.inf).any(axis=-1)
    return jnp.where(zero, -jnp.inf, jnp.where(zero[..., None], 0.0, logs).sum(axis=-1))


def log_sum(logs: jax.Array) -> jax.Array:
    """Return the log of a sum over the last axis, whose gradient is a number if all are zero."""
    most = jax.lax.stop_gradient(logs.max(axis=-1, keepdims=True))
    most = jnp.where(jnp.isfinite(most), most, 0.0)
    total = jnp.exp(logs - most).sum(axis=-1)
    positive = total != 0  # True where it is NaN, which is not hidden
    return jnp.where(positive, jnp.log(jnp.where(positive, total, 1.0)) + most[..., 0], -jnp.inf)


def plan_elimination(
    sizes: Sequence[int], terms: Mapping[tuple[int, ...], np.ndarray], count: int
) -> Elimination | None:
    """Plan the sum of a product of factors over all of their variables.

    Parameters
    ----------
    sizes : sequence of int
        Number of values of each variable.
    terms : mapping of tuple of int to ndarray of int, shape (..., F)
        By variables in increasing order: places of the terms of their factor in the table, for each
        of their values, the last variable's fastest.
    count : int
        Length of the table.

    Returns
    -------
    Elimination or None
        None if more than `MOST_READ` numbers would have to be read.
    """
    factors, sums, end = _first_factors(terms, OFFSET + count)
    rounds, left, read = list[_Round](), set(range(len(sizes))), 0.0
    while left:
        chosen, around = _choose(sizes, factors, left)
        read += sum(_cost(sizes, j, around[j]) for j in chosen)
        if read > MOST_READ:
            return None
        found, factors = _sum_out(sizes, factors, chosen, around, end)
        end += len(found.read)
        rounds.append(found)
        left -= set(chosen)
    rest = np.array([int(f.place.ravel()[0]) for f in factors], int)
    return Elimination(tuple(sums), tuple(rounds), rest)


def _first_factors(
    terms: Mapping[tuple[int, ...], np.ndarray], end: int
) -> tuple[list[_Factor], list[np.ndarray], int]:
    """Return one factor for each set of variables, and the sums of terms that some of them are."""
    factors, several = list[_Factor](), dict[int, list[tuple[tuple[int, ...], np.ndarray]]]()
    for variables, place in terms.items():
        width = place.shape[-1]
        if width == 1:
            factors.append(_Factor(variables, place[..., 0] + OFFSET))
        else:  # those of about the same number of terms in one array
            several.setdefault((width - 1).bit_length(), []).append((variables, place + OFFSET))
    sums = []
    for members in several.values():
        width = max(place.shape[-1] for _, place in members)
        rows = []
        for variables, place in members:
            gap = [(0, 0)] * (place.ndim - 1) + [(0, width - place.shape[-1])]
            rows.append(np.pad(place, gap, constant_values=_ONE).reshape(-1, width))
            shape, size = place.shape[:-1], len(rows[-1])
            factors.append(_Factor(variables, np.arange(end, end + size).reshape(shape)))
            end += size
        sums.append(np.concatenate(rows))
    return factors, sums, end


def _choose(
    sizes: Sequence[int], factors: Sequence[_Factor], left: set[int]
) -> tuple[list[int], dict[int, tuple[int, ...]]]:
    """Choose variables of one size that are no neighbours, those with the smallest factors first.

    Returns them, and the neighbours of all.
    """
    sets: dict[int, set[int]] = {j: set() for j in left}
    for factor in factors:
        for j in factor.variables:
            sets[j].update(factor.variables)
    around = {j: tuple(sorted(found - {j})) for j, found in sets.items()}
    costs = {j: _cost(sizes, j, around[j]) for j in left}
    order = sorted(left, key=lambda j: (costs[j], j))
    most = max(costs[order[0]], _SMALL)
    chosen, blocked = list[int](), set[int]()
    for j in order:
        if costs[j] <= most and sizes[j] == sizes[order[0]] and j not in blocked:
            chosen.append(j)
            blocked.update(around[j])
    return chosen, around


def _cost(sizes: Sequence[int], variable: int, around: Sequence[int]) -> float:
    """Return the number of values of a variable with its neighbours."""
    return float(np.prod([float(sizes[i]) for i in (variable, *around)]))


def _sum_out(
    sizes: Sequence[int],
    factors: Sequence[_Factor],
    chosen: Sequence[int],
    around: Mapping[int, tuple[int, ...]],
    end: int,
) -> tuple[_Round, list[_Factor]]:
    """Return the round that sums some variables out, and the factors that are left after it."""
    kept = [f for f in factors if not set(f.variables) & set(chosen)]
    own = {j: [f for f in factors if j in f.variables] for j in chosen}
    width, most = max(max(map(len, own.values())), 1), max(len(around[j]) for j in chosen)
    reads, start, row = list[np.ndarray](), 0, list[int]()
    neighbours, stride = np.zeros((2, len(chosen), most), int)
    for b, j in enumerate(chosen):
        shape = tuple(sizes[i] for i in around[j])
        axes = (*around[j], j)
        full = [np.broadcast_to(_aligned(f, axes), (*shape, sizes[j])) for f in own[j]]
        blank = [np.full((*shape, sizes[j]), _ONE)] * (width - len(full))
        reads.append(np.stack([*full, *blank], axis=-1).reshape(-1, sizes[j], width))
        size = len(reads[-1])
        place = np.arange(end + start, end + start + size).reshape(shape)
        kept.append(_Factor(around[j], place))
        row.append(start)
        neighbours[b, : len(shape)] = around[j]
        stride[b, : len(shape)] = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
        start += size
    read = np.concatenate(reads)
    return _Round(read, np.array(chosen), np.array(row), neighbours, stride), kept


def _aligned(factor: _Factor, axes: Sequence[int]) -> np.ndarray:
    """Return the places of a factor with one axis for each of some variables, in their order."""
    present = [i for i in axes if i in factor.variables]
    moved = factor.place.transpose([factor.variables.index(i) for i in present])
    shape = iter(moved.shape)
    return moved.reshape([next(shape) if i in factor.variables else 1 for i in axes])

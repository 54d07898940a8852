"""Parts shared by the Metropolis-Hastings kernels.

Proposals are made in coordinates ``z`` in which the density is of about unit scale, ``x = S z``.
``S`` is the ``scale`` of a kernel: a scalar, a vector of shape ``(d,)`` (one factor for each
coordinate), or a lower triangular matrix of shape ``(d, d)``.
"""

import math

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Protocol, Self, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.contracts import (
    KernelState,
    Parameter,
    Path,
    PyTree,
    Scalar,
    StepInfo,
    Transition,
    rejected_nan,
)

# As in PyMC and Stan: an energy error above this is a divergence of the integrator.
_DIVERGENCE = 1000.0

Move: TypeAlias = Callable[[jax.Array, KernelState], tuple[KernelState, StepInfo]]
CoordinateMove: TypeAlias = Callable[
    [jax.Array, KernelState, jax.Array], tuple[KernelState, StepInfo]
]


class Sweep(Transition, Protocol):
    """Kernel that moves one whole number after the other, in a fixed order.

    Its reversal sweeps in the opposite order.
    """

    coordinates: Sequence[int]

    @property
    def backward(self) -> bool:
        """Whether to go from the last coordinate to the first: a field of the dataclass."""

    @property
    def moved_coordinates(self) -> Sequence[int]:
        """The coordinates."""
        return self.coordinates

    @property
    def moves_integers(self) -> bool:
        """Yes."""
        return True

    def reversal(self) -> Self:
        """Return the sweep in the opposite order."""
        return self.with_parameters({"backward": not self.backward})


def cycled(value: jax.Array, low: jax.Array, size: jax.Array, shift: jax.Array) -> jax.Array:
    """Return the value ``shift`` places on among ``size`` in a circle, from ``low`` on.

    One outside of them stays: it would not be found from within.
    """
    place = value - low
    inside = (place >= 0) & (place < size)
    return value + jnp.where(inside, jnp.mod(place + shift, size) - place, 0)


def apply_scale(scale: jax.Array, z: jax.Array) -> jax.Array:
    """Return ``S z`` for every row of ``z``, shape ``(n, d)``."""
    return z @ scale.T if jnp.ndim(scale) == 2 else z * scale


def apply_transposed_scale(scale: jax.Array, g: jax.Array) -> jax.Array:
    """Return ``S' g`` for every row of ``g``, shape ``(n, d)``: a gradient with respect to z."""
    return g @ scale if jnp.ndim(scale) == 2 else g * scale


def normal_and_uniform(
    key: jax.Array, position: jax.Array, count: int
) -> tuple[jax.Array, jax.Array]:
    """Draw normal numbers of the shape of the positions, and uniform ones, at once.

    The compiler takes longer for each call of a generator than the processor for all numbers.
    """
    (n, d), dtype = position.shape, position.dtype
    # The inverse of the distribution function is infinite at -1.
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype))
    numbers = jax.random.uniform(key, (n, d + count), dtype, minval=low, maxval=1.0)
    return math.sqrt(2) * jax.lax.erf_inv(numbers[:, :d]), 0.5 * (1 + numbers[:, d:])


def accept_reject(
    uniform: jax.Array, log_accept: jax.Array, proposal: KernelState, current: KernelState
) -> tuple[KernelState, jax.Array]:
    """Return the next state of ``n`` particles, and the acceptance probabilities.

    Uniform numbers and log acceptance ratios have the shape ``(n,)``; NaN rejects.
    """
    probability = jnp.where(jnp.isnan(log_accept), 0.0, jnp.exp(jnp.minimum(log_accept, 0.0)))
    accepted = uniform < probability

    def pick(new: jax.Array, old: jax.Array) -> jax.Array:
        return jnp.where(accepted.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    return jax.tree.map(pick, proposal, current), probability


def nan_without_divergence(
    path: Path, beta: Scalar, proposal: KernelState, energy_gain: jax.Array
) -> jax.Array:
    """Flag proposals with a NaN density that are not divergences of the integrator."""
    finite = jnp.isfinite(proposal.position).all(axis=-1) & (energy_gain < _DIVERGENCE)
    return flag_nan(path.log_density(proposal.terms, beta), proposal.terms) & finite


def flag_nan(log_density: jax.Array, terms: PyTree) -> jax.Array:
    """Flag densities that are NaN, or zero in place of NaN; shape ``(n,)``."""
    rejected = rejected_nan(terms)
    nan = jnp.isnan(log_density)
    return nan if rejected is None else nan | rejected


def merge_info(total: StepInfo, info: StepInfo, weight: float | jax.Array) -> StepInfo:
    """Add the diagnostics of one of several proposals to those of the step."""
    return StepInfo(
        accept_rate=total.accept_rate + weight * info.accept_rate,
        nan=total.nan + weight * info.nan,
        nan_position=jnp.where(info.nan[:, None] > 0, info.nan_position, total.nan_position),
    )


def empty_info(position: jax.Array) -> StepInfo:
    """Return the diagnostics of a step without proposals."""
    n = position.shape[0]
    return StepInfo(jnp.zeros(n), jnp.zeros(n), jnp.zeros_like(position))


def repeat(
    move: Move, key: jax.Array, state: KernelState, n_steps: Parameter
) -> tuple[KernelState, StepInfo]:
    """Apply a move ``n_steps`` times; the number may be traced."""

    def body(i: jax.Array, carry: tuple[KernelState, StepInfo]) -> tuple[KernelState, StepInfo]:
        state, total = carry
        state, info = move(jax.random.fold_in(key, i), state)
        return state, merge_info(total, info, 1 / n_steps)

    start = (state, empty_info(state.position))
    end: tuple[KernelState, StepInfo] = jax.lax.fori_loop(0, n_steps, body, start)
    return end


def sweep(
    move: CoordinateMove,
    key: jax.Array,
    state: KernelState,
    n_moves: Parameter,
    count: int,
    backward: bool,
) -> tuple[KernelState, StepInfo]:
    """Apply ``move(key, state, i)`` for ``i`` through ``count`` coordinates, in turn.

    The number of moves is a multiple of ``count``, and may be traced.
    """

    def body(i: jax.Array, carry: tuple[KernelState, StepInfo]) -> tuple[KernelState, StepInfo]:
        state, total = carry
        at = count - 1 - i % count if backward else i % count
        state, info = move(jax.random.fold_in(key, i), state, at)
        return state, merge_info(total, info, 1 / n_moves)

    start = (state, empty_info(state.position))
    end: tuple[KernelState, StepInfo] = jax.lax.fori_loop(0, n_moves, body, start)
    return end


def with_coordinate(position: jax.Array, coordinate: Scalar, values: jax.Array) -> jax.Array:
    """Replace one coordinate, which may be traced, of positions of shape ``(n, d)``."""
    return jnp.where(jnp.arange(position.shape[1]) == coordinate, values[:, None], position)


def merge_columns(whole: jax.Array, part: jax.Array, coordinates: Sequence[int]) -> jax.Array:
    """Replace some columns of ``whole``, shape ``(n, d)``, by those of ``part``.

    Runs of neighbouring columns are concatenated: XLA's scatter on the CPU is a loop over elements.
    """
    inside = set(coordinates)
    pieces, taken = [], 0
    for from_part, run in groupby(range(whole.shape[1]), key=inside.__contains__):
        columns = list(run)
        if from_part:
            pieces.append(part[:, taken : taken + len(columns)])
            taken += len(columns)
        else:
            pieces.append(whole[:, columns[0] : columns[-1] + 1])
    return jnp.concatenate(pieces, axis=1) if pieces else whole


def outside_support(path: Path, terms: PyTree) -> jax.Array:
    """Flag positions outside the support of the reference, shape ``(n,)``.

    A discrete proposal may step over the edge of the support; the other terms may have any value
    there, NaN included.
    """
    return jnp.isneginf(path.log_density(terms, 0.0))

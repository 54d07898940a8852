"""Sums over the states of the hidden layer, in blocks.

The states are split into high and low bits, ``W h = W h_1 + W h_2``. The second product is the same
in every block of states, and each state takes one logarithm,

    sum_i softplus(x_i) = sum_i max(x_i, 0) + log prod_i (1 + e^{-|x_i|}),

where the factors of the product lie between 1 and 2. It takes no exponential: with ``x = y + z``,
``y`` from the high and ``z`` from the low bits, ``e^{-|x|} = min(e^y e^z, e^-y e^-z)``. One block
of low bits bounds the memory. The blocks are summed in a fixed number of parts, by threads.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jax.scipy.special import logsumexp
from jax.typing import DTypeLike

from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.execution.workers import count_processors
from pymc_anneal.rbm.model import RBM

# Bits of a block of states; a block fits in the processor's cache.
_LOW_BITS = 8

# Factors per product: a float64 holds a product of 512 factors of at most 2.
_CHUNK = 512

# Logarithm of the number of parts of a sum: the same on every machine, so that the result does not
# depend on the number of processors.
_LOG_PARTS = 3

# Largest field for which exponentials of its two terms neither overflow nor underflow.
_MAX_FIELD = 300.0

T = TypeVar("T")


class Moments(NamedTuple):
    """Expected sufficient statistics of an RBM.

    Attributes
    ----------
    visible : ndarray, shape (n_visible,)
        ``E[v]``.
    hidden : ndarray, shape (n_hidden,)
        ``E[h]``.
    products : ndarray, shape (n_visible, n_hidden)
        ``E[v h']``.
    """

    visible: np.ndarray | jax.Array
    hidden: np.ndarray | jax.Array
    products: np.ndarray | jax.Array


def bits_of(index: jax.Array, count: int, dtype: DTypeLike) -> jax.Array:
    """Return the lowest ``count`` bits of integers, shape ``(..., count)``."""
    return ((index[..., None] >> jnp.arange(count)) & 1).astype(dtype)


def _split_bits(model: RBM) -> tuple[int, int]:
    """Return the numbers of low and of high bits."""
    low = min(_LOW_BITS, model.n_hidden)
    return low, model.n_hidden - low


class _LowStates(NamedTuple):
    """Contributions of the low bits, the same in every block of ``m`` states.

    Attributes
    ----------
    bits : Array, shape (m, low)
    log_weight : Array, shape (m,)
        ``b.h`` of these bits.
    field, rise, fall : Array, shape (m, n_visible)
        ``z = W h`` of these bits, ``e^z`` and ``e^-z``.
    """

    bits: jax.Array
    log_weight: jax.Array
    field: jax.Array
    rise: jax.Array
    fall: jax.Array


def _low_states(model: RBM) -> _LowStates:
    low, _ = _split_bits(model)
    bits = bits_of(jnp.arange(2**low), low, model.weights.dtype)
    field = bits @ model.weights[:, :low].T
    log_weight = bits @ model.hidden_bias[:low]
    return _LowStates(bits, log_weight, field, jnp.exp(field), jnp.exp(-field))


# From the field of the high bits, shape (n_visible,), and the low states to e^-|field|.
_Decay: TypeAlias = Callable[[jax.Array, _LowStates], jax.Array]


def _decay(upper: jax.Array, lower: _LowStates) -> jax.Array:
    """Return ``e^-|y + z|`` for fields of any size, shape ``(m, n_visible)``."""
    return jnp.exp(-jnp.abs(upper + lower.field))


def _decay_by_products(upper: jax.Array, lower: _LowStates) -> jax.Array:
    """Return ``e^-|y + z|`` without an exponential for each state, shape ``(m, n_visible)``."""
    return jnp.minimum(jnp.exp(upper) * lower.rise, jnp.exp(-upper) * lower.fall)


def decay_for(model: RBM) -> _Decay:
    """Return the faster function if no field can be too large for it."""
    largest = np.abs(model.visible_bias) + np.abs(model.weights).sum(axis=1)
    return _decay_by_products if np.max(largest, initial=0.0) < _MAX_FIELD else _decay


def _block(
    model: RBM, decay_of: _Decay, lower: _LowStates, index: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return log weights ``(m,)`` and ``P(v = 1 | h)`` ``(m, n_visible)`` of a block of states.

    The high bits of the states are those of ``index``.
    """
    low, high = _split_bits(model)
    upper = bits_of(index, high, model.weights.dtype)
    log_weight = lower.log_weight + upper @ model.hidden_bias[low:]
    y = model.visible_bias + model.weights[:, low:] @ upper
    x, decay = y + lower.field, decay_of(y, lower)
    probability = jnp.where(x >= 0, 1.0, decay) / (1 + decay)
    return log_weight + jnp.maximum(x, 0).sum(axis=1) + _sum_log1p(decay), probability


def _sum_log1p(terms: jax.Array) -> jax.Array:
    """Return ``sum_i log(1 + t_{si})`` of each row ``s`` of terms between 0 and 1."""
    parts = [terms[:, i : i + _CHUNK] for i in range(0, terms.shape[1], _CHUNK)]
    return sum((jnp.log(jnp.prod(1 + part, axis=1)) for part in parts), jnp.zeros(len(terms)))


def log_states(model: RBM) -> jax.Array:
    """Return the log weight of every state of the hidden layer, in the order of its bits."""
    lower = _low_states(model)
    blocks = jnp.arange(2 ** _split_bits(model)[1])
    log_weight: jax.Array = jax.lax.map(
        lambda index: _block(model, _decay, lower, index)[0], blocks
    )
    return log_weight.reshape(-1)


def sum_parts(sum_part: Callable[[jax.Array], T], model: RBM) -> list[T]:
    """Return the sums over the parts of all blocks, computed by threads."""
    high = _split_bits(model)[1]
    parts = np.split(np.arange(2**high), 2 ** min(high, _LOG_PARTS))
    with ThreadPoolExecutor(count_processors()) as pool:
        return list(pool.map(double_precision(sum_part), parts))


@partial(jax.jit, static_argnums=1)
def log_z_of_blocks(model: RBM, decay_of: _Decay, blocks: jax.Array) -> jax.Array:
    """Return the log sum of the weights of some blocks of states."""
    lower = _low_states(model)

    def log_sum(index: jax.Array) -> jax.Array:
        return logsumexp(_block(model, decay_of, lower, index)[0])

    return logsumexp(jax.lax.map(log_sum, blocks))


class _Total(NamedTuple):
    """Running sums over the states, in units of ``exp(shift)``.

    Attributes
    ----------
    shift : Array, shape ()
        Largest log weight so far.
    weight : Array, shape ()
    moments : Moments
        Not yet divided by ``weight``.
    """

    shift: jax.Array
    weight: jax.Array
    moments: Moments


@partial(jax.jit, static_argnums=1)
def sum_blocks(model: RBM, decay_of: _Decay, blocks: jax.Array) -> _Total:
    """Return the sums over some blocks of states."""
    lower, high = _low_states(model), _split_bits(model)[1]
    # One product gives the sums for all low bits; the column of ones gives those of the high bits.
    design = jnp.column_stack([jnp.ones(len(lower.bits)), lower.bits])

    def add(total: _Total, index: jax.Array) -> tuple[_Total, None]:
        log_weight, visible = _block(model, decay_of, lower, index)
        shift = jnp.maximum(total.shift, log_weight.max())
        p, old = jnp.exp(log_weight - shift), jnp.exp(total.shift - shift)
        sums = (p[:, None] * design).T @ visible
        upper = bits_of(index, high, visible.dtype)
        part = Moments(
            sums[0],
            jnp.concatenate([p @ lower.bits, p.sum() * upper]),
            jnp.concatenate([sums[1:].T, jnp.outer(sums[0], upper)], axis=1),
        )
        moments = jax.tree.map(lambda a, b: old * a + b, total.moments, part)
        return _Total(shift, old * total.weight + p.sum(), moments), None

    empty = Moments(*(jnp.zeros_like(x) for x in jax.tree.leaves(model)))
    start = _Total(jnp.asarray(-jnp.inf), jnp.asarray(0.0), empty)
    total: _Total = jax.lax.scan(add, start, blocks)[0]
    return total


def combine(totals: list[_Total]) -> tuple[float, Moments]:
    """Return ``log Z`` and the moments from the sums over parts of the states."""
    shift = max(float(total.shift) for total in totals)
    shares = [np.exp(float(total.shift) - shift) for total in totals]
    weight = sum(r * float(total.weight) for r, total in zip(shares, totals, strict=True))

    def mean(parts: tuple[jax.Array, ...]) -> np.ndarray:
        summed = sum(r * np.asarray(x) for r, x in zip(shares, parts, strict=True))
        return np.asarray(summed / weight)

    moments = zip(*(total.moments for total in totals), strict=True)
    return shift + float(np.log(weight)), Moments(*map(mean, moments))

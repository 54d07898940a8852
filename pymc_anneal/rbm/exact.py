"""Exact sums over the states of a small layer.

If the hidden layer is the smaller one, ``Z = sum_h exp(b.h + sum_i softplus(a_i + (W h)_i))``. The
states are split into high and low bits, ``W h = W h_1 + W h_2``. The second product is the same in
every block of states, and each state takes one exponential per unit and one logarithm,

    sum_i softplus(x_i) = sum_i max(x_i, 0) + log prod_i (1 + e^{-|x_i|}),

where the factors of the product lie between 1 and 2. One block of low bits bounds the memory.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jax.scipy.special import logsumexp
from jax.typing import DTypeLike

from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import RandomSeed, key_of, seed_sequence
from pymc_anneal.rbm.bernoulli import bernoulli
from pymc_anneal.rbm.model import RBM

# Largest layer that is enumerated: 2^25 states, and the time doubles with each unit.
MAX_UNITS = 25

# Bits of a block of states; a block fits in the processor's cache.
_LOW_BITS = 8

# Factors per product: a float64 holds a product of 512 factors of at most 2.
_CHUNK = 512


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


@double_precision
def log_partition_function(model: RBM) -> float:
    """Return the exact ``log Z``, summed over the states of the smaller layer.

    Parameters
    ----------
    model : RBM
        With at most 25 visible or 25 hidden units. The time doubles with each unit.

    Returns
    -------
    float
        In nats.

    Raises
    ------
    ValueError
        Both layers have more than 25 units.
    """
    return float(_log_z(_as_double(_smaller_hidden(model))))


def exact_moments(model: RBM) -> Moments:
    """Return the exact expectations of ``v``, ``h`` and ``v h'``.

    Parameters
    ----------
    model : RBM
        With at most 25 visible or 25 hidden units. The time doubles with each unit.

    Returns
    -------
    Moments

    Raises
    ------
    ValueError
        Both layers have more than 25 units.
    """
    return log_z_and_moments(model)[1]


@double_precision
def log_z_and_moments(model: RBM) -> tuple[float, Moments]:
    """Return ``log Z`` and the moments, from one pass over the states."""
    small = _smaller_hidden(model)
    log_z, found = _sum_states(_as_double(small))
    visible, hidden, products = (np.asarray(x) for x in found)
    if small is not model:
        visible, hidden, products = hidden, visible, products.T
    return float(log_z), Moments(visible, hidden, products)


@double_precision
def sample_exact(model: RBM, draws: int, random_seed: RandomSeed = None) -> np.ndarray:
    """Draw independent visible configurations from a small RBM.

    Parameters
    ----------
    model : RBM
        With at most 25 visible or 25 hidden units.
    draws : int
        Number of draws.
    random_seed
        Seed: int, sequence of int, numpy SeedSequence or Generator.

    Returns
    -------
    ndarray of 0 and 1, shape (draws, n_visible)

    Raises
    ------
    ValueError
        Both layers have more than 25 units, or the seed is not valid.
    """
    check_small(model)
    key = key_of(seed_sequence(random_seed))
    rbm = jax.tree.map(jnp.asarray, model)
    return np.asarray(jax.jit(draw_exact, static_argnums=2)(key, rbm, draws))


def draw_exact(key: jax.Array, model: RBM, draws: int) -> jax.Array:
    """Draw visible configurations, shape ``(draws, n_visible)``; a JAX function."""
    key_state, key_other = jax.random.split(key)
    transposed = model.n_visible < model.n_hidden
    small = _transpose(model) if transposed else model
    log_p = _log_states(_as_double(small))  # products of hundreds of factors need the range
    cumulative = jnp.cumsum(jnp.exp(log_p - log_p.max()))
    uniform = jax.random.uniform(key_state, (draws,), jnp.float64)
    index = jnp.searchsorted(cumulative, uniform * cumulative[-1], side="right")
    layer = _bits(index.clip(0, len(log_p) - 1), small.n_hidden, small.weights.dtype)
    if transposed:
        return layer
    return bernoulli(key_other, jax.nn.sigmoid(small.visible_field(layer)))


def check_small(model: RBM) -> None:
    """Raise if both layers of an RBM are too large for exact sums."""
    count = min(model.weights.shape)
    if count > MAX_UNITS:
        raise ValueError(
            f"The smaller layer has {count} units, too many for exact sums over its 2^{count} "
            f"states; expected at most {MAX_UNITS}. `rbm.sample_ais` with Gibbs transitions needs "
            "no such sums."
        )


def _transpose(model: RBM) -> RBM:
    """Return the RBM with its layers exchanged."""
    return RBM.tree_unflatten(None, (model.hidden_bias, model.visible_bias, model.weights.T))


def _smaller_hidden(model: RBM) -> RBM:
    """Return the RBM, with its layers exchanged if the visible layer is the smaller one."""
    check_small(model)
    return model if model.n_hidden <= model.n_visible else _transpose(model)


def _as_double(model: RBM) -> RBM:
    double: RBM = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), model)
    return double


def _bits(index: jax.Array, count: int, dtype: DTypeLike) -> jax.Array:
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
    field : Array, shape (m, n_visible)
        ``W h`` of these bits.
    """

    bits: jax.Array
    log_weight: jax.Array
    field: jax.Array


def _low_states(model: RBM) -> _LowStates:
    low, _ = _split_bits(model)
    bits = _bits(jnp.arange(2**low), low, model.weights.dtype)
    return _LowStates(bits, bits @ model.hidden_bias[:low], bits @ model.weights[:, :low].T)


def _block(model: RBM, lower: _LowStates, index: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return log weights ``(m,)`` and ``P(v = 1 | h)`` ``(m, n_visible)`` of a block of states.

    The high bits of the states are those of ``index``.
    """
    low, high = _split_bits(model)
    upper = _bits(index, high, model.weights.dtype)
    log_weight = lower.log_weight + upper @ model.hidden_bias[low:]
    x = model.visible_bias + model.weights[:, low:] @ upper + lower.field
    decay = jnp.exp(-jnp.abs(x))
    probability = jnp.where(x >= 0, 1.0, decay) / (1 + decay)
    return log_weight + jnp.maximum(x, 0).sum(axis=1) + _sum_log1p(decay), probability


def _sum_log1p(terms: jax.Array) -> jax.Array:
    """Return ``sum_i log(1 + t_{si})`` of each row ``s`` of terms between 0 and 1."""
    parts = [terms[:, i : i + _CHUNK] for i in range(0, terms.shape[1], _CHUNK)]
    return sum((jnp.log(jnp.prod(1 + part, axis=1)) for part in parts), jnp.zeros(len(terms)))


def _log_states(model: RBM) -> jax.Array:
    """Return the log weight of every state of the hidden layer, in the order of its bits."""
    lower = _low_states(model)
    blocks = jnp.arange(2 ** _split_bits(model)[1])
    log_weight: jax.Array = jax.lax.map(lambda index: _block(model, lower, index)[0], blocks)
    return log_weight.reshape(-1)


@jax.jit
def _log_z(model: RBM) -> jax.Array:
    lower = _low_states(model)
    blocks = jnp.arange(2 ** _split_bits(model)[1])
    return logsumexp(jax.lax.map(lambda index: logsumexp(_block(model, lower, index)[0]), blocks))


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


@jax.jit
def _sum_states(model: RBM) -> tuple[jax.Array, Moments]:
    """Return ``log Z`` and the moments."""
    lower, high = _low_states(model), _split_bits(model)[1]
    # One product gives the sums for all low bits; the column of ones gives those of the high bits.
    design = jnp.column_stack([jnp.ones(len(lower.bits)), lower.bits])

    def add(total: _Total, index: jax.Array) -> tuple[_Total, None]:
        log_weight, visible = _block(model, lower, index)
        shift = jnp.maximum(total.shift, log_weight.max())
        p, old = jnp.exp(log_weight - shift), jnp.exp(total.shift - shift)
        sums = (p[:, None] * design).T @ visible
        upper = _bits(index, high, visible.dtype)
        part = Moments(
            sums[0],
            jnp.concatenate([p @ lower.bits, p.sum() * upper]),
            jnp.concatenate([sums[1:].T, jnp.outer(sums[0], upper)], axis=1),
        )
        moments = jax.tree.map(lambda a, b: old * a + b, total.moments, part)
        return _Total(shift, old * total.weight + p.sum(), moments), None

    empty = Moments(*(jnp.zeros_like(x) for x in jax.tree.leaves(model)))
    start = _Total(jnp.asarray(-jnp.inf), jnp.asarray(0.0), empty)
    total, _ = jax.lax.scan(add, start, jnp.arange(2**high))
    log_z = total.shift + jnp.log(total.weight)
    return log_z, jax.tree.map(lambda x: x / total.weight, total.moments)

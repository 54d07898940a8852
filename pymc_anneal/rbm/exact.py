"""Exact sums over the states of a small layer.

With the hidden layer the smaller one, ``Z = sum_h exp(b.h + sum_i softplus(a_i + (W h)_i))``. The
states are split into high and low bits, ``W h = W h_1 + W h_2``: the exponentials of both parts
are computed once, and a state costs two multiplications a unit and one logarithm,

    sum_i softplus(x_i) = sum_i max(x_i, 0) + log prod_i (1 + e^{-|x_i|}),

the factors of the product lying between 1 and 2. Memory is bounded by one block of low bits.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jax.scipy.special import logsumexp

from pymc_anneal.engine import key_of
from pymc_anneal.options import seed_sequence
from pymc_anneal.rbm.model import RBM
from pymc_anneal.rbm.random import bernoulli

__all__ = [
    "MAX_UNITS",
    "Moments",
    "draw_exact",
    "log_partition_function",
    "moments",
    "sample_exact",
]

MAX_UNITS = 25
_LOW_BITS = 10
_CHUNK = 512  # factors of at most 2 whose product a float64 can hold


class Moments(NamedTuple):
    """Expected sufficient statistics of a machine.

    Attributes
    ----------
    visible : array, shape (n_visible,)
        ``E[v]``.
    hidden : array, shape (n_hidden,)
        ``E[h]``.
    products : array, shape (n_visible, n_hidden)
        ``E[v h']``.
    """

    visible: Any
    hidden: Any
    products: Any


def log_partition_function(model: RBM) -> float:
    """Exact ``log Z``, by summation over the smaller layer.

    Parameters
    ----------
    model
        A machine with at most 25 visible or hidden units; the time doubles with each.

    Returns
    -------
    float
        In nats.

    Raises
    ------
    ValueError
        Both layers are larger.
    """
    with jax.enable_x64(True):
        return float(_log_z(_double(_smaller_hidden(model))))


def moments(model: RBM) -> Moments:
    """Exact expectations of ``v``, ``h``, ``v h'``; limits as of :func:`log_partition_function`."""
    small = _smaller_hidden(model)
    with jax.enable_x64(True):
        found = _moments(_double(small))
    visible, hidden, products = (np.asarray(x) for x in found)
    if small is model:
        return Moments(visible, hidden, products)
    return Moments(hidden, visible, products.T)


def sample_exact(model: RBM, draws: int, random_seed: Any = None) -> np.ndarray:
    """Draw independent visible configurations from a small machine.

    Parameters
    ----------
    model
        A machine with at most 25 visible or hidden units.
    draws
        Number of draws.
    random_seed
        Seed.

    Returns
    -------
    ndarray of 0 and 1, shape (draws, n_visible)
    """
    check_small(model)
    with jax.enable_x64(True):
        key = key_of(seed_sequence(random_seed))
        machine = jax.tree.map(jnp.asarray, model)
        return np.asarray(jax.jit(draw_exact, static_argnums=2)(key, machine, draws))


def draw_exact(key: jax.Array, model: RBM, draws: int) -> jax.Array:
    """Draw visible configurations; a JAX function for machines with a small layer."""
    key_state, key_other = jax.random.split(key)
    transposed = model.weights.shape[0] < model.weights.shape[1]
    small = _transpose(model) if transposed else model
    log_p = _log_states(_double(small))  # products of hundreds of factors need the range
    cumulative = jnp.cumsum(jnp.exp(log_p - log_p.max()))
    uniform = jax.random.uniform(key_state, (draws,), jnp.float64)
    index = jnp.searchsorted(cumulative, uniform * cumulative[-1], side="right")
    layer = _bits(index.clip(0, len(log_p) - 1), small.weights.shape[1], small.weights.dtype)
    if transposed:
        return layer
    field = small.visible_bias + layer @ small.weights.T
    return bernoulli(key_other, jax.nn.sigmoid(field))


def _transpose(model: RBM) -> RBM:
    return RBM.of(model.hidden_bias, model.visible_bias, model.weights.T)


def check_small(model: RBM) -> None:
    """Raise if both layers of a machine are too large for exact sums."""
    count = min(model.weights.shape)
    if count > MAX_UNITS:
        raise ValueError(
            f"The smaller layer has {count} units, too many for exact sums over its 2^{count} "
            f"states; expected at most {MAX_UNITS}. `rbm.sample_ais` with Gibbs transitions needs "
            "no such sums."
        )


def _smaller_hidden(model: RBM) -> RBM:
    """Return the machine with its layers exchanged if that makes the hidden layer the smaller."""
    check_small(model)
    return model if model.n_hidden <= model.n_visible else _transpose(model)


def _double(model: RBM) -> RBM:
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), model)


def _bits(index: jax.Array, count: int, dtype) -> jax.Array:
    """Return the binary digits of whole numbers, shape ``(..., count)``."""
    return ((index[..., None] >> jnp.arange(count)) & 1).astype(dtype)


def _split(model: RBM) -> tuple[int, int]:
    low = min(_LOW_BITS, model.weights.shape[1])
    return low, model.weights.shape[1] - low


class _LowStates(NamedTuple):
    """The low digits of the states: digits, log weights, fields of the other layer."""

    digits: jax.Array
    log_weight: jax.Array
    field: jax.Array


def _low_states(model: RBM) -> _LowStates:
    low, _ = _split(model)
    digits = _bits(jnp.arange(2**low), low, model.weights.dtype)
    return _LowStates(digits, digits @ model.hidden_bias[:low], digits @ model.weights[:, :low].T)


def _block(model: RBM, lower: _LowStates, index: jax.Array) -> tuple[jax.Array, ...]:
    """Return log weights, fields and digits of the states with the high digits of ``index``."""
    low, high = _split(model)
    upper = _bits(index, high, model.weights.dtype)
    field = model.visible_bias + model.weights[:, low:] @ upper
    log_weight = lower.log_weight + upper @ model.hidden_bias[low:]
    digits = jnp.concatenate(
        [lower.digits, jnp.broadcast_to(upper, (len(lower.digits), high))], axis=1
    )
    return log_weight + _sum_softplus(field, lower.field), field + lower.field, digits


def _log_states(model: RBM) -> jax.Array:
    """Return the log weight of every state of the hidden layer, in the order of its digits."""
    lower = _low_states(model)
    blocks = jnp.arange(2 ** _split(model)[1])
    return jax.lax.map(lambda index: _block(model, lower, index)[0], blocks).reshape(-1)


@jax.jit
def _log_z(model: RBM) -> jax.Array:
    lower = _low_states(model)
    blocks = jnp.arange(2 ** _split(model)[1])
    return logsumexp(jax.lax.map(lambda index: logsumexp(_block(model, lower, index)[0]), blocks))


def _sum_softplus(field: jax.Array, others: jax.Array) -> jax.Array:
    """``sum_i softplus(field_i + others_{si})`` for every row ``s``."""
    total = jnp.zeros(len(others), others.dtype)
    for i in range(0, len(field), _CHUNK):
        x = field[i : i + _CHUNK] + others[:, i : i + _CHUNK]
        total += jnp.maximum(x, 0).sum(axis=1)
        total += jnp.log(jnp.prod(1 + jnp.exp(-jnp.abs(x)), axis=1))
    return total


@jax.jit
def _moments(model: RBM) -> Moments:
    log_z, lower = _log_z(model), _low_states(model)

    def add(total: Moments, index: jax.Array) -> tuple[Moments, None]:
        log_weight, field, digits = _block(model, lower, index)
        p = jnp.exp(log_weight - log_z)
        visible = jax.nn.sigmoid(field) * p[:, None]
        part = Moments(visible.sum(axis=0), p @ digits, visible.T @ digits)
        return jax.tree.map(jnp.add, total, part), None

    empty = Moments(*(jnp.zeros_like(x) for x in jax.tree.leaves(model)))
    return jax.lax.scan(add, empty, jnp.arange(2 ** _split(model)[1]))[0]

"""Exact sums over the states of a small layer.

With the hidden layer the smaller one, ``Z = sum_h exp(b.h + sum_i softplus(a_i + (W h)_i))``. The
states are split into high and low bits, ``W h = W h_1 + W h_2``, the second product the same in
every block, and a state costs one exponential a unit and one logarithm,

    sum_i softplus(x_i) = sum_i max(x_i, 0) + log prod_i (1 + e^{-|x_i|}),

the factors of the product lying between 1 and 2. Memory is bounded by one block of low bits.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jax.scipy.special import logsumexp

from pymc_anneal.base.seeds import key_of, seed_sequence
from pymc_anneal.rbm.bernoulli import bernoulli
from pymc_anneal.rbm.model import RBM

MAX_UNITS = 25


_LOW_BITS = 8  # a block stays in the cache


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
    return log_z_and_moments(model)[1]


def log_z_and_moments(model: RBM) -> tuple[float, Moments]:
    """Return both in one pass over the states."""
    small = _smaller_hidden(model)
    with jax.enable_x64(True):
        log_z, found = _sums(_double(small))
    visible, hidden, products = (np.asarray(x) for x in found)
    if small is not model:
        visible, hidden, products = hidden, visible, products.T
    return float(log_z), Moments(visible, hidden, products)


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


def _block(model: RBM, lower: _LowStates, index: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return log weights, and probabilities of the other layer, of the states of a block.

    Their high digits are those of ``index``.
    """
    low, high = _split(model)
    upper = _bits(index, high, model.weights.dtype)
    log_weight = lower.log_weight + upper @ model.hidden_bias[low:]
    x = model.visible_bias + model.weights[:, low:] @ upper + lower.field
    decay = jnp.exp(-jnp.abs(x))
    probability = jnp.where(x >= 0, 1.0, decay) / (1 + decay)
    return log_weight + jnp.maximum(x, 0).sum(axis=1) + _sum_log1p(decay), probability


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


def _sum_log1p(terms: jax.Array) -> jax.Array:
    """``sum_i log(1 + t_{si})`` for every row ``s`` of terms between 0 and 1."""
    parts = [terms[:, i : i + _CHUNK] for i in range(0, terms.shape[1], _CHUNK)]
    return sum((jnp.log(jnp.prod(1 + part, axis=1)) for part in parts), jnp.zeros(len(terms)))


class _Total(NamedTuple):
    """Sums over states so far, in units of ``exp(shift)``."""

    shift: jax.Array
    weight: jax.Array
    moments: Moments


@jax.jit
def _sums(model: RBM) -> tuple[jax.Array, Moments]:
    """Return ``log Z`` and the moments."""
    lower, high = _low_states(model), _split(model)[1]
    # By one product with the low digits, and a column of ones for what the high digits share.
    design = jnp.column_stack([jnp.ones(len(lower.digits)), lower.digits])

    def add(total: _Total, index: jax.Array) -> tuple[_Total, None]:
        log_weight, visible = _block(model, lower, index)
        shift = jnp.maximum(total.shift, log_weight.max())
        p, old = jnp.exp(log_weight - shift), jnp.exp(total.shift - shift)
        sums = (p[:, None] * design).T @ visible
        upper = _bits(index, high, visible.dtype)
        part = Moments(
            sums[0],
            jnp.concatenate([p @ lower.digits, p.sum() * upper]),
            jnp.concatenate([sums[1:].T, jnp.outer(sums[0], upper)], axis=1),
        )
        moments = jax.tree.map(lambda a, b: old * a + b, total.moments, part)
        return _Total(shift, old * total.weight + p.sum(), moments), None

    empty = Moments(*(jnp.zeros_like(x) for x in jax.tree.leaves(model)))
    start = _Total(jnp.asarray(-jnp.inf), jnp.asarray(0.0), empty)
    total, _ = jax.lax.scan(add, start, jnp.arange(2**high))
    log_z = total.shift + jnp.log(total.weight)
    return log_z, jax.tree.map(lambda x: x / total.weight, total.moments)

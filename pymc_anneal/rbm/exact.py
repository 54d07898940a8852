"""Exact sums over the states of a small layer.

If the hidden layer is the smaller one, ``Z = sum_h exp(b.h + sum_i softplus(a_i + (W h)_i))``;
otherwise the layers are exchanged.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.arguments import check_count
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import RandomSeed, key_of, seed_sequence
from pymc_anneal.rbm.bernoulli import bernoulli
from pymc_anneal.rbm.model import RBM
from pymc_anneal.rbm.state_sums import (
    Moments,
    bits_of,
    combine,
    decay_for,
    log_states,
    log_z_of_blocks,
    sum_blocks,
    sum_parts,
)

# Largest layer that is enumerated: 2^25 states, and the time doubles with each unit.
MAX_UNITS = 25


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
    small = _as_double(_smaller_hidden(model))
    parts = sum_parts(partial(log_z_of_blocks, small, decay_for(small)), small)
    return float(np.logaddexp.reduce(parts))


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
    double = _as_double(small)
    totals = sum_parts(partial(sum_blocks, double, decay_for(double)), double)
    log_z, (visible, hidden, products) = combine(totals)
    if small is not model:
        visible, hidden, products = hidden, visible, products.T
    return log_z, Moments(visible, hidden, products)


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
        Both layers have more than 25 units, `draws` is no positive whole number, or the seed is
        not valid.
    """
    check_small(model)
    check_count("draws", draws)
    key = key_of(seed_sequence(random_seed))
    rbm = jax.tree.map(jnp.asarray, model)
    return np.asarray(jax.jit(draw_exact, static_argnums=2)(key, rbm, draws))


def draw_exact(key: jax.Array, model: RBM, draws: int) -> jax.Array:
    """Draw visible configurations, shape ``(draws, n_visible)``; a JAX function."""
    key_state, key_other = jax.random.split(key)
    transposed = model.n_visible < model.n_hidden
    small = _transpose(model) if transposed else model
    log_p = log_states(_as_double(small))  # products of hundreds of factors need the range
    cumulative = jnp.cumsum(jnp.exp(log_p - log_p.max()))
    uniform = jax.random.uniform(key_state, (draws,), jnp.float64)
    index = jnp.searchsorted(cumulative, uniform * cumulative[-1], side="right")
    layer = bits_of(index.clip(0, len(log_p) - 1), small.n_hidden, small.weights.dtype)
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

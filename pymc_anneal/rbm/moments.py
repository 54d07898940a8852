"""Moments ``E[v]``, ``E[h]``, ``E[v h']`` of machines, other than by exact summation.

Hidden units enter by their conditional probabilities, which has the same expectation and less
noise than drawing them.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from scipy.special import expit

from pymc_anneal.base.arguments import check_count
from pymc_anneal.base.seeds import key_of, seed_sequence
from pymc_anneal.rbm.bernoulli import bernoulli
from pymc_anneal.rbm.exact import Moments
from pymc_anneal.rbm.model import RBM, check_rows, check_start


def reference_moments(reference: RBM) -> Moments:
    """Moments of a machine without weights, exactly.

    Raises
    ------
    ValueError
        It has weights.
    """
    if np.any(reference.weights):
        raise ValueError("The reference has weights; expected a machine of independent units.")
    visible, hidden = expit(reference.visible_bias), expit(reference.hidden_bias)
    return Moments(visible, hidden, np.outer(visible, hidden))


def data_moments(model: RBM, data: np.ndarray, weights: np.ndarray | None = None) -> Moments:
    """Moments of the machine's hidden units given data, and of the data.

    The cheap substitute for the moments of a trained machine (Grosse, Maddison & Salakhutdinov
    2013, section 5.2, "MAS cheap"), or, with unequal weights, a biased one (its footnote 3).

    Parameters
    ----------
    model
        The machine.
    data : array_like, shape (n, n_visible)
        Binary, or probabilities in [0, 1].
    weights : array_like, shape (n,), optional
        How often each row counts.
    """
    data = check_rows(data, model.n_visible)
    share = np.ones(len(data)) if weights is None else np.asarray(weights, dtype=float)
    if share.shape != (len(data),) or not (share >= 0).all() or not share.sum() > 0:
        raise ValueError(
            f"`weights` has shape {share.shape}, expected {(len(data),)} numbers >= 0, not all 0."
        )
    share = share / share.sum()
    hidden = model.hidden_probability(data)
    return Moments(share @ data, share @ hidden, (data.T * share) @ hidden)


def gibbs_moments(
    model: RBM,
    *,
    chains: int = 1000,
    steps: int = 10_000,
    burn_in: int = 1000,
    start: np.ndarray | None = None,
    random_seed: Any = None,
) -> Moments:
    """Moments of a machine from Gibbs chains (Grosse et al. 2013, section 5.2).

    Parameters
    ----------
    model
        The machine.
    chains
        Independent chains.
    steps
        Sweeps of each chain, ``burn_in`` included.
    burn_in
        Sweeps that do not count.
    start : array_like, shape (chains, n_visible), optional
        First states; default: fair coins.
    random_seed
        Seed.
    """
    for name, value in {"chains": chains, "steps": steps}.items():
        check_count(name, value)
    if not 0 <= burn_in < steps:
        raise ValueError(f"`burn_in` is {burn_in}, expected at least 0 and below `steps`, {steps}.")
    seed_start, seed_run = seed_sequence(random_seed).spawn(2)
    if start is None:
        start = np.random.default_rng(seed_start).integers(0, 2, (chains, model.n_visible))
    start = check_start(start, chains, model.n_visible)
    visible = np.asarray(start, dtype=model.weights.dtype)
    with jax.enable_x64(True):
        key = key_of(seed_run)
        machine = jax.tree.map(jnp.asarray, model)
        visible = sweep(machine, jax.random.fold_in(key, 0), visible, burn_in)
        total = _summed(machine, jax.random.fold_in(key, 1), visible, steps - burn_in)
        return Moments(*(np.asarray(x) / (steps - burn_in) for x in total))


def check_moments(target: Moments, model: RBM) -> None:
    """Raise if moments are not those of a machine of this shape."""
    found, expected = ([np.shape(x) for x in jax.tree.leaves(t)] for t in (target, model))
    if found != expected:
        raise ValueError(f"The moments have shapes {found}, the machine {expected}.")


def average_moments(first: Moments, second: Moments, beta: float) -> Moments:
    """``(1 - beta) first + beta second`` (Grosse et al. 2013, eq. 12-14)."""
    return Moments(*((1 - beta) * a + beta * b for a, b in zip(first, second, strict=True)))


def gibbs(model: RBM, key: jax.Array, visible: jax.Array) -> jax.Array:
    """One sweep of blocked Gibbs sampling."""
    key_hidden, key_visible = jax.random.split(key)
    hidden = bernoulli(key_hidden, jax.nn.sigmoid(model.hidden_bias + visible @ model.weights))
    field = model.visible_bias + hidden @ model.weights.T
    return bernoulli(key_visible, jax.nn.sigmoid(field))


@jax.jit
def sweep(model: RBM, key: jax.Array, visible: jax.Array, steps: int) -> jax.Array:
    """Several sweeps of blocked Gibbs sampling."""
    return jax.lax.fori_loop(
        0, steps, lambda i, v: gibbs(model, jax.random.fold_in(key, i), v), jnp.asarray(visible)
    )


def batch_moments(model: RBM, visible: jax.Array) -> Moments:
    """Moments of a batch of visible units and of the hidden ones given them."""
    hidden = jax.nn.sigmoid(model.hidden_bias + visible @ model.weights)
    return Moments(visible.mean(axis=0), hidden.mean(axis=0), visible.T @ hidden / len(visible))


@jax.jit
def _summed(model: RBM, key: jax.Array, visible: jax.Array, steps: int) -> Moments:
    def step(i, carry):
        visible, total = carry
        visible = gibbs(model, jax.random.fold_in(key, i), visible)
        part = batch_moments(model, visible)
        return visible, jax.tree.map(lambda t, p: t + p, total, part)

    empty = Moments(*(jnp.zeros(x.shape, jnp.float64) for x in jax.tree.leaves(model)))
    return jax.lax.fori_loop(0, steps, step, (visible, empty))[1]

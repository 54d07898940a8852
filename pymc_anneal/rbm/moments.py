"""Moments ``E[v]``, ``E[h]``, ``E[v h']`` of RBMs, other than by exact summation.

Hidden units enter by their conditional probabilities, which have the same expectation as draws of
them and less variance.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from numpy.typing import ArrayLike
from scipy.special import expit

from pymc_anneal.base.arguments import check_count
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.base.seeds import RandomSeed, key_of, seed_sequence
from pymc_anneal.rbm.model import RBM, SWEEPS, check_rows, check_start
from pymc_anneal.rbm.state_sums import Moments
from pymc_anneal.rbm.transitions import gibbs_sweep


def reference_moments(reference: RBM) -> Moments:
    """Return the exact moments of an RBM with W = 0.

    Parameters
    ----------
    reference : RBM
        With independent units.

    Returns
    -------
    Moments

    Raises
    ------
    ValueError
        The weights are not zero.
    """
    if np.any(reference.weights):
        raise ValueError(
            f"`reference` has {np.count_nonzero(reference.weights)} nonzero weights; expected an "
            "RBM with W = 0, such as `base_rate_reference` returns."
        )
    visible, hidden = expit(reference.visible_bias), expit(reference.hidden_bias)
    return Moments(visible, hidden, np.outer(visible, hidden))


def data_moments(model: RBM, data: ArrayLike, weights: ArrayLike | None = None) -> Moments:
    """Return ``E[v]``, ``E[h]``, ``E[v h']`` with ``v`` from the data and ``h`` from ``p(h | v)``.

    A cheap substitute for the moments of a trained RBM (Grosse, Maddison & Salakhutdinov 2013,
    section 5.2, "MAS cheap"); with unequal weights, a biased one (footnote 3 of that paper).

    Parameters
    ----------
    model : RBM
    data : array_like, shape (n, n_visible)
        Binary values, or probabilities in [0, 1].
    weights : array_like, shape (n,), optional
        Relative weight of each row. By default all are equal.

    Returns
    -------
    Moments

    Raises
    ------
    ValueError
        `data` or `weights` have a wrong shape or values out of range.
    """
    data = check_rows(data, model.n_visible)
    share = np.ones(len(data)) if weights is None else np.asarray(weights, dtype=float)
    if share.shape != (len(data),) or not (share >= 0).all() or not 0 < share.sum() < np.inf:
        raise ValueError(
            f"`weights` has shape {share.shape}, expected {(len(data),)} numbers >= 0, finite and "
            "not all 0."
        )
    share = share / share.sum()
    hidden = model.hidden_probability(data)
    return Moments(share @ data, share @ hidden, (data.T * share) @ hidden)


@double_precision
def gibbs_moments(
    model: RBM,
    *,
    chains: int = 1000,
    steps: int = 10_000,
    burn_in: int = 1000,
    start: ArrayLike | None = None,
    random_seed: RandomSeed = None,
) -> Moments:
    """Estimate the moments of an RBM by Gibbs sampling (Grosse et al. 2013, section 5.2).

    Parameters
    ----------
    model : RBM
    chains : int
        Number of independent chains.
    steps : int
        Sweeps per chain, including ``burn_in``.
    burn_in : int
        Sweeps that are discarded.
    start : array_like, shape (chains, n_visible), optional
        Initial states. By default the units are Bernoulli(1/2).
    random_seed
        Seed: int, sequence of int, numpy SeedSequence or Generator.

    Returns
    -------
    Moments

    Raises
    ------
    ValueError
        A count is not positive, `burn_in` is not below `steps`, or `start` has a wrong shape.
    """
    for name, value in {"chains": chains, "steps": steps}.items():
        check_count(name, value)
    check_count("burn_in", burn_in, SWEEPS, 0)
    if burn_in >= steps:
        raise ValueError(f"`burn_in` is {burn_in}, expected at least 0 and below `steps`, {steps}.")
    seed_start, seed_run = seed_sequence(random_seed).spawn(2)
    if start is None:
        start = np.random.default_rng(seed_start).integers(0, 2, (chains, model.n_visible))
    visible = jnp.asarray(check_start(start, chains, model.n_visible), model.weights.dtype)
    key, rbm = key_of(seed_run), jax.tree.map(jnp.asarray, model)
    visible = run_gibbs(rbm, jax.random.fold_in(key, 0), visible, burn_in)
    total = _sum_moments(rbm, jax.random.fold_in(key, 1), visible, steps - burn_in)
    return Moments(*(np.asarray(x) / (steps - burn_in) for x in total))


def check_moments(target: Moments, model: RBM) -> None:
    """Raise if the moments do not have the shapes of those of an RBM."""
    found, expected = ([np.shape(x) for x in jax.tree.leaves(t)] for t in (target, model))
    if found != expected:
        raise ValueError(
            f"The moments have shapes {found}; expected those of the RBM's parameters, {expected}."
        )


def average_moments(first: Moments, second: Moments, beta: float) -> Moments:
    """Return ``(1 - beta) first + beta second`` (Grosse et al. 2013, eq. 12-14).

    Parameters
    ----------
    first, second : Moments
        Of the same shapes.
    beta : float
        From 0 to 1.
    """
    return Moments(*((1 - beta) * a + beta * b for a, b in zip(first, second, strict=True)))


def batch_moments(model: RBM, visible: jax.Array) -> Moments:
    """Return the moments of visible units ``(n, n_visible)`` and of the hidden units given them."""
    hidden = jax.nn.sigmoid(model.hidden_field(visible))
    return Moments(visible.mean(axis=0), hidden.mean(axis=0), visible.T @ hidden / len(visible))


def _sweep(i: jax.Array, visible: jax.Array, model: RBM, key: jax.Array) -> jax.Array:
    """Return the visible units after sweep ``i``, shape ``(n, n_visible)``."""
    key = jax.random.fold_in(key, i)
    return gibbs_sweep(key, model.hidden_field(visible), model.visible_field)


@jax.jit
def run_gibbs(model: RBM, key: jax.Array, visible: jax.Array, steps: int) -> jax.Array:
    """Return the visible units after several Gibbs sweeps, shape ``(n, n_visible)``."""
    sweep = partial(_sweep, model=model, key=key)
    visible = jax.lax.fori_loop(0, steps, sweep, jnp.asarray(visible))
    return visible


@jax.jit
def _sum_moments(model: RBM, key: jax.Array, visible: jax.Array, steps: int) -> Moments:
    """Return the sum of the batch moments over several Gibbs sweeps."""

    def step(i: jax.Array, carry: tuple[jax.Array, Moments]) -> tuple[jax.Array, Moments]:
        visible = _sweep(i, carry[0], model, key)
        total = jax.tree.map(jnp.add, carry[1], batch_moments(model, visible))
        return visible, total

    empty = Moments(*(jnp.zeros(x.shape, jnp.float64) for x in jax.tree.leaves(model)))
    total: Moments = jax.lax.fori_loop(0, steps, step, (visible, empty))[1]
    return total

"""Transitions of restricted Boltzmann machines.

**Blocked Gibbs**: ``h ~ p(h | v)``, then ``v ~ p(v | h)``, all units of a layer at once.
**Perfect**: independent draws from the RBM at each temperature, by enumeration of its smaller
layer. This is the assumption of the theorems of Grosse, Maddison & Salakhutdinov (2013).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp

from pymc_anneal.base.contracts import KernelState, Scalar, StepInfo, Transition
from pymc_anneal.rbm.bernoulli import bernoulli
from pymc_anneal.rbm.exact import check_small, draw_exact
from pymc_anneal.rbm.paths import RBMPath


def gibbs_sweep(
    key: jax.Array, hidden_field: jax.Array, visible_field: Callable[[jax.Array], jax.Array]
) -> jax.Array:
    """Draw the hidden units, then the visible ones.

    Parameters
    ----------
    key
        JAX key.
    hidden_field : Array, shape (n, n_hidden)
        Log odds of the hidden units given the present visible ones.
    visible_field
        Function from hidden units to the log odds of the visible ones, shape (n, n_visible).

    Returns
    -------
    Array of 0 and 1, shape (n, n_visible)
        The new visible units.
    """
    key_hidden, key_visible = jax.random.split(key)
    hidden = bernoulli(key_hidden, jax.nn.sigmoid(hidden_field))
    return bernoulli(key_visible, jax.nn.sigmoid(visible_field(hidden)))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BlockedGibbs(Transition):
    """Blocked Gibbs sampling, one sweep per step."""

    def step(  # type: ignore[override]  # moves along paths of RBMs only
        self, key: jax.Array, state: KernelState, path: RBMPath, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Draw the hidden units, then the visible ones."""
        hidden_field = path.hidden_field(path.at(state.terms, beta), beta)
        visible = gibbs_sweep(key, hidden_field, partial(path.visible_field, beta=beta))
        return _accepted(path, visible, beta)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PerfectTransition(Transition):
    """Independent exact draws, for RBMs with a layer of at most 25 units.

    `step` raises a ValueError if both layers are larger.
    """

    def step(  # type: ignore[override]  # moves along paths of RBMs only
        self, key: jax.Array, state: KernelState, path: RBMPath, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Draw new visible units, independent of the state."""
        rbm = path.model_at(beta)
        check_small(rbm)
        visible = draw_exact(key, rbm, len(state.position))
        return _accepted(path, visible, beta)


def _accepted(path: RBMPath, visible: jax.Array, beta: Scalar) -> tuple[KernelState, StepInfo]:
    """Return the state and the diagnostics after a move that is always accepted."""
    n = len(visible)
    info = StepInfo(jnp.ones(n), jnp.zeros(n, dtype=bool), visible)
    return KernelState(visible, path.evaluate_at(visible, beta), ()), info

"""Transitions of restricted Boltzmann machines.

**Blocked Gibbs**: ``h ~ p(h | v)``, ``v ~ p(v | h)``, all units of a layer at once.
**Perfect**: an independent draw from the machine at the temperature, by enumerating its smaller
layer; the condition under which the papers' theorems hold.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from pymc_anneal.base.contracts import KernelState, Scalar, StepInfo
from pymc_anneal.rbm.bernoulli import bernoulli
from pymc_anneal.rbm.exact import draw_exact
from pymc_anneal.transitions.metropolis import Memoryless


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BlockedGibbs(Memoryless):
    """Blocked Gibbs sampling, one sweep a step."""

    def step(
        self, key: jax.Array, state: KernelState, path: Any, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Draw the hidden units, then the visible ones."""
        key_hidden, key_visible = jax.random.split(key)
        terms = path.at(state.terms, beta)
        hidden = bernoulli(key_hidden, jax.nn.sigmoid(path.hidden_field(terms, beta)))
        visible = bernoulli(key_visible, jax.nn.sigmoid(path.visible_field(hidden, beta)))
        return _moved(path, visible, beta)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PerfectTransition(Memoryless):
    """Independent exact draws; for machines with a layer of at most 25 units."""

    def step(
        self, key: jax.Array, state: KernelState, path: Any, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Draw afresh."""
        visible = draw_exact(key, path.model_at(beta), len(state.position))
        return _moved(path, visible, beta)


def _moved(path: Any, visible: jax.Array, beta: Scalar) -> tuple[KernelState, StepInfo]:
    n = len(visible)
    info = StepInfo(jnp.ones(n), jnp.zeros(n, dtype=bool), visible)
    return KernelState(visible, path.evaluate_at(visible, beta), ()), info

"""A transition written by a user: the Barker proposal.

Livingstone & Zanella (2022), The Barker proposal: combining robustness and efficiency in
gradient-based MCMC. In coordinates of about unit scale, draw ``z ~ N(0, s^2)`` for every coordinate
and move it by ``z`` with probability ``1 / (1 + exp(-z g))``, otherwise by ``-z``, where ``g`` is
the gradient of the log density.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pymc_anneal as pma

from pymc_anneal.base.contracts import gradient
from pymc_anneal.transitions.metropolis import (
    accept_reject,
    apply_scale,
    apply_transposed_scale,
)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Barker(pma.Transition):
    """Barker proposal; parameters left at None are set by the pilot."""

    step_size: Any = None
    scale: Any = None

    @property
    def tuning(self):
        """The optimal acceptance is 0.57 in high dimensions (Vogrinc et al. 2023)."""
        parameters = {"step_size": self.step_size, "scale": self.scale}
        return pma.Tuning(parameters, target_accept=0.57, uses_gradient=True)

    def cost(self, betas):
        """Two gradients and one density."""
        return np.full(np.shape(betas), 3)

    def step(self, key, state, path, beta):
        """Propose one jump and accept or reject it."""
        key_size, key_sign, key_accept = jax.random.split(key, 3)
        scale = jnp.asarray(self.scale)

        def slope(position):
            return apply_transposed_scale(scale, gradient(path, position, beta))

        start, slope_before = state.position, slope(state.position)
        size = self.step_size * jax.random.normal(key_size, start.shape)
        keep = jax.random.uniform(key_sign, start.shape) < jax.nn.sigmoid(size * slope_before)
        jump = jnp.where(keep, size, -size)
        position = start + apply_scale(scale, jump)
        new = pma.KernelState(position, path.evaluate(position), state.auxiliary)

        # Ratio of the densities times the ratio of the proposals, back and forth.
        log_density = path.log_density(new.terms, beta)
        back = jnp.logaddexp(0, -jump * slope_before) - jnp.logaddexp(0, jump * slope(position))
        log_accept = log_density - path.log_density(state.terms, beta) + back.sum(axis=-1)
        uniform = jax.random.uniform(key_accept, log_accept.shape)
        state, accept_rate = accept_reject(uniform, log_accept, new, state)
        return state, pma.StepInfo(accept_rate, jnp.isnan(log_density), position)

"""The transition of importance sampling: particles stay where they are."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from pymc_anneal.base.contracts import KernelState, Path, Scalar, StepInfo, Transition


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Stay(Transition):
    """Leave particles where they are.

    A run of one step from a reference is importance sampling with it (Neal 2001, section 2).
    """

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Return the state, at the cost of the one evaluation that a weight takes."""
        n = len(state.position)
        return state, StepInfo(jnp.ones(n), jnp.zeros(n, dtype=bool), state.position)

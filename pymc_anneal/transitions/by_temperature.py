"""A kernel whose parameters follow the temperature.

The pilot leaves one set of parameters for each of its temperatures. Between two of them, real
parameters are interpolated linearly and whole numbers taken from the lower one.
"""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from pymc_anneal.base.contracts import KernelState, Path, Scalar, StepInfo, Transition, reversal_of


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TunedTransition:
    """A transition with parameters by temperature.

    Parameters
    ----------
    betas : Array, shape (m,)
        Increasing temperatures of the pilot.
    kernel : Transition
        A kernel whose leaves have a leading axis of length ``m``.
    """

    betas: jax.Array
    kernel: Any

    def init(self, key: jax.Array, position: jax.Array) -> Any:
        """Draw the kernel's auxiliary variables."""
        return self.kernel.init(key, position)

    def at(self, beta: Scalar) -> Transition:
        """Return the kernel with the parameters it has at ``beta``."""
        left = jnp.clip(jnp.searchsorted(self.betas, beta, side="right") - 1, 0, None)
        right = jnp.minimum(left + 1, len(self.betas) - 1)
        width = self.betas[right] - self.betas[left]
        share = jnp.where(width > 0, (beta - self.betas[left]) / width, 0.0)
        share = jnp.clip(share, 0.0, 1.0)

        def interpolate(leaf):
            if jnp.issubdtype(leaf.dtype, jnp.integer):
                return leaf[left]
            return (1 - share) * leaf[left] + share * leaf[right]

        return jax.tree.map(interpolate, self.kernel)

    def reversal(self) -> "TunedTransition":
        """Return the reversed kernel with the same parameters by temperature."""
        return replace(self, kernel=reversal_of(self.kernel))

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Move with the parameters of ``beta``."""
        return self.at(beta).step(key, state, path, beta)

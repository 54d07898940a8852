"""A kernel whose parameters depend on the temperature.

The pilot finds one set of parameters for each of its temperatures. Between two of them, real
parameters are interpolated linearly and whole numbers taken from the lower one.
"""

from dataclasses import dataclass, replace

import jax
import numpy as np

from pymc_anneal.base.array_namespace import array_namespace
from pymc_anneal.base.contracts import KernelState, Path, PyTree, Scalar, StepInfo, Transition


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TunedTransition(Transition):
    """A transition with parameters by temperature.

    Parameters
    ----------
    betas : Array, shape (m,)
        Increasing temperatures.
    kernel : Transition
        A kernel whose leaves have a leading axis of length ``m``.
    """

    betas: jax.Array | np.ndarray
    kernel: Transition

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return self.kernel.name

    def init(self, key: jax.Array, position: jax.Array) -> PyTree:
        """Draw the kernel's auxiliary variables."""
        return self.kernel.init(key, position)

    def at(self, beta: Scalar) -> Transition:
        """Return the kernel with its parameters at ``beta``."""
        xp = array_namespace(self.betas, beta)
        left = xp.clip(xp.searchsorted(self.betas, beta, side="right") - 1, 0, None)
        right = xp.minimum(left + 1, len(self.betas) - 1)
        width = self.betas[right] - self.betas[left]
        share = xp.where(width > 0, (beta - self.betas[left]) / xp.where(width > 0, width, 1), 0.0)
        share = xp.clip(share, 0.0, 1.0)

        def interpolate(leaf: jax.Array) -> jax.Array:
            if np.issubdtype(leaf.dtype, np.integer):
                return leaf[left]
            between: jax.Array = (1 - share) * leaf[left] + share * leaf[right]
            return between

        kernel: Transition = jax.tree.map(interpolate, self.kernel)
        return kernel

    def reversal(self) -> "TunedTransition":
        """Return the reversed kernel with the same parameters by temperature."""
        return replace(self, kernel=self.kernel.reversal())

    def cost(self, betas: np.ndarray) -> np.ndarray:
        """Return the cost with the whole numbers of the temperature below, shape ``(K,)``."""
        knots = np.asarray(self.betas)
        left = np.searchsorted(knots, betas, side="right") - 1
        costs: np.ndarray = self.kernel.cost(knots)[left.clip(0)]
        return costs

    def step_sizes(self, betas: np.ndarray) -> np.ndarray:
        """Return interpolated step sizes, shape ``(K,)``."""
        knots = np.asarray(self.betas)
        sizes: np.ndarray = np.interp(betas, knots, self.kernel.step_sizes(knots))
        return sizes

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Move with the parameters at ``beta``."""
        return self.at(beta).step(key, state, path, beta)

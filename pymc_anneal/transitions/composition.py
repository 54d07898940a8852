"""Transitions in turn: each leaves the density invariant, hence so does their product.

``T = T_1 T_2 ... T_m`` is not reversible even if its parts are; its time reversal runs the
reversals of the parts in the opposite order, ``T_m* ... T_1*``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np

from pymc_anneal.base.contracts import KernelState, Path, PyTree, Scalar, StepInfo, Transition
from pymc_anneal.transitions.metropolis import empty_info, merge_info


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Composition(Transition):
    """Several transitions in turn; their parameters left at None are set by the pilot.

    Parameters
    ----------
    kernels : sequence of Transition
        In the order in which they are applied, for example :class:`BlockTransition` with a kernel
        for the continuous variables, and :class:`Gibbs` and :class:`DiscreteRandomWalk` for the
        discrete ones.
    """

    kernels: Sequence[Transition]

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernels", tuple(self.kernels))

    @property
    def name(self) -> str:
        """Names of the parts."""
        return ", ".join(kernel.name for kernel in self.kernels)

    @property
    def restrictable(self) -> bool:
        """Restrict the parts instead."""
        return False

    @property
    def parts(self) -> tuple[Transition, ...]:
        """The kernels."""
        return tuple(self.kernels)

    def with_parts(self, parts: Sequence[Transition]) -> "Composition":
        """Return the composition of other kernels."""
        return Composition(parts)

    def cost(self, betas: np.ndarray) -> np.ndarray:
        """Return the sum over the parts, shape ``(K,)``."""
        return sum((kernel.cost(betas) for kernel in self.kernels), np.zeros(np.shape(betas), int))

    def step_sizes(self, betas: np.ndarray) -> np.ndarray:
        """Return the step sizes of the first part that has any, shape ``(K,)``."""
        sizes = [kernel.step_sizes(betas) for kernel in self.kernels]
        none = np.full(np.shape(betas), np.nan)
        return next((size for size in sizes if not np.isnan(size).all()), none)

    def init(self, key: jax.Array, position: jax.Array) -> PyTree:
        """Draw the auxiliary variables of every part."""
        keys = jax.random.split(key, len(self.kernels))
        return tuple(k.init(key, position) for k, key in zip(self.kernels, keys, strict=True))

    def at(self, beta: Scalar) -> "Composition":
        """Return the composition of the parts at ``beta``."""
        return Composition([kernel.at(beta) for kernel in self.kernels])

    def reversal(self) -> "Composition":
        """Return the reversals of the parts in the opposite order."""
        return Composition([kernel.reversal() for kernel in reversed(self.kernels)])

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Apply the parts in turn; the acceptance probability is the mean of theirs."""
        state, infos = self.step_by_part(key, state, path, beta)
        total = empty_info(state.position)
        for info in infos:
            total = merge_info(total, info, 1 / len(infos))
        return state, total

    def step_by_part(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, list[StepInfo]]:
        """Apply the parts in turn; return the diagnostics of each."""
        auxiliary, infos = list(state.auxiliary), []
        keys = jax.random.split(key, len(self.kernels))
        for i, (kernel, key) in enumerate(zip(self.kernels, keys, strict=True)):
            state = state._replace(auxiliary=auxiliary[i])
            state, info = kernel.step(key, state, path, beta)
            auxiliary[i] = state.auxiliary
            infos.append(info)
        return state._replace(auxiliary=tuple(auxiliary)), infos

"""Transitions one after the other: each leaves the density invariant, hence so do all together.

``T = T_1 T_2 ... T_m`` is not reversible even where its parts are; its reversal runs the reversals
of the parts in the opposite order, ``T_m* ... T_1*``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import jax

from pymc_anneal.base.contracts import (
    KernelState,
    Path,
    PyTree,
    Scalar,
    StepInfo,
    Transition,
    reversal_of,
)
from pymc_anneal.transitions.metropolis import empty_info, merge_info


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Composition:
    """Several transitions in turn; their parameters left at None are set by the pilot.

    Parameters
    ----------
    kernels : sequence of Transition
        In the order in which they are applied, for example :class:`BlockTransition` with a kernel
        for the continuous variables, and :class:`Gibbs` and :class:`DiscreteRandomWalk` for the discrete
        ones.
    """

    kernels: Sequence[Any]

    def __post_init__(self):
        object.__setattr__(self, "kernels", tuple(self.kernels))

    @property
    def name(self) -> str:
        """Names of the parts."""
        return ", ".join(getattr(k, "name", type(k).__name__) for k in self.kernels)

    @property
    def step_size(self) -> Any:
        """Step size of the first part that has one, None where none has."""
        sizes = (getattr(kernel, "step_size", None) for kernel in self.kernels)
        return next((size for size in sizes if size is not None), None)

    def init(self, key: jax.Array, position: jax.Array) -> PyTree:
        """Draw the auxiliary variables of every part."""
        keys = jax.random.split(key, len(self.kernels))
        return tuple(k.init(key, position) for k, key in zip(self.kernels, keys, strict=True))

    def at(self, beta: Scalar) -> Self:
        """Return the parts with the parameters they have at ``beta``."""
        return type(self)(tuple(kernel.at(beta) for kernel in self.kernels))

    def reversal(self) -> Self:
        """Return the reversals of the parts in the opposite order."""
        return type(self)(tuple(reversal_of(kernel) for kernel in reversed(self.kernels)))

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Apply the parts in turn; the acceptance is the mean of theirs."""
        state, infos = step_by_parts(self, key, state, path, beta)
        total = empty_info(state.position)
        for info in infos:
            total = merge_info(total, info, 1 / len(infos))
        return state, total


def parts_of(transition: Transition) -> tuple[Transition, ...]:
    """Return the parts of a composition; any other transition is its only part."""
    return tuple(transition.kernels) if isinstance(transition, Composition) else (transition,)


def step_by_parts(
    transition: Transition, key: jax.Array, state: KernelState, path: Path, beta: Scalar
) -> tuple[KernelState, list[StepInfo]]:
    """Move once, and return what every part reports."""
    if not isinstance(transition, Composition):
        state, info = transition.step(key, state, path, beta)
        return state, [info]
    auxiliary, infos = list(state.auxiliary), []
    keys = jax.random.split(key, len(transition.kernels))
    for i, (kernel, key) in enumerate(zip(transition.kernels, keys, strict=True)):
        state = state._replace(auxiliary=auxiliary[i])
        state, info = kernel.step(key, state, path, beta)
        auxiliary[i] = state.auxiliary
        infos.append(info)
    return state._replace(auxiliary=tuple(auxiliary)), infos

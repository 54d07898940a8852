"""A kernel on a block of coordinates, the others fixed.

The density of ``x_A`` given the rest is ``f_beta`` itself as a function of ``x_A``: a kernel that
leaves it invariant for every value of the rest leaves ``f_beta`` invariant.
"""

import operator

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.contracts import (
    KernelState,
    Path,
    PyTree,
    Scalar,
    StepInfo,
    Transition,
    Tuning,
)
from pymc_anneal.transitions.metropolis import merge_columns


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ConditionalPath:
    """A path as a function of some coordinates.

    Parameters
    ----------
    path : Path
    position : Array, shape (n, d)
        Holds the other coordinates.
    coordinates : tuple of int, increasing
    """

    path: Path
    position: jax.Array
    coordinates: Sequence[int] = field(metadata={"static": True})

    def evaluate(self, position: jax.Array) -> PyTree:
        """Return the terms at positions of shape ``(n, len(coordinates))``."""
        return self.path.evaluate(merge_columns(self.position, position, self.coordinates))

    def log_density(self, terms: PyTree, beta: Scalar) -> jax.Array:
        """Return ``log f_beta``."""
        return self.path.log_density(terms, beta)

    def log_ratio(self, terms: PyTree, start: Scalar, stop: Scalar) -> jax.Array:
        """Return ``log f_stop - log f_start``."""
        return self.path.log_ratio(terms, start, stop)

    def velocity(self, terms: PyTree, beta: Scalar) -> jax.Array:
        """Return ``v_beta``."""
        return self.path.velocity(terms, beta)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BlockTransition(Transition):
    """A transition that moves a block of coordinates and leaves the others.

    Parameters
    ----------
    kernel : Transition
        Moves these coordinates as if there were no others; its ``scale`` is theirs.
    coordinates : sequence of int
        The block, in increasing order.
    """

    kernel: Transition
    coordinates: Sequence[int] = field(metadata={"static": True})

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "coordinates", tuple(sorted(map(operator.index, self.coordinates)))
        )

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return self.kernel.name

    @property
    def moved_coordinates(self) -> Sequence[int]:
        """The block."""
        return self.coordinates

    @property
    def moves_integers(self) -> bool:
        """Whether the kernel does."""
        return self.kernel.moves_integers

    @property
    def tuning(self) -> Tuning:
        """The kernel's."""
        return self.kernel.tuning

    def with_parameters(self, values: Mapping[str, Any]) -> "BlockTransition":
        """Return the transition with some of the kernel's parameters replaced."""
        return replace(self, kernel=self.kernel.with_parameters(values))

    def effort(self, level: int, step_limit: float) -> tuple[float, int]:
        """Return the kernel's step size and number of steps of an effort level."""
        return self.kernel.effort(level, step_limit)

    def cost(self, betas: np.ndarray) -> np.ndarray:
        """Return the kernel's cost, shape ``(K,)``."""
        return self.kernel.cost(betas)

    def step_sizes(self, betas: np.ndarray) -> np.ndarray:
        """Return the kernel's step sizes, shape ``(K,)``."""
        return self.kernel.step_sizes(betas)

    def init(self, key: jax.Array, position: jax.Array) -> PyTree:
        """Draw the kernel's auxiliary variables."""
        return self.kernel.init(key, position[:, jnp.asarray(self.coordinates)])

    def at(self, beta: Scalar) -> "BlockTransition":
        """Return the transition with the kernel's parameters at ``beta``."""
        return replace(self, kernel=self.kernel.at(beta))

    def reversal(self) -> "BlockTransition":
        """Return the reversed kernel on the same coordinates."""
        return replace(self, kernel=self.kernel.reversal())

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Move the coordinates by the kernel."""
        whole, given = state.position, self.coordinates
        inner = state._replace(position=whole[:, jnp.asarray(given)])
        conditional = ConditionalPath(path, whole, given)
        inner, info = self.kernel.step(key, inner, conditional, beta)
        new = inner._replace(position=merge_columns(whole, inner.position, given))
        return new, info._replace(nan_position=merge_columns(whole, info.nan_position, given))

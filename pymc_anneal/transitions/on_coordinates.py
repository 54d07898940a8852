"""A kernel on some of the coordinates, the others fixed.

The density of ``x_A`` given the rest is ``f_beta`` itself as a function of ``x_A``: a kernel that
leaves it invariant for every value of the rest leaves ``f_beta`` invariant.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Self

import jax
import jax.numpy as jnp

from pymc_anneal.base.contracts import KernelState, Path, PyTree, Scalar, StepInfo, reversal_of


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ConditionalPath:
    """A path as a function of some coordinates.

    Parameters
    ----------
    path : Path
    position : Array, shape (n, d)
        Gives the other coordinates.
    coordinates : tuple of int, increasing
    """

    path: Any
    position: jax.Array
    coordinates: Sequence[int] = field(metadata={"static": True})

    def evaluate(self, position: jax.Array) -> PyTree:
        """Return the terms at positions of shape ``(n, len(coordinates))``."""
        return self.path.evaluate(merged(self.position, position, self.coordinates))

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
class BlockTransition:
    """A transition that moves some coordinates and leaves the others.

    Parameters
    ----------
    kernel : Transition
        Moves the coordinates as if there were no others; its ``scale`` is theirs.
    coordinates : sequence of int
        Which, in increasing order.
    """

    kernel: Any
    coordinates: Sequence[int] = field(metadata={"static": True})

    def __post_init__(self):
        object.__setattr__(self, "coordinates", tuple(sorted(int(j) for j in self.coordinates)))

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return type(self.kernel).__name__

    @property
    def step_size(self) -> Any:
        """Step size of the kernel, None where it has none."""
        return getattr(self.kernel, "step_size", None)

    def init(self, key: jax.Array, position: jax.Array) -> PyTree:
        """Draw the kernel's auxiliary variables."""
        return self.kernel.init(key, position[:, jnp.asarray(self.coordinates)])

    def at(self, beta: Scalar) -> Self:
        """Return the transition with the kernel's parameters at ``beta``."""
        return replace(self, kernel=self.kernel.at(beta))

    def reversal(self) -> Self:
        """Return the reversed kernel on the same coordinates."""
        return replace(self, kernel=reversal_of(self.kernel))

    def step(
        self, key: jax.Array, state: KernelState, path: Path, beta: Scalar
    ) -> tuple[KernelState, StepInfo]:
        """Move the coordinates by the kernel."""
        whole, given = state.position, self.coordinates
        inner = state._replace(position=whole[:, jnp.asarray(given)])
        conditional = ConditionalPath(path, whole, given)
        inner, info = self.kernel.step(key, inner, conditional, beta)
        new = inner._replace(position=merged(whole, inner.position, given))
        return new, info._replace(nan_position=merged(whole, info.nan_position, given))


def merged(whole: jax.Array, part: jax.Array, coordinates: Sequence[int]) -> jax.Array:
    """Return ``whole``, shape ``(n, d)``, with some columns replaced by those of ``part``.

    Runs of neighbours are concatenated: XLA's scatter on the CPU is a loop over its elements.
    """
    inside = set(coordinates)
    pieces, taken = [], 0
    for from_part, run in groupby(range(whole.shape[1]), key=inside.__contains__):
        columns = list(run)
        if from_part:
            pieces.append(part[:, taken : taken + len(columns)])
            taken += len(columns)
        else:
            pieces.append(whole[:, columns[0] : columns[-1] + 1])
    return jnp.concatenate(pieces, axis=1) if pieces else whole

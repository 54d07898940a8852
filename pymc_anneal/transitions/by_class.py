"""Moves of all coordinates of a class at once, each by the terms that depend on it.

Coordinates of which no term of the log density has two are independent given the others
(chromatic sampling: Gonzalez, Low, Gretton & Guestrin 2011, Parallel Gibbs sampling: from colored
fields to thin junction trees). One evaluation of all terms serves all of them.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.contracts import KernelState, LogTerms, Path, Scalar


class Separate(Protocol):
    """Terms of a log density, and classes of coordinates; hashable."""

    @property
    def coordinates(self) -> np.ndarray:
        """Coordinates that have a class, shape ``(p,)``."""

    @property
    def colour(self) -> np.ndarray:
        """The class of each, shape ``(p,)``."""

    @property
    def owner(self) -> np.ndarray:
        """The index of the coordinate of a class on which a term depends, or ``p``."""

    def evaluate(self, position: jax.Array) -> LogTerms:
        """Return the terms, shape ``(n, T)``, of log prior and log likelihood."""


class Classes(NamedTuple):
    """The coordinates of a kernel by class, filled up to the same number ``m``.

    Attributes
    ----------
    member : Array of int, shape (classes, m)
        Indices into the coordinates of the kernel; of those that fill up, the last one.
    present : Array of bool, shape (classes, m)
        Whether a member is one, and does not fill up.
    terms : Array of int, shape (classes, m, g)
        The terms that depend on a member; ``T`` fills up.
    place : Array of int, shape (classes, d)
        The member that a coordinate of the position is, or ``m``.
    """

    member: jax.Array
    present: jax.Array
    terms: jax.Array
    place: jax.Array


def number_of_classes(separate: Separate, coordinates: Sequence[int]) -> int:
    """Return the number of classes that the coordinates of a kernel are of."""
    return len(np.unique(separate.colour[np.isin(separate.coordinates, coordinates)]))


def classes_of(separate: Separate, coordinates: Sequence[int], ndim: int) -> Classes:
    """Return the classes of the coordinates of a kernel, of positions of length ``ndim``."""
    number = {int(j): i for i, j in enumerate(separate.coordinates)}
    index = np.array([number[j] for j in coordinates])
    colours = np.unique(separate.colour[index])
    each = [np.flatnonzero(separate.colour[index] == c) for c in colours]
    owned = {i: np.flatnonzero(separate.owner[separate.colour[i]] == i) for i in index.tolist()}
    m, g = max(map(len, each)), max(1, *map(len, owned.values()))
    member = np.full((len(each), m), len(coordinates) - 1)
    terms = np.full((len(each), m, g), separate.owner.shape[1])
    place = np.full((len(each), ndim), m)
    for row, members in enumerate(each):
        member[row, : len(members)] = members
        place[row, np.asarray(coordinates)[members]] = np.arange(len(members))
        for at, i in enumerate(members):
            terms[row, at, : len(owned[int(index[i])])] = owned[int(index[i])]
    present = np.arange(m) < np.array([len(members) for members in each])[:, None]
    return Classes(*(jnp.asarray(part) for part in (member, present, terms, place)))


def can_move_by_class(path: Path, state: KernelState) -> bool:
    """Whether the log density of a path is that of each term, added up."""
    return getattr(path, "separable", False) and type(state.terms) is LogTerms


def log_density_of_members(
    separate: Separate, path: Path, position: jax.Array, owned: jax.Array, beta: Scalar
) -> tuple[jax.Array, jax.Array]:
    """Return what members of a class add to ``log f_beta``, and whether they are outside.

    Parameters
    ----------
    separate, path, beta
        The density.
    position : Array, shape (n, d)
    owned : Array of int, shape (m, g)
        The terms that depend on each member.

    Returns
    -------
    Array of float and Array of bool, shapes (n, m)
        Outside, the density of the reference is zero.
    """
    terms = separate.evaluate(position)
    each, outside = path.log_density(terms, beta), jnp.isneginf(path.log_density(terms, 0.0))
    # Gathered and not scattered: XLA's scatter on the CPU is a loop over elements.
    own = jnp.pad(each, ((0, 0), (0, 1)))[:, owned].sum(axis=2)
    return own, jnp.pad(outside, ((0, 0), (0, 1)))[:, owned].any(axis=2)


def replaced(position: jax.Array, place: jax.Array, values: jax.Array) -> jax.Array:
    """Replace the coordinates of the members of a class by values, shape ``(n, m)``."""
    filled = jnp.pad(values, ((0, 0), (0, 1)))
    return jnp.where(place < values.shape[1], filled[:, place], position)

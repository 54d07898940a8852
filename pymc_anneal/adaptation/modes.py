"""Modes among particles: groups that no valley of the density separates.

Two particles belong to the same mode if the log density on the straight line between them stays
above that of the lower one, up to a tolerance. The lines are those to the nearest neighbours, and
the modes are the connected components of the graph that is left. For a log-concave density no line
has a valley; a curved density keeps the lines between close neighbours.
"""

from collections.abc import Callable

import numpy as np

from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

# Neighbours of each particle to which lines are drawn.
_NEIGHBOURS = 8
# Points on a line between its ends.
_POINTS = (np.arange(5) + 1) / 6
# Coordinates of ends of lines that are evaluated at a time.
_LARGEST_PART = 2**22
# Depth of a valley in nats: shallower ones are noise of a ragged density, or one wide mode.
_DEPTH = 2.0
# Particles without which a group is too small for a fit, and the share of all particles in such
# groups above which these are parts of a ragged mode and not modes.
_LEAST, _MAX_ALONE = 4, 0.05


def group_by_mode(
    log_density: Callable[[np.ndarray], np.ndarray], position: np.ndarray
) -> np.ndarray:
    """Group particles by the mode to which they belong.

    Parameters
    ----------
    log_density : callable
        From positions of shape ``(n, d)`` to log densities of shape ``(n,)``.
    position : ndarray, shape (n, d)
        Particles.

    Returns
    -------
    ndarray of int, shape (n,)
        Number of the mode of each particle, from 0, the largest mode first; -1 for a few particles
        that are alone in theirs.
    """
    largest = np.abs(position).max(axis=0)
    scaled = position / np.where(largest > 0, largest, 1.0)  # squares of 1e300 overflow
    spread = scaled.std(axis=0)
    scaled = scaled / np.where(spread > 0, spread, 1.0)
    label = _components(log_density, position, _neighbours(scaled))
    small = np.bincount(label)[label] < _LEAST
    if 0 < small.mean() <= _MAX_ALONE:
        found = np.full(len(label), -1)
        found[~small] = _by_size(label[~small])
        return found
    return _by_size(_join_small(label, scaled))


def _neighbours(position: np.ndarray) -> np.ndarray:
    """Return the nearest neighbours of each particle, the nearest first, shape ``(n, k)``."""
    count = min(_NEIGHBOURS, len(position) - 1)
    _, near = KDTree(position).query(position, count + 1)
    return np.asarray(near.reshape(len(position), -1)[:, 1:])


def _components(
    log_density: Callable[[np.ndarray], np.ndarray], position: np.ndarray, near: np.ndarray
) -> np.ndarray:
    """Return the component of each particle, shape ``(n,)``.

    Lines to the nearest neighbours come first, and lines within a component are left out: they
    could not change it.
    """
    label, height = np.arange(len(position)), log_density(position)
    for neighbour in near.T:
        pairs = np.stack([np.arange(len(position)), neighbour], axis=1)
        pairs = np.unique(np.sort(pairs[label[pairs[:, 0]] != label[pairs[:, 1]]], axis=1), axis=0)
        valley = _separated_by_valley(log_density, position, height, pairs)
        label = _join(label, pairs[~valley])
    return label


def _join(label: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return labels after the components of each pair, shape ``(m, 2)``, are joined."""
    n, ends = len(label), label[pairs]
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1][label])


def _separated_by_valley(
    log_density: Callable[[np.ndarray], np.ndarray],
    position: np.ndarray,
    height: np.ndarray,
    pairs: np.ndarray,
) -> np.ndarray:
    """Return whether a valley separates each pair, shape ``(m,)``."""
    if not len(pairs):
        return np.zeros(0, dtype=bool)
    parts = np.array_split(pairs, -(-pairs.size * position.shape[1] // _LARGEST_PART))
    lowest = np.concatenate([_lowest_between(log_density, position[part]) for part in parts])
    return np.asarray(~(lowest >= height[pairs].min(axis=1) - _DEPTH))


def _lowest_between(
    log_density: Callable[[np.ndarray], np.ndarray], ends: np.ndarray
) -> np.ndarray:
    """Return the lowest log density on the lines between pairs of shape ``(m, 2, d)``."""
    start, stop = ends[:, 0], ends[:, 1]
    line = start[:, None] + _POINTS[:, None] * (stop - start)[:, None]
    lowest: np.ndarray = log_density(line.reshape(-1, ends.shape[2])).reshape(len(ends), -1)
    return np.asarray(lowest.min(axis=1))


def _join_small(label: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Let particles of small groups join the group of their nearest neighbour in a large one."""
    large = np.bincount(label)[label] >= _LEAST
    if not large.any():
        return np.zeros_like(label)
    joined = label.copy()
    if not large.all():
        _, nearest = KDTree(position[large]).query(position[~large])
        joined[~large] = label[large][nearest]
    return joined


def _by_size(label: np.ndarray) -> np.ndarray:
    """Return labels renumbered from the largest group to the smallest."""
    _, label, count = np.unique(label, return_inverse=True, return_counts=True)
    rank = np.empty(len(count), dtype=int)
    rank[np.argsort(-count, kind="stable")] = np.arange(len(count))
    return rank[label]

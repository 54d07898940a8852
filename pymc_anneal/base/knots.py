"""Piecewise linear functions of ``beta``: the segments between knots.

Knots are an increasing array of shape ``(m + 1,)``; segment ``j`` runs from knot ``j`` to knot
``j + 1``. All functions work under JAX transformations.
"""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from pymc_anneal.base.contracts import Scalar


def segment_of(
    knots: jax.Array | np.ndarray, beta: Scalar, side: Literal["left", "right"]
) -> jax.Array:
    """Return the index of the segment that contains ``beta``, of the shape of ``beta``.

    Parameters
    ----------
    knots : Array, shape (m + 1,)
    beta : Array or float
        A value outside the knots belongs to the first or the last segment.
    side : {"left", "right"}
        Segment of a ``beta`` that equals an inner knot: on the left or on the right of the knot.
    """
    # Not by bisection, the default: its loop is a sequence of tiny programs on a GPU.
    below = jnp.searchsorted(jnp.asarray(knots), beta, side=side, method="compare_all") - 1
    return jnp.clip(below, 0, len(knots) - 2)


def width_of(knots: jax.Array | np.ndarray, segment: jax.Array) -> jax.Array:
    """Return the width of a segment."""
    knots = jnp.asarray(knots)
    return knots[segment + 1] - knots[segment]


def share_of(knots: jax.Array | np.ndarray, segment: jax.Array, beta: Scalar) -> jax.Array:
    """Return the position of ``beta`` on a segment: 0 at its first knot and 1 at its second."""
    share: jax.Array = (beta - jnp.asarray(knots)[segment]) / width_of(knots, segment)
    return share

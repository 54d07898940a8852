"""Segments of piecewise linear functions."""

import jax
import numpy as np
import pytest

from pymc_anneal.base.knots import segment_of, share_of, width_of

KNOTS = np.array([0.0, 0.25, 0.5, 1.0])


@pytest.mark.parametrize(
    ("beta", "left", "right"),
    [(0.0, 0, 0), (0.1, 0, 0), (0.25, 0, 1), (0.5, 1, 2), (0.9, 2, 2), (1.0, 2, 2), (1.5, 2, 2)],
)
def test_segment(beta: float, left: int, right: int) -> None:
    assert segment_of(KNOTS, beta, "left") == left
    assert segment_of(KNOTS, beta, "right") == right


@pytest.mark.parametrize("side", ["left", "right"])
def test_share_interpolates(side: str) -> None:
    values = np.array([1.0, -1.0, 2.0, 0.0])
    betas = np.linspace(0, 1, 21)
    with jax.enable_x64(True):
        segment = segment_of(KNOTS, betas, side)
        share = share_of(KNOTS, segment, betas)
        found = (1 - share) * values[segment] + share * values[segment + 1]
        np.testing.assert_allclose(found, np.interp(betas, KNOTS, values), atol=1e-14)
        np.testing.assert_array_equal(width_of(KNOTS, segment), np.diff(KNOTS)[segment])

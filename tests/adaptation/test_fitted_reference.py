"""The discrepancy of a path from a fitted reference, from both of its ends."""

import numpy as np
import pytest

from pymc_anneal.adaptation.fitted_reference import discrepancy_of

# Ratios at draws of the reference: their mean is 2, that of their squares 5.
DRAWS = np.log([1.0, 3.0])


@pytest.mark.parametrize(
    ("particles", "expected"),
    [([2.0, 2.0], 5 / 4), ([4.0, 8.0], 6 / 2), ([0.1, 0.3], 5 / 4)],
    ids=["draws", "particles", "low particles"],
)
def test_the_larger_one(particles: list[float], expected: float) -> None:
    assert discrepancy_of(DRAWS, np.log(particles)) == pytest.approx(np.log(expected))


def test_of_a_perfect_reference() -> None:
    assert discrepancy_of(np.full(3, 7.0), np.full(2, 7.0)) == pytest.approx(0, abs=1e-12)

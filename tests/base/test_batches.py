"""Evaluation in batches of one size."""

import numpy as np
import pytest

from pymc_anneal.base.batches import map_batches


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 32])
def test_all_rows_in_batches_of_one_size(n: int) -> None:
    position, sizes = np.arange(2.0 * n).reshape(n, 2), []

    def function(x: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        sizes.append(len(x))
        return x.sum(axis=1), {"square": x**2}

    total, other = map_batches(function, position, 8)
    np.testing.assert_array_equal(total, position.sum(axis=1))
    np.testing.assert_array_equal(other["square"], position**2)
    assert set(sizes) == ({8} if n else {0})


def test_what_else_is_given_goes_with_its_position() -> None:
    position, choice = np.arange(12.0)[:, None], np.arange(24).reshape(12, 2)
    found = map_batches(lambda x, c: x[:, 0] * c[:, 1], position, 5, choice)
    np.testing.assert_array_equal(found, position[:, 0] * choice[:, 1])

"""The posterior draws of nested sampling."""

import numpy as np

from pymc_anneal.nested.nested_sampling import NestedRun
from pymc_anneal.nested.result import _draw_posterior


def test_points_are_drawn_by_the_weights_of_their_run() -> None:
    position = np.arange(12.0).reshape(6, 2)
    weights = np.array([[0, 0, 1, 0, 0, 3.0], [2, 0, 2, 0, 0, 0.0]])
    with np.errstate(divide="ignore"):
        runs = [NestedRun(0.0, 0.1, position, np.log(w), 1.0, 100) for w in weights]
    found = _draw_posterior(runs, 40, np.random.default_rng(1))
    assert found.shape == (2, 40, 2)
    for draws, weight in zip(found, weights, strict=True):
        copies = [(draws == row).all(axis=1).sum() for row in position]
        np.testing.assert_array_equal(copies, 40 * weight / weight.sum())

"""Names and coordinates that a container can hold."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from pymc_anneal.base.storable import as_coordinate, find_unstorable, name_dimensions


def test_names() -> None:
    found = find_unstorable(["x", "draw", "a/b", "."], ["chain", "draw", "x_dim_0"])
    assert found == {
        "draw": "its name is that of a dimension",
        "a/b": "files cannot hold its name",
        ".": "files cannot hold its name",
    }


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, {"x": ["x_dim_0", "x_dim_1"], "y": ["y_dim_0"]}),
        ({"x": ["row"]}, {"x": ["row", "x_dim_1"], "y": ["y_dim_0"]}),
        ({"x": [None, "column"]}, {"x": ["x_dim_0", "column"], "y": ["y_dim_0"]}),
        ({"x": ["row", "row"]}, {"x": ["row", "x_dim_1"], "y": ["y_dim_0"]}),
        ({"x": ["draw", "y"]}, {"x": ["x_dim_0", "x_dim_1"], "y": ["y_dim_0"]}),
        ({"x": ["row"], "y": ["row"]}, {"x": ["row", "x_dim_1"], "y": ["y_dim_0"]}),
        ({"x": ["a", "row"], "y": ["row"]}, {"x": ["a", "row"], "y": ["row"]}),
        ({"y": ["row", "column"]}, {"x": ["x_dim_0", "x_dim_1"], "y": ["row"]}),
    ],
)
def test_dimensions(given: dict, named: dict) -> None:
    assert name_dimensions({"x": (2, 3), "y": (3,)}, given, ["chain", "draw"]) == named


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (None, None),
        ("ab", None),
        (3, None),
        ([4, 5], np.array([4, 5])),
        (("a", "b"), np.array(["a", "b"])),
        ([1, "a"], np.array(["1", "a"])),
        ([(1, "a"), (2, "b")], np.array(["(1, 'a')", "(2, 'b')"])),
        (pd.MultiIndex.from_tuples([(1, 2), (3, 4)]), np.array(["(1, 2)", "(3, 4)"])),
        (pd.CategoricalIndex(["a", "b"]), np.array(["a", "b"])),
        (pd.date_range("2020", periods=2), np.array(["2020-01-01", "2020-01-02"], "datetime64[D]")),
        (
            tuple(pd.date_range("2020", periods=2)),  # as PyMC keeps them
            np.array(["2020-01-01", "2020-01-02"], "datetime64[D]"),
        ),
        (tuple(pd.to_timedelta([1, 2], "h")), np.array([1, 2], "timedelta64[h]")),
        (
            tuple(pd.date_range("2020", periods=1, tz="UTC")),
            np.array(["2020-01-01 00:00:00+00:00"]),
        ),
        ([(1,), (2, 3)], np.array(["(1,)", "(2, 3)"])),
        ([], np.arange(0)),
    ],
)
def test_coordinates(values: Any, expected: np.ndarray | None) -> None:
    found = as_coordinate(values)
    if expected is None:
        assert found is None
        return
    np.testing.assert_array_equal(found, expected)
    assert found.dtype != object

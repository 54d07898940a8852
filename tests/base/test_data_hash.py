"""The hash of observed data depends on the numbers and on nothing else."""

import numpy as np

from pymc_anneal.base.data_hash import hash_data

DATA = {"y": np.array([1.0, 0.0, np.nan]), "count": np.array([[1, 2], [3, 4]])}


def test_no_data() -> None:
    assert hash_data({}) == ""


def test_names_shapes_types_and_order_do_not_matter() -> None:
    same = {"n": np.arange(1.0, 5.0), "height": np.array([[1.0, -0.0, np.nan]], dtype=np.float32)}
    assert hash_data(same) == hash_data(DATA)


def test_numbers_matter() -> None:
    other = {**DATA, "y": np.array([1.0, 1e-300, np.nan])}
    assert hash_data(other) != hash_data(DATA)
    assert hash_data({"y": DATA["y"]}) != hash_data(DATA)

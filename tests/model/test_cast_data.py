"""Values of pm.Data are those that were given, or refused."""

import numpy as np
import pytest

from pymc_anneal.model.cast_data import cast_data


def test_values_that_fit() -> None:
    assert cast_data("y", [1, 2], np.float64).dtype == np.float64
    assert cast_data("y", [1.0, 2.0], np.int64).tolist() == [1, 2]
    assert cast_data("y", [True, False], np.int8).tolist() == [1, 0]
    assert cast_data("y", np.ma.masked_array([1.5, 2.0], mask=False), float).tolist() == [1.5, 2.0]
    assert np.isnan(cast_data("y", [np.nan], float)).all()


@pytest.mark.parametrize(
    ("values", "dtype"), [([0.9, 1.0], "int64"), ([np.nan], "int64"), ([300], "int8"), ([2], bool)]
)
def test_values_that_would_be_rounded(values: list, dtype: str) -> None:
    with pytest.raises(ValueError, match="'y' of the model is of type .*, which would round"):
        cast_data("y", values, dtype)


def test_what_is_below_a_mask_is_no_data() -> None:
    masked = np.ma.masked_array([1.0, -9.0], mask=[False, True])
    with pytest.raises(ValueError, match="'y' are masked"):
        cast_data("y", masked, float)

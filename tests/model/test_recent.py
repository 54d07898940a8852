"""Models of earlier calls are compiled once, and again after a change."""

import numpy as np
import pymc as pm
import pytest

from pymc_anneal.model.compile import compile_model
from pymc_anneal.model.recent import as_compiled


def build() -> pm.Model:
    with pm.Model() as model:
        x = pm.Data("x", np.array([1.0, 2.0]))
        mean = pm.Normal("mean", 0, 1)
        pm.Normal("y", mean * x, 1, observed=np.array([0.5, 1.5]))
    return model


def test_the_same_model_is_compiled_once() -> None:
    model = build()
    assert as_compiled(model) is as_compiled(model)


def test_a_compiled_model_is_returned() -> None:
    compiled = compile_model(build())
    assert as_compiled(compiled) is compiled


def test_an_equal_model_is_another_one() -> None:
    assert as_compiled(build()) is not as_compiled(build())


def test_new_data() -> None:
    model = build()
    before = as_compiled(model)
    with model:
        pm.set_data({"x": np.array([1.0, 3.0])})
    after = as_compiled(model)
    assert after is not before
    np.testing.assert_array_equal(after.constant_data()["x"], [1.0, 3.0])


@pytest.mark.parametrize("size", [{"dims": "row"}, {"shape": 2}, {}])
def test_new_observed_data(size: dict) -> None:
    with pm.Model(coords={"row": [0, 1]}) as model:
        data = pm.Data("data", np.array([1.0, 2.0]), dims="row")
        mean = pm.Normal("mean", shape=2)
        pm.Normal("y", mean, 1.0, observed=data, **size)
    before = as_compiled(model)
    with model:
        pm.set_data({"data": np.array([5.0, 6.0])})
    after = as_compiled(model)
    assert after is not before
    np.testing.assert_array_equal(after.observed_data()["y"], [5.0, 6.0])


def test_a_new_variable() -> None:
    model = build()
    before = as_compiled(model)
    with model:
        pm.Normal("other", 0, 1)
    assert as_compiled(model).ndim == before.ndim + 1


def test_a_new_potential() -> None:
    model = build()
    before = as_compiled(model)
    with model:
        pm.Potential("more", -(model["mean"] ** 2))
    assert as_compiled(model) is not before


def test_models_are_forgotten() -> None:
    first = build()
    before = as_compiled(first)
    for _ in range(4):
        as_compiled(build())
    assert as_compiled(first) is not before


def test_not_a_model() -> None:
    with pytest.raises(TypeError, match="`model` is a list"):
        as_compiled([])

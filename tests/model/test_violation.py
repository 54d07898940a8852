"""What is lacking until a likelihood is not zero."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_anneal as pma

from pymc_anneal.model.violation import violation_graph


def lacking(model: pm.Model, x: list[float]) -> float:
    found = pma.compile_model(model).violation
    assert found is not None
    return float(found(np.array([x]))[0])


def test_conditions_of_observed_variables_and_potentials_add_up() -> None:
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        pm.Uniform("y", x - 1, x + 1, observed=[3.0, 0.5])
        pm.Potential("below", pt.switch(pt.all(x < 2), 0.0, -np.inf))
    assert lacking(model, [2.5, 0.0]) == pytest.approx(0.5)
    assert lacking(model, [0.0, 0.0]) == pytest.approx(2.0)
    assert lacking(model, [1.0, -1.0]) == pytest.approx(1.0 + 0.5)


def test_of_alternatives_the_nearest_counts() -> None:
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        forbidden = (x[0] < 5) & pt.invert(x[1] >= 6)
        pm.Potential("away", pt.switch(forbidden, -np.inf, 0.0))
    assert lacking(model, [0.0, 0.0]) == pytest.approx(5.0)
    assert lacking(model, [0.0, 4.0]) == pytest.approx(2.0)
    assert lacking(model, [0.0, 7.0]) == 0


def test_other_conditions_have_no_distance() -> None:
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("odd", pt.switch(pt.eq(pt.sign(x), 1), 0.0, -np.inf))
        pm.Potential("finite", pt.switch(x > 1, 0.0, -5.0))
    assert violation_graph(model) is None

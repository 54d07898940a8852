import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_anneal.model.compile import CompiledModel, compile_model
from pymc_anneal.model.parents import likelihood_is_constant

DESIGN = np.arange(6.0).reshape(3, 2)


def compiled(location: str, mask: float = 0.0) -> CompiledModel:
    """Compile a regression whose location does or does not depend on its two coefficients."""
    with pm.Model() as model:
        shown = pm.Data("shown", np.full(2, mask))
        b = pm.HalfNormal("b", shape=2)
        w = pm.Dirichlet("w", np.ones(2))
        locations = {
            "none": pt.zeros(3),
            "product": 0 * b[0],
            "difference": b[1] - b[1],
            "mask": pt.dot(DESIGN, shown * b),
            "design": pt.dot(DESIGN * shown, b),
            "outer": pt.outer(b, shown[[0, 1, 0]]).sum(0),
            "untaken": pt.switch(shown[0], b[0], 0.0),
            "simplex": w.sum(),
            "box": pt.switch(b[0] > 40, 9.0, 0.0),
            "one of two": pt.dot(DESIGN[:, :1] * 0, b[:1]) + b[1],
        }
        pm.Normal("y", locations[location], 1.0, observed=[0.3, -0.2, 1.0])
    return compile_model(model)


@pytest.mark.parametrize(
    "location", ["none", "product", "difference", "mask", "design", "outer", "untaken"]
)
def test_what_drops_out_of_the_graph_is_constant(location: str) -> None:
    assert likelihood_is_constant(compiled(location))


@pytest.mark.parametrize("location", ["simplex", "box", "one of two"])
def test_what_no_rule_simplifies_is_not_claimed(location: str) -> None:
    assert not likelihood_is_constant(compiled(location))


@pytest.mark.parametrize("location", ["mask", "design", "outer", "untaken"])
def test_the_data_decide(location: str) -> None:
    assert not likelihood_is_constant(compiled(location, mask=1.0))


def test_the_data_are_those_of_the_compilation() -> None:
    with pm.Model() as model:
        slope = pm.Data("slope", 1.0)
        pm.Normal("y", slope * pm.Normal("x"), 1.0, observed=0.5)
    with_slope = compile_model(model)
    pm.set_data({"slope": 0.0}, model=model)
    assert not likelihood_is_constant(with_slope)
    assert likelihood_is_constant(compile_model(model))


def test_data_without_entries() -> None:
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Normal("y", x, 1.0, observed=np.zeros(0))
    assert likelihood_is_constant(compile_model(model))
    with model:
        pm.Normal("z", x, 1.0, observed=0.0)
    assert not likelihood_is_constant(compile_model(model))

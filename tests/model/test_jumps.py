"""Whether parameters are compared or rounded on their way to the likelihood."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_anneal as pma

from pymc_anneal.model.parents import count_data, likelihood_has_jumps


def model(mean, **potential) -> pm.Model:
    """Return a model whose mean, or a potential, is a function of ``x``."""
    with pm.Model() as built:
        x = pm.Normal("x", 0, pm.HalfNormal("s"), shape=3)
        pm.StudentT("y", nu=3, mu=mean(x), sigma=1.0, observed=np.zeros(3))
        for name, term in potential.items():
            pm.Potential(name, term(x))
    return built


@pytest.mark.parametrize(
    "mean",
    [
        lambda x: pt.switch(x < 0, x, 0.0),
        lambda x: pt.where(pt.all(x > 0.5), 1.0, x),
        pt.floor,
        lambda x: x * pt.sign(x),
        lambda x: pt.switch(np.arange(3) >= x[0], x, 0.0),
    ],
)
def test_jumps(mean) -> None:
    assert likelihood_has_jumps(model(mean))
    assert likelihood_has_jumps(model(lambda x: x, box=lambda x: mean(x).sum()))


@pytest.mark.parametrize(
    "mean",
    [
        lambda x: x,
        lambda x: pt.abs(x) + pt.maximum(x, 0),
        lambda x: pt.switch(np.array([True, False, True]), x, 0.0),
    ],
)
def test_no_jumps(mean) -> None:
    """Supports, as of the scale, are in the densities and are not jumps of the likelihood."""
    assert not likelihood_has_jumps(model(mean))


def test_a_comparison_above_a_parameter_is_of_the_prior() -> None:
    with pm.Model() as built:
        k = pm.Normal("k")
        x = pm.Normal("x", pt.switch(k > 0, 1.0, -1.0))
        pm.Normal("y", x, observed=0.0)
    assert not likelihood_has_jumps(built)


def test_a_precision_is_no_jump() -> None:
    """PyMC makes a scale of it by its sign, which is that of a positive variable."""
    with pm.Model() as built:
        tau = pm.Gamma("tau", 2.0, 1.0)
        pm.Normal("y", 0.0, tau=tau, observed=[0.3, 0.1])
    assert not likelihood_has_jumps(built)
    with pm.Model() as built:
        slope = pm.Normal("slope")
        pm.Normal("y", pt.sign(slope), observed=[0.3, 0.1])
    assert likelihood_has_jumps(built)


def test_number_of_data() -> None:
    with pm.Model() as built:
        x = pm.Normal("x")
        pm.Normal("y", x, observed=np.zeros((4, 2)))
        pm.Poisson("n", pt.exp(x), observed=pm.Data("counts", [1, 2, 3]))
    assert count_data(pma.compile_model(built)) == 11

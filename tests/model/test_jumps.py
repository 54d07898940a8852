"""Whether the likelihood may have pieces where parameters are compared or rounded."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_anneal as pma

from pymc_anneal.model.jumps import may_jump
from pymc_anneal.model.parents import count_data


def model(mean, **potential) -> pm.Model:
    """Return a model whose mean, or a potential, is a function of ``x``."""
    with pm.Model() as built:
        x = pm.Normal("x", 0, pm.HalfNormal("s"), shape=3)
        pm.StudentT("y", nu=3, mu=mean(x), sigma=1.0, observed=np.zeros(3))
        for name, term in potential.items():
            pm.Potential(name, term(x))
    return built


TIME = np.linspace(-1, 1, 3)
FLAT = np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "mean",
    [
        lambda x: pt.switch(x < 0, x, 1.0),
        lambda x: pt.switch(TIME > x[0], x[1], x[2]),
        lambda x: pt.switch(x > 0.1, x**2, x),
        lambda x: pt.switch((x > 0) & (x < 1), x, 0.0),
        lambda x: pt.switch(pt.eq(pt.maximum(x, 0), 0), 5.0, x),
        lambda x: pt.switch(np.arange(3) >= x[0], x, 0.0),
        lambda x: pt.switch(pt.gt(0, x), pt.log(-x), 1.0),
        lambda x: pt.switch(x > 0, pt.log(x), 5 * pt.log(-x)),
        lambda x: pt.switch(x > 0, pt.log(x - 50), pt.log(x - 60)),
        # Where one entry crosses, the others are where they are, seldom all above.
        lambda x: pt.where(pt.all(x > 0.5), 1.0, x),
        lambda x: pt.prod(x > 0) * pt.sum(x**2),
        pt.floor,
        pt.round,
        lambda x: x % 1,
        lambda x: x * pt.sign(x),
        lambda x: x.astype("int64"),
        lambda x: pt.as_tensor(FLAT)[pt.argmax(x)],
    ],
)
def test_jumps(mean) -> None:
    assert may_jump(model(mean))
    assert may_jump(model(lambda x: x, box=lambda x: mean(x).sum()))


@pytest.mark.parametrize(
    "mean",
    [
        lambda x: pt.switch(x < 0, x, 0.0),
        lambda x: pt.switch(pt.lt(0, x), x, 0.0),
        lambda x: pt.switch((x > 0) & (x < 1), x * (1 - x), 0.0),
        lambda x: x[0] * (TIME > x[1]) * (TIME - x[1]),
    ],
)
def test_pieces_that_meet(mean) -> None:
    """One may be flat, where no climb leads to the others."""
    assert may_jump(model(mean))


def above(u):
    """Return a softplus that overflows far below zero."""
    return u + pt.log1p(pt.exp(-u))


def below(u):
    """Return a softplus that overflows far above zero."""
    return pt.log1p(pt.exp(u))


@pytest.mark.parametrize(
    "mean",
    [
        lambda x: x,
        lambda x: pt.abs(x) + pt.maximum(x, 0),
        lambda x: pt.switch(np.array([True, False, True]), x, 0.0),
        lambda x: pt.switch(2000 * x > 0, above(2000 * x), below(2000 * x)),
        lambda x: pt.switch(pt.lt(0, 2000 * x), above(2000 * x), below(2000 * x)),
        lambda x: pt.switch(TIME > x[0], above(3000 * (TIME - x[0])), below(3000 * (TIME - x[0]))),
        lambda x: pt.switch(
            2 * x[0] < x[1], above(1000 * (x[1] - x[0] * 2)), below(1000 * (x[1] - x[0] * 2))
        ),
        lambda x: x[: x.shape[0]],
    ],
)
def test_no_jumps(mean) -> None:
    """Supports, as of the scale, are in the densities and are not jumps of the likelihood."""
    assert not may_jump(model(mean))


def test_forms_of_one_function_are_joined() -> None:
    """PyMC takes the tails of the normal from other formulas than its middle."""
    with pm.Model() as built:
        slope = pm.Normal("slope")
        eta = slope * np.arange(6)
        pm.OrderedProbit("y", eta=eta, cutpoints=[-1, 1], observed=[0, 1, 2, 1, 1, 2])
    assert not may_jump(built)


def test_parts_of_a_mixture_are_no_steps() -> None:
    with pm.Model() as built:
        parts = [pm.Poisson.dist(pt.exp(pm.Normal("x"))), pm.Poisson.dist(3.0)]
        pm.Mixture("y", w=[0.5, 0.5], comp_dists=parts, observed=[1, 2])
    assert not may_jump(built)


def test_what_cannot_be_drawn_may_jump() -> None:
    with pm.Model() as built:
        x = pm.CustomDist("x", logp=lambda value: -(value**2) / 2)
        pm.Normal("y", pt.switch(x > 0, x, 0.0), observed=0.0)
    assert may_jump(built)


def test_a_comparison_above_a_parameter_is_of_the_prior() -> None:
    with pm.Model() as built:
        k = pm.Normal("k")
        x = pm.Normal("x", pt.switch(k > 0, 1.0, -1.0))
        pm.Normal("y", x, observed=0.0)
    assert not may_jump(built)


def test_a_precision_is_no_jump() -> None:
    """PyMC makes a scale of it by its sign, which is that of a positive variable."""
    with pm.Model() as built:
        tau = pm.Gamma("tau", 2.0, 1.0)
        pm.Normal("y", 0.0, tau=tau, observed=[0.3, 0.1])
    assert not may_jump(built)
    with pm.Model() as built:
        slope = pm.Normal("slope")
        pm.Normal("y", pt.sign(slope), observed=[0.3, 0.1])
    assert may_jump(built)


def test_number_of_data() -> None:
    with pm.Model() as built:
        x = pm.Normal("x")
        pm.Normal("y", x, observed=np.zeros((4, 2)))
        pm.Poisson("n", pt.exp(x), observed=pm.Data("counts", [1, 2, 3]))
    assert count_data(pma.compile_model(built)) == 11

"""Discrete variables: their supports, their places in the vector, their derivatives."""

from collections.abc import Callable

import jax
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

import pymc_anneal as pma

from tests.model.discrete_model import discrete_model

CUT = np.array([-1.0, 0.0, 1.0])


def binomial_of_random_size():
    return pm.Binomial("x", pm.Poisson("n", 4.0), 0.3)


def binomial_of_data():
    return pm.Binomial("x", pm.Data("n", [2, 5]), 0.3, shape=2)


# Variables named x, and the smallest and largest value of each of their entries.
SUPPORTS: list[tuple[Callable, tuple | None]] = [
    (lambda: pm.Bernoulli("x", 0.3, shape=2), ((0, 1), (0, 1))),
    (lambda: pm.Bernoulli("x", pm.Beta("p", 1, 2)), ((0, 1),)),
    (lambda: pm.Categorical("x", [0.2, 0.5, 0.3]), ((0, 2),)),
    (lambda: pm.Categorical("x", pm.Dirichlet("p", np.ones(4)), shape=2), ((0, 3), (0, 3))),
    (lambda: pm.OrderedLogistic("x", eta=pm.Normal("e"), cutpoints=CUT), ((0, 3),)),
    (lambda: pm.DiscreteUniform("x", -2, 5), ((-2, 5),)),
    (lambda: pm.DiscreteUniform("x", [0, 3], 7), ((0, 7), (3, 7))),
    (lambda: pm.DiscreteUniform("x", 0, pm.Poisson("top", 3.0)), None),
    (lambda: pm.Binomial("x", 6, 0.5), ((0, 6),)),
    (binomial_of_data, ((0, 2), (0, 5))),
    (binomial_of_random_size, None),
    (lambda: pm.BetaBinomial("x", 1.0, 2.0, n=3), ((0, 3),)),
    (lambda: pm.HyperGeometric("x", N=10, k=4, n=7), ((1, 4),)),
    (lambda: pm.Poisson("x", 3.0), None),
    (lambda: pm.NegativeBinomial("x", 3.0, 1.0), None),
    (lambda: pm.ZeroInflatedPoisson("x", 0.4, 3.0), None),
    (lambda: pm.Geometric("x", 0.4), None),
]


@pytest.mark.parametrize(("declare", "support"), SUPPORTS)
def test_supports(declare: Callable, support: tuple | None) -> None:
    with pm.Model() as model:
        declare()
    compiled = pma.compile_model(model)
    variable = next(v for v in compiled.variables if v.name == "x")
    assert variable.discrete
    assert variable.support == support
    draws = compiled.sample_prior(np.random.SeedSequence(1), 2000)[:, variable.start :]
    for column, (low, high) in zip(draws.T, support or (), strict=False):
        assert (column.min(), column.max()) == (low, high)  # all of it, and nothing outside


class TestVector:
    def test_places_of_the_variables(self) -> None:
        assert [v.name for v in discrete_model().discrete] == ["z", "n"]
        assert [(v.start, v.stop) for v in discrete_model().discrete] == [(1, 4), (5, 6)]

    def test_whole_numbers_stay_whole(self) -> None:
        x = discrete_model().sample_prior(np.random.SeedSequence(1), 50)
        assert x.dtype == np.float64
        values = discrete_model().constrain(x)
        for name in ("z", "n", "total"):
            assert values[name].dtype == np.int64
        np.testing.assert_array_equal(values["z"], x[:, 1:4])
        np.testing.assert_allclose(discrete_model().unconstrain(values), x, rtol=1e-12, atol=1e-12)

    def test_derivatives_are_of_the_continuous_ones(self) -> None:
        x = discrete_model().sample_prior(np.random.SeedSequence(2), 20)
        with jax.enable_x64(True):
            slope = jax.vmap(jax.grad(lambda x: discrete_model().log_terms(x).log_posterior))(x)
        assert (slope[:, [1, 2, 3, 5]] == 0).all()
        assert (slope[:, [0, 4]] != 0).all()

    def test_counts_with_a_fixed_sum_are_refused(self) -> None:
        for declare in (
            lambda: pm.Multinomial("x", 4, [0.2, 0.8]),
            lambda: pm.DirichletMultinomial("x", 4, [1.0, 2.0]),
        ):
            with pm.Model() as model:
                declare()
            with pytest.raises(NotImplementedError, match="'x' holds counts with a fixed sum"):
                pma.compile_model(model)


class Identity(Op):
    """Returns what it is given: an Op without a JAX form."""

    def make_node(self, x):
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.array(inputs[0])  # a copy: PyTensor writes into its results

    def pullback(self, inputs, outputs, cotangents):
        return [cotangents[0]]

    def grad(self, inputs, cotangents):
        return [cotangents[0]]


@pytest.mark.filterwarnings("ignore:Numba will use object mode:UserWarning")
def test_without_a_jax_form() -> None:
    def build(wrap: Callable) -> pm.Model:
        with pm.Model() as model:
            z = pm.Bernoulli("z", 0.4, shape=2)
            x = pm.Normal("x", 0, 1)
            pm.Normal("y", wrap(x) + z.sum(), 1.0, observed=0.7)
        return model

    first, second = pma.compile_model(build(Identity())), pma.compile_model(build(lambda x: x))
    assert first.notes
    draws = first.sample_prior(np.random.SeedSequence(3), 5)
    with jax.enable_x64(True):
        both = [
            jax.vmap(jax.value_and_grad(lambda x, c=c: c.log_terms(x).log_posterior))(draws)
            for c in (first, second)
        ]
    for left, right in zip(*both, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-9)

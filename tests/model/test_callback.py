"""Models with an Op that JAX cannot translate."""

import pickle

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from scipy import stats

import pymc_anneal as pma

from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.derivatives import FIRST_ORDER, NO_GRADIENT, SMOOTH
from tests.model.models import Y, evaluate


class Cube(Op):
    """The cube of a number, computed in Python: an Op without a JAX form."""

    def make_node(self, x):
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(inputs[0] ** 3)

    def pullback(self, inputs, outputs, cotangents):
        return [3 * inputs[0] ** 2 * cotangents[0]]

    def grad(self, inputs, cotangents):
        return [3 * inputs[0] ** 2 * cotangents[0]]


def cubic_model(cube: Callable) -> pm.Model:
    """A regression on cubes."""
    with pm.Model() as model:
        x = pm.Normal("x", 0.5, 0.4, shape=2)
        s = pm.HalfNormal("s", 1.0)
        pm.Deterministic("cubed", cube(x))
        pm.Normal("y", cube(x).sum(), 1.0 + s, observed=Y)
    return model


@pytest.fixture(scope="module")
def pair() -> tuple[CompiledModel, CompiledModel]:
    """The same model with and without an Op that JAX cannot translate."""
    first = pma.compile_model(cubic_model(Cube()))
    return first, pma.compile_model(cubic_model(lambda x: x**3))


@pytest.mark.filterwarnings("ignore:Numba will use object mode:UserWarning")
class TestCallback:
    """The model with the Op gives the values of the model without it."""

    def test_is_noted(self, pair) -> None:
        assert any("no JAX form" in note for note in pair[0].notes)
        assert not pair[1].notes

    def test_derivatives(self, pair) -> None:
        assert [c.derivatives.order for c in pair] == [FIRST_ORDER, SMOOTH]

    def test_values(self, pair) -> None:
        draws = pair[0].sample_prior(np.random.SeedSequence(14), 7)
        first, second = (evaluate(c, draws) for c in pair)
        np.testing.assert_allclose(first.log_prior, second.log_prior, rtol=1e-6)
        np.testing.assert_allclose(first.log_likelihood, second.log_likelihood, rtol=1e-6)

    def test_survives_a_pickle(self, pair) -> None:
        draws = pair[0].sample_prior(np.random.SeedSequence(14), 3)
        copy = pickle.loads(pickle.dumps(pair[0].log_terms))
        for x in draws:
            assert copy(jnp.asarray(x)) == pair[0].log_terms(jnp.asarray(x))

    def test_gradients(self, pair) -> None:
        draws = pair[0].sample_prior(np.random.SeedSequence(15), 7)
        with jax.enable_x64(True):
            first, second = (
                np.asarray(jax.jit(jax.vmap(jax.grad(lambda x, c=c: sum(c.log_terms(x)))))(draws))
                for c in pair
            )
        np.testing.assert_allclose(first, second, rtol=1e-5, atol=1e-6)

    def test_deterministics(self, pair) -> None:
        draws = pair[0].sample_prior(np.random.SeedSequence(16), 7)
        first, second = (c.constrain(draws) for c in pair)
        np.testing.assert_allclose(first["cubed"], second["cubed"], rtol=1e-10)

    @pytest.mark.slow
    def test_annealing(self, pair) -> None:
        runs = [
            pma.sample_ais(
                40,
                chains=2,
                steps=5,
                schedule="linear",
                transition=pma.HMC(0.2, 2, 1.0),
                random_seed=1,
                model=c,
                progressbar=False,
            )
            for c in pair
        ]
        first, second = (pma.log_evidence(r) for r in runs)
        assert first.log_evidence == pytest.approx(second.log_evidence, rel=1e-5)


class UnfoldedCube(Cube):
    """A cube that is not evaluated when the graph is simplified."""

    def do_constant_folding(self, fgraph, node):
        return False


@pytest.mark.filterwarnings("ignore:Numba will use object mode:UserWarning")
def test_without_free_variables() -> None:
    with pm.Model() as model:
        pm.Normal("y", UnfoldedCube()(np.array(1.2)), 1.0, observed=Y)
    compiled = pma.compile_model(model)
    assert any("no JAX form" in note for note in compiled.notes)
    terms = evaluate(compiled, np.empty((3, 0)))
    expected = stats.norm.logpdf(Y, 1.2**3).sum()
    np.testing.assert_allclose(terms.log_likelihood, np.full(3, expected), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:Numba will use object mode:UserWarning")
class TestPart:
    """Only the part of a model that holds the Op is called back."""

    @staticmethod
    def counted(op: type[Cube]) -> tuple[CompiledModel, list[int]]:
        calls = [0]

        class Counted(op):
            def perform(self, node, inputs, outputs):
                calls[0] += 1
                op.perform(self, node, inputs, outputs)

        with pm.Model() as model:
            x = pm.Normal("x")
            pm.Normal("y", Counted()(x), 1.0, observed=Y)
        return pma.compile_model(model), calls

    def test_the_prior_takes_no_calls(self) -> None:
        compiled, calls = self.counted(Cube)
        calls[0] = 0
        evaluate(compiled, np.zeros((7, 1)))
        assert calls[0] == 7

    def test_gradients_are_built_when_asked_for(self) -> None:
        compiled, _ = self.counted(CubeWithoutGradient)
        assert compiled.derivatives.order == NO_GRADIENT
        evaluate(compiled, np.zeros((2, 1)))
        with pytest.raises(NotImplementedError, match="not implemented for"):
            jax.grad(lambda x: sum(compiled.log_terms(x)))(jnp.zeros(1))


class CubeWithoutGradient(Op):
    """A cube that has no gradient."""

    make_node, perform = Cube.make_node, Cube.perform

"""Compiled models: log terms, layout of the vector, data and notes."""

import warnings

import jax
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.model.simulate import simulate, with_data
from pymc_anneal.posthoc.point_density import compile_point_density
from tests.model.models import Y, assert_agrees_with_pymc, evaluate, reference
from tests.problems import PROBLEMS

# Problems whose graphs are those of others, with other numbers.
TWINS = {"half_space", "informative_1e5", "initval", "nig_regression_50"}


@pytest.mark.parametrize(
    "problem",
    [pytest.param(p, marks=[pytest.mark.slow] * (p.name in TWINS), id=p.name) for p in PROBLEMS],
)
def test_problems_agree_with_pymc(problem) -> None:
    assert_agrees_with_pymc(problem.build())


def test_an_infinite_prior_density_is_no_density() -> None:
    """PyMC's density of an LKJ factor overflows where one scale is 1e13 times the other."""
    with pm.Model() as model:
        scales = pm.Exponential.dist(1.0, shape=2)
        pm.LKJCholeskyCov("factor", n=2, eta=2.0, sd_dist=scales)
        pm.Normal("y", observed=0.0)
    compiled = pma.compile_model(model)
    far = np.array([[31.7, 0.0, 0.0], [0.1, 0.0, 0.0]])
    assert reference(compiled)(far[0])[0] == np.inf
    log_prior = evaluate(compiled, far).log_prior
    assert log_prior[0] == -np.inf
    assert log_prior[1] == pytest.approx(reference(compiled)(far[1])[0], abs=1e-6)


class TestStructure:
    def test_layout_and_constrain(self) -> None:
        with pm.Model() as model:
            pm.Normal("a", shape=(2, 3))
            b = pm.HalfNormal("b")
            pm.Dirichlet("c", np.ones(4))
            pm.Deterministic("d", 2 * b)
            pm.Normal("empty", shape=0)
            pm.Normal("one", shape=(1,))
        compiled = assert_agrees_with_pymc(model)
        places = {v.name: (v.shape, v.start, v.stop) for v in compiled.variables}
        assert places == {
            "a": ((2, 3), 0, 6),
            "b": ((), 6, 7),
            "c": ((3,), 7, 10),
            "empty": ((0,), 10, 10),
            "one": ((1,), 10, 11),
        }
        assert compiled.ndim == 11
        draws = compiled.sample_prior(np.random.SeedSequence(10), 5)
        values = compiled.constrain(draws)
        shapes = {name: value.shape[1:] for name, value in values.items()}
        expected = {"a": (2, 3), "b": (), "c": (4,), "d": (), "empty": (0,), "one": (1,)}
        assert shapes == expected
        np.testing.assert_allclose(values["a"].reshape(5, 6), draws[:, :6])
        np.testing.assert_allclose(values["b"], np.exp(draws[:, 6]), rtol=1e-12)
        np.testing.assert_allclose(values["d"], 2 * values["b"], rtol=1e-12)
        np.testing.assert_allclose(values["c"].sum(axis=1), 1, rtol=1e-12)

    def test_no_free_variables(self) -> None:
        with pm.Model() as model:
            pm.Normal("y", 0.0, 1.0, observed=Y)
        compiled = pma.compile_model(model)
        assert compiled.ndim == 0
        terms = evaluate(compiled, np.empty((2, 0)))
        np.testing.assert_allclose(terms.log_likelihood, stats.norm.logpdf(Y).sum(), rtol=1e-6)
        np.testing.assert_array_equal(terms.log_prior, 0)

    def test_nothing_observed(self) -> None:
        with pm.Model() as model:
            pm.Normal("x")
        compiled = assert_agrees_with_pymc(model)
        assert (evaluate(compiled, np.ones((3, 1))).log_likelihood == 0).all()

    def test_several_observed_and_a_potential(self) -> None:
        with pm.Model() as model:
            x = pm.Gamma("x", 2.0, 1.0)
            pm.Poisson("counts", x, observed=[3, 4])
            pm.Exponential("waits", x, observed=[0.2, 1.9, 0.4])
            pm.Potential("more", -0.3 * x**2)
        compiled = assert_agrees_with_pymc(model)
        assert any("'more'" in note and "tempered" in note for note in compiled.notes)
        draws = compiled.sample_prior(np.random.SeedSequence(11), 3)
        pointwise = compiled.pointwise_log_likelihood(draws)
        assert {k: v.shape for k, v in pointwise.items()} == {"counts": (3, 2), "waits": (3, 3)}
        x_draws = np.exp(draws[:, 0])
        total = sum(v.sum(axis=1) for v in pointwise.values()) - 0.3 * x_draws**2
        np.testing.assert_allclose(evaluate(compiled, draws).log_likelihood, total, rtol=1e-6)

    def test_data_are_frozen(self) -> None:
        with pm.Model(coords={"row": range(3)}) as model:
            data = pm.Data("covariate", np.array([1.0, 2.0, 3.0]), dims="row")
            slope = pm.Normal("slope")
            pm.Normal("y", slope * data, 1.0, observed=Y, dims="row")
        compiled = assert_agrees_with_pymc(model)
        before = evaluate(compiled, np.ones((1, 1)))
        np.testing.assert_array_equal(compiled.constant_data()["covariate"], [1.0, 2.0, 3.0])
        np.testing.assert_array_equal(compiled.observed_data()["y"], Y)
        with model:
            pm.set_data({"covariate": np.array([5.0, 5.0, 5.0])})
        assert evaluate(compiled, np.ones((1, 1))) == before
        after = evaluate(pma.compile_model(model), np.ones((1, 1)))
        assert after.log_likelihood != before.log_likelihood

    def test_all_parts_keep_the_data(self) -> None:
        """Whether it is compiled at once or later, each part uses the data at compilation."""

        def build(centre: float) -> pm.Model:
            with pm.Model(coords={"row": range(3)}) as model:
                mu = pm.Data("mu", centre)
                u = pm.Uniform("u", mu, mu + 1.0)
                x = pm.Normal("x", mu * u, 1.0)
                pm.Deterministic("distance", x - mu)
                pm.Normal("y", x * mu, 1.0, observed=pm.Data("seen", Y), dims="row")
            return model

        def results(compiled: pma.CompiledModel) -> list[np.ndarray]:
            draws = compiled.sample_prior(np.random.SeedSequence(12), 20)
            values = compiled.constrain(draws)
            return [
                draws,
                *evaluate(compiled, draws),
                *values.values(),
                compiled.unconstrain(values),
                compiled.pointwise_log_likelihood(draws)["y"],
                jax.vmap(compile_point_density(compiled))(draws),
                simulate(compiled, np.random.SeedSequence(13), 5).data[0],
                jax.vmap(with_data(compiled, [2 * Y]).log_terms)(draws),
                *compiled.observed_data().values(),
                *compiled.constant_data().values(),
            ]

        expected = results(pma.compile_model(build(0.5)))
        model = build(0.5)
        compiled = pma.compile_model(model)
        with model:
            pm.set_data({"mu": 3.0, "seen": Y + 1.0})
        for found, value in zip(results(compiled), expected, strict=True):
            np.testing.assert_array_equal(found, value)
        anew = pma.compile_model(model).sample_prior(np.random.SeedSequence(12), 20)
        assert (anew[:, 1] != expected[0][:, 1]).all()

    @pytest.mark.parametrize("start", [np.float64(1.0), np.array([1.0, 2.0]), pt.ones(())])
    def test_a_differential_equation(self, start) -> None:
        with pm.Model() as model:
            rate = pm.HalfNormal("rate", 1.0)
            path = pytensor.scan(
                lambda y, r: y - 0.1 * r * y,
                outputs_info=[start],
                non_sequences=[rate],
                n_steps=10,
                return_updates=False,
            )
            pm.Deterministic("path", path)
            pm.Normal("y", path[-1].sum(), 0.1, observed=0.4)
        compiled = assert_agrees_with_pymc(model)
        assert compiled.notes == ()
        draws = compiled.sample_prior(np.random.SeedSequence(14), 3)
        values = compiled.constrain(draws)
        decay = (1 - 0.1 * values["rate"]) ** 10
        np.testing.assert_allclose(values["path"][:, -1].reshape(3, -1)[:, 0], decay)
        gradient = jax.vmap(jax.grad(lambda x: compiled.log_terms(x).log_likelihood))(draws)
        assert np.isfinite(gradient).all()

    def test_missing_values(self) -> None:
        with pm.Model() as model, warnings.catch_warnings():
            warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
            x = pm.Normal("x")
            pm.Normal("y", x, 1.5, observed=np.ma.masked_invalid([0.3, np.nan, 1.1]))
        compiled = assert_agrees_with_pymc(model)
        assert compiled.ndim == 2
        assert {v.name for v in compiled.variables} == {"x", "y_unobserved"}

    def test_likelihood_of_zero(self) -> None:
        with pm.Model() as model:
            x = pm.Normal("x")
            pm.Uniform("y", 0.0, pt.exp(x), observed=[0.5])
        terms = evaluate(pma.compile_model(model), np.array([[-2.0], [1.0]]))
        assert terms.log_likelihood[0] == -np.inf
        assert terms.log_likelihood[1] == pytest.approx(-1.0, rel=1e-6)

    def test_nested_and_dims(self) -> None:
        with pm.Model(coords={"school": list("ABC")}) as model:
            mu = pm.Normal("mu")
            with pm.Model(name="part"):
                theta = pm.Normal("theta", mu, 1.0, dims="school")
            pm.Normal("y", theta, 1.0, observed=Y, dims="school")
        compiled = assert_agrees_with_pymc(model)
        coords, dims = compiled.coords_and_dims()
        assert list(coords["school"]) == list("ABC")
        assert list(dims["y"]) == ["school"]
        assert {v.name for v in compiled.variables} == {"mu", "part::theta"}

    def test_explains_a_nan(self) -> None:
        with pm.Model() as model:
            x = pm.Normal("x")
            pm.Normal("fine", x, 1.0, observed=[0.0])
            pm.Potential("culprit", pt.sqrt(x))
        message = pma.compile_model(model).explain_nan(np.array([-2.25]))
        assert "NaN in the term(s) ['culprit']" in message
        assert "x = -2.25" in message

    def test_explains_a_parameter_that_is_none(self) -> None:
        with pm.Model() as model:
            x = pm.Normal("x")
            pm.Poisson("count", pt.sqrt(x), observed=[1])
        message = pma.compile_model(model).explain_nan(np.array([-2.25]))
        assert "NaN in the term(s) ['count']" in message


def test_no_model_on_the_stack() -> None:
    with pytest.raises(TypeError, match="[Nn]o model on context stack"):
        pma.compile_model()


@pytest.mark.parametrize("wrong", ["a model", 3, {"x": 1}])
def test_not_a_model(wrong: object) -> None:
    with pytest.raises(TypeError, match=f"`model` is a {type(wrong).__name__}.*Bambi"):
        pma.compile_model(wrong)


def test_model_on_the_stack() -> None:
    with pm.Model() as model:
        pm.Normal("x")
        assert pma.compile_model().model is model

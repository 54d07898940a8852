"""Branches: the terms of the sums of densities in a model."""

import cloudpickle
import jax
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.pipeline.model_target import ModelTarget

# PyTensor takes the logarithm of a constant such as 2.0 in single precision.
RTOL = 1e-8


def two_terms(combine) -> pma.CompiledModel:
    """A normal prior, and a potential with a term of weight 0.3 at -1 and one of 0.7 at 2."""
    with pm.Model() as model:
        x = pm.Normal("x", 0.0, 2.0)
        first = np.log(0.3) + pm.logp(pm.Normal.dist(-1.0, 0.1), x)
        second = np.log(0.7) + pm.logp(pm.Normal.dist(2.0, 0.5), x)
        pm.Potential("data", combine(first, second))
    return pma.compile_model(model)


COMBINED = {
    "logaddexp": pm.math.logaddexp,
    "logsumexp": lambda a, b: pm.math.logsumexp(pt.stack([a, b])),
    "log of a sum": lambda a, b: pt.log(pt.exp(a) + pt.exp(b)),
    "log of a sum over an axis": lambda a, b: pt.log(pt.sum(pt.exp(pt.stack([a, b])), axis=0)),
}


@pytest.mark.parametrize("combine", COMBINED.values(), ids=COMBINED)
def test_each_term_is_a_branch(combine) -> None:
    branches = two_terms(combine).branches
    assert branches.terms == (2,)
    x = np.array([0.4])
    expected = [
        np.log(0.3) + stats.norm.logpdf(0.4, -1, 0.1),
        np.log(0.7) + stats.norm.logpdf(0.4, 2, 0.5),
    ]
    with jax.enable_x64(True):
        found = [float(branches.log_density(x, np.array([k]))) for k in (0, 1)]
    np.testing.assert_allclose(found, stats.norm.logpdf(0.4, 0, 2) + expected, rtol=RTOL)


def test_the_branches_of_a_mixture_of_data() -> None:
    y = np.array([-1.0, 0.5, 2.0])
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 3.0, shape=2)
        pm.NormalMixture("y", w=[0.2, 0.8], mu=mu, sigma=0.5, observed=y)
    branches = pma.compile_model(model).branches
    x = np.array([0.3, 1.1])
    with jax.enable_x64(True):
        found = [float(branches.log_density(x, np.array([k]))) for k in (0, 1)]
    prior = stats.norm.logpdf(x, 0, 3).sum()
    each = np.log([0.2, 0.8]) * 3 + stats.norm.logpdf(y[:, None], x, 0.5).sum(axis=0)
    np.testing.assert_allclose(found, prior + each, rtol=RTOL)


def test_a_model_without_sums_has_none() -> None:
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        pm.Binomial("y", 10, p, observed=3)
    compiled = pma.compile_model(model)
    assert compiled.branches.terms == ()
    assert not compiled.fallbacks


def test_data_are_those_of_the_compilation() -> None:
    with pm.Model() as model:
        centre = pm.Data("centre", 2.0)
        x = pm.Normal("x", 0.0, 2.0)
        pm.Potential("data", pt.logaddexp(pm.logp(pm.Normal.dist(centre, 1.0), x), 0.0))
    compiled = pma.compile_model(model)
    with model:
        pm.set_data({"centre": 50.0})
    with jax.enable_x64(True):
        found = float(compiled.branches.log_density(np.array([2.0]), np.array([0])))
    assert found == pytest.approx(stats.norm.logpdf(2, 0, 2) + stats.norm.logpdf(0), rel=RTOL)


class TestChoices:
    def branches(self, count: int):
        with pm.Model() as model:
            x = pm.Normal("x", shape=count)
            for i in range(count):
                pm.Potential(f"p{i}", pt.logaddexp(pt.logaddexp(x[i], 0.0), -(x[i] ** 2)))
        return pma.compile_model(model).branches

    def test_all_of_a_few(self) -> None:
        branches = self.branches(1)
        assert np.prod(branches.terms) <= 16
        chosen = branches.choices(np.random.default_rng(0), 16)
        assert len(np.unique(chosen, axis=0)) == len(chosen) == np.prod(branches.terms)

    def test_some_of_many(self) -> None:
        branches = self.branches(5)
        chosen = branches.choices(np.random.default_rng(0), 16)
        assert chosen.shape == (16, len(branches.terms))
        assert (chosen < branches.terms).all()

    def test_sums_of_different_lengths(self) -> None:
        """Every term of each sum is chosen sooner or later."""
        with pm.Model() as model:
            pm.NormalMixture("y", [0.5, 0.5], pm.Normal("two", shape=2), 1.0, observed=[0.3])
            pm.NormalMixture("z", np.full(5, 0.2), pm.Normal("five", shape=5), 1.0, observed=[0.3])
        branches = pma.compile_model(model).branches
        assert sorted(branches.terms) == [2, 5]
        chosen = branches.choices(np.random.default_rng(0), 9)
        more = np.concatenate([branches.choices(np.random.default_rng(s), 9) for s in range(20)])
        assert len(chosen) == 9
        np.testing.assert_array_equal(more.max(axis=0) + 1, branches.terms)

    def test_too_many_sums(self) -> None:
        assert self.branches(20).terms == ()


def test_too_many_sums_are_noted() -> None:
    with pm.Model() as model:
        x = pm.Normal("x", shape=40)
        for i in range(40):
            pm.Potential(f"p{i}", pt.logaddexp(x[i], 0.0))
    compiled = pma.compile_model(model)
    assert compiled.branches.terms == ()
    assert "there are more than 32 sums" in ModelTarget(compiled).attrs["notes"]


def test_branches_that_jax_does_not_evaluate_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise NotImplementedError("no form\nof this Op")

    compiled = two_terms(pm.math.logaddexp)
    monkeypatch.setattr("pymc_anneal.model.branches.jaxify", refuse)
    assert compiled.branches.terms == ()
    (note,) = compiled.fallbacks
    assert note.endswith("because JAX does not evaluate them (NotImplementedError: no form).")


def test_compiled_branches_are_pickled_without_their_programs() -> None:
    branches = two_terms(pm.math.logaddexp).branches
    x, choice = np.array([[0.4]]), np.array([[1]])
    with jax.enable_x64(True):
        value, _ = branches.value_and_gradient(x, choice)
        again = cloudpickle.loads(cloudpickle.dumps(branches))
        np.testing.assert_allclose(again.value_and_gradient(x, choice)[0], value)

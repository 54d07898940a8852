"""The map from the unit cube to the prior: against SciPy, against the density, and wrong twins."""

import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.nested.prior_transform import PriorTransform, check_density

# Points of the cube that reach into the tails.
U = np.array([1e-9, 1e-3, 0.2, 0.5, 0.8, 0.999, 1 - 1e-9])


def transform_of(model: pm.Model) -> PriorTransform:
    return PriorTransform(pma.compile_model(model))


def one_variable(build):
    """Return a model of one variable and no data."""
    with pm.Model() as model:
        build()
    return model


UNIVARIATE = {
    "normal": (lambda: pm.Normal("x", 1.5, 2.0), lambda u: stats.norm.ppf(u, 1.5, 2)),
    "uniform": (
        lambda: pm.Uniform("x", -1, 3),
        lambda u: np.log(stats.uniform.ppf(u, 0, 1) / (1 - u)),
    ),
    "half_normal": (
        lambda: pm.HalfNormal("x", 2.0),
        lambda u: np.log(stats.halfnorm.ppf(u, scale=2)),
    ),
    "half_cauchy": (
        lambda: pm.HalfCauchy("x", 5.0),
        lambda u: np.log(stats.halfcauchy.ppf(u, scale=5)),
    ),
    "gamma": (
        lambda: pm.Gamma("x", 2.0, 3.0),
        lambda u: np.log(stats.gamma.ppf(u, 2, scale=1 / 3)),
    ),
    "student_t": (
        lambda: pm.StudentT("x", nu=4.0, mu=1.0, sigma=0.5),
        lambda u: stats.t.ppf(u, 4, 1, 0.5),
    ),
    "beta": (lambda: pm.Beta("x", 2.0, 3.0), lambda u: logit(stats.beta.ppf(u, 2, 3))),
    "exponential": (
        lambda: pm.Exponential("x", 3.0),
        lambda u: np.log(stats.expon.ppf(u, scale=1 / 3)),
    ),
}


def logit(p):
    return np.log(p) - np.log1p(-p)


@pytest.mark.parametrize(("build", "quantile"), UNIVARIATE.values(), ids=UNIVARIATE)
def test_univariate_priors(build, quantile) -> None:
    x = transform_of(one_variable(build))(U[:, None])[:, 0]
    np.testing.assert_allclose(x, quantile(U), rtol=1e-6, atol=1e-6)


def hierarchical() -> pm.Model:
    """Priors that depend on other variables, of several shapes and transforms."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfCauchy("tau", 5)
        x = pm.Normal("x", mu, tau, shape=(2, 3))
        p = pm.Dirichlet("p", np.array([0.5, 2.0, 3.0, 1.0]))
        pm.MvNormal("m", x[0], tau**2 * np.array([[2, 0.5, 0], [0.5, 1, 0.3], [0, 0.3, 1]]))
        pm.Uniform("u", mu, mu + p[0])
    return model


def test_conditional_and_multivariate_priors() -> None:
    """The density is checked when the map is built; the draws are those of the model."""
    compiled = pma.compile_model(hierarchical())
    u = np.random.default_rng(1).uniform(size=(4000, compiled.ndim))
    mapped = compiled.constrain(PriorTransform(compiled)(u))
    drawn = compiled.constrain(compiled.sample_prior(np.random.SeedSequence(2), 4000))
    for name in drawn:
        first, second = (v[name].reshape(4000, -1) for v in (mapped, drawn))
        for a, b in zip(first.T, second.T, strict=True):
            assert stats.ks_2samp(a, b).pvalue > 1e-4, name


@pytest.mark.parametrize("scale", [1.01, 0.9])
def test_a_wrong_scale_is_found(scale: float) -> None:
    """Planted fault: one coordinate is stretched."""
    compiled = pma.compile_model(hierarchical())
    right = PriorTransform(compiled)
    stretch = np.ones(compiled.ndim)
    stretch[2] = scale
    check_density(right, compiled)
    with pytest.raises(ValueError, match="does not have the density of the prior"):
        check_density(lambda u: right(u) * stretch, compiled)


def test_a_wrong_order_is_found() -> None:
    """Planted fault: two coordinates of different scales are exchanged."""
    with pm.Model() as model:
        pm.Normal("a", 0, 1)
        pm.StudentT("b", nu=3, mu=0, sigma=7)
    compiled = pma.compile_model(model)
    right = PriorTransform(compiled)
    with pytest.raises(ValueError, match="does not have the density of the prior"):
        check_density(lambda u: right(u)[:, ::-1], compiled)


def test_data_are_those_of_compilation() -> None:
    with pm.Model() as model:
        scale = pm.Data("scale", 2.0)
        pm.Normal("x", 0, scale)
    compiled = pma.compile_model(model)
    with model:
        pm.set_data({"scale": 5.0})
    assert PriorTransform(compiled)(np.array([[0.975]])) == pytest.approx(3.92, abs=0.01)


def test_a_variable_without_an_inverse() -> None:
    model = one_variable(lambda: pm.VonMises("angle", 0, 2))
    with pytest.raises(NotImplementedError, match="'angle' has no inverse .*'blackjax'"):
        transform_of(model)


def test_an_ordered_variable() -> None:
    ordered = pm.distributions.transforms.ordered
    model = one_variable(
        lambda: pm.Normal("x", 0, 1, shape=3, transform=ordered, initval=[0, 1, 2])
    )
    with pytest.raises(NotImplementedError, match="a part of the support"):
        transform_of(model)

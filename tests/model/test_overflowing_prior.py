"""Priors whose draws overflow in floating point: scales of InverseGamma(1e-3, 1e-3)."""

import jax
import numpy as np
import pymc as pm
import pytest

from scipy import integrate, stats

import pymc_anneal as pma

from pymc_anneal.model.integrate_out import integrate_out
from pymc_anneal.model.prior_draws import NotFiniteDrawError

Y = np.array([-1.0, 0.2, 0.5, 1.5])


def by_precision() -> pm.Model:
    with pm.Model() as model:
        tau = pm.Gamma("tau", 1e-3, 1e-3)
        pm.Normal("y", pm.Normal("b", 0, tau=tau, shape=len(Y)), 1, observed=Y)
    return model


def by_variance() -> pm.Model:
    with pm.Model() as model:
        variance = pm.InverseGamma("variance", 1e-3, 1e-3)
        b = pm.StudentT("b", 4, mu=0, sigma=pm.math.sqrt(variance), shape=len(Y))
        pm.Normal("y", b, 1, observed=Y)
    return model


@pytest.mark.parametrize(
    ("build", "noise"), [(by_precision, stats.norm), (by_variance, stats.t(4))]
)
def test_half_of_the_scales_overflow_and_the_density_is_that_of_the_model(build, noise) -> None:
    compiled = pma.compile_model(build())
    draws = compiled.sample_prior(np.random.SeedSequence(1), 400)
    assert compiled.log_prior_mass == 0
    assert np.isfinite(draws).all()
    assert np.mean(np.abs(draws[:, 0]) > 720) > 0.3
    terms = jax.jit(jax.vmap(compiled.log_terms))(draws)
    with np.errstate(over="ignore"):
        scale = stats.loggamma(1e-3, scale=1).logpdf(
            (draws[:, 0] if build is by_precision else -draws[:, 0]) + np.log(1e-3)
        )
    np.testing.assert_allclose(terms.log_prior, scale + noise.logpdf(draws[:, 1:]).sum(axis=1))
    assert not np.isnan(terms.log_likelihood).any()
    assert any("overflow" in note for note in compiled.notes)


def test_the_values_of_the_model_are_as_before() -> None:
    compiled = pma.compile_model(by_precision())
    values = compiled.constrain(np.array([[np.log(4.0), 1.0, 2.0, -1.0, 0.0]]))
    np.testing.assert_allclose(values["b"], [[0.5, 1.0, -0.5, 0.0]])


def test_what_cannot_be_non_centred_is_refused_by_name() -> None:
    with pm.Model() as model:
        tau = pm.Gamma("tau", 1e-3, 1e-3)
        pm.Normal("y", pm.Exponential("rate", tau), 1, observed=1.0)
    with pytest.raises(NotFiniteDrawError, match="variable 'rate'"):
        pma.compile_model(model)


def test_a_density_that_is_not_a_number_where_a_variable_overflows() -> None:
    with pm.Model() as model:
        rate = pm.LogNormal("rate", 0, 100)
        pm.Normal("y", rate - 2 * rate, 1, observed=1.0)
    message = pma.compile_model(model).explain_nan(np.array([800.0]))
    assert "['rate'] overflow: some prior has mass beyond 1e308." in message
    assert "nan='reject'" in message


def regression(a: float, coefficients: int = 4) -> tuple[pm.Model, float]:
    """Return a regression whose predictor may be inf - inf, and its log evidence."""
    rng = np.random.default_rng(2)
    x = np.column_stack([np.ones(30), rng.normal(size=(30, coefficients - 1))])
    y = x @ rng.normal(size=coefficients) + 0.5 * rng.normal(size=30)
    with pm.Model() as model:
        variance = pm.InverseGamma("variance", a, a)
        b = pm.Normal("b", 0, 100 * pm.math.sqrt(variance), shape=coefficients)
        pm.Normal("y", x @ b, pm.math.sqrt(variance), observed=y)
    law = stats.multivariate_t(np.zeros(30), np.eye(30) + 1e4 * x @ x.T, df=2 * a)
    return model, float(law.logpdf(y))


def test_the_likelihood_is_zero_where_a_predictor_is_not_a_number() -> None:
    compiled = pma.compile_model(regression(0.01)[0])
    (place,) = (v.start for v in compiled.variables if v.name == "variance")
    x = np.ones((3, compiled.ndim)) * [1, -1, 1, -1, 1]
    x[:, place] = 0.0, 600.0, 720.0  # 1, 1e260 and infinity
    terms = jax.jit(jax.vmap(compiled.log_terms))(x)
    assert np.isfinite(terms.log_prior).all()
    assert np.isfinite(terms.log_likelihood[:2]).all()
    assert terms.log_likelihood[2] == -np.inf
    assert any("counts as zero" in note for note in compiled.notes)


def test_other_likelihoods_that_are_not_numbers_stay_so() -> None:
    with pm.Model() as model:
        variance = pm.InverseGamma("variance", 0.01, 0.01)
        x = pm.Normal("x")
        pm.Normal("y", pm.math.log(x), pm.math.sqrt(variance), observed=0.5)
    log_terms = jax.jit(jax.vmap(pma.compile_model(model).log_terms))
    terms = log_terms(np.array([[1.0, 1.0], [1.0, -1.0]]))
    assert np.isfinite(terms.log_likelihood[0])
    assert np.isnan(terms.log_likelihood[1])


def test_ordinary_priors_are_not_screened() -> None:
    compiled = pma.compile_model(regression(1.0)[0])
    assert not compiled.overflows
    assert not any("counts as zero" in note for note in compiled.notes)


@pytest.mark.quick_cases("0.001")
@pytest.mark.parametrize("a", [1e-3, 1.0])
def test_coefficients_are_integrated_out_in_either_coordinates(a) -> None:
    compiled = pma.compile_model(regression(a, coefficients=8)[0])
    reduced = integrate_out(compiled)
    assert [v.name for v in reduced.taken_out] == ["b"]
    # Of the draws with 1e-3, a third are of variances beyond 1e308.
    draws = compiled.sample_prior(np.random.SeedSequence(1), 400)
    places = [v.start for v in compiled.variables if v.name == "variance"]
    terms = jax.jit(jax.vmap(reduced.log_terms))(draws[:, places])
    assert not np.isnan(terms.log_likelihood).any()


@pytest.mark.slow
@pytest.mark.parametrize("coefficients", [4, 12])
@pytest.mark.parametrize("a", [1e-3, 1e-2])
def test_the_evidence_of_a_regression_under_a_vague_variance(a, coefficients) -> None:
    model, exact = regression(a, coefficients)
    found = [
        pma.log_evidence(pma.sample_ais(model=model, random_seed=seed, progressbar=False))
        for seed in range(3)
    ]
    assert all(one.verdict.trusted for one in found)
    assert all(one.mcse < 0.03 for one in found)
    score = [(one.log_evidence - exact) / one.mcse for one in found]
    assert np.abs(score).max() < 4


@pytest.mark.slow
def test_the_evidence_is_that_of_quadrature() -> None:
    def density(log_tau: float) -> float:
        prior = stats.loggamma(1e-3).logpdf(log_tau + np.log(1e-3))
        sd = np.sqrt(1 + np.exp(-log_tau))
        return float(np.exp(prior + stats.norm(0, sd).logpdf(Y).sum()))

    exact = np.log(integrate.quad(density, -100, 12, limit=500)[0])
    found = pma.log_evidence(pma.sample_ais(model=by_precision(), random_seed=1, progressbar=False))
    assert found.verdict.status == "trust"
    assert abs(found.log_evidence - exact) < 4 * found.mcse
    assert found.mcse < 0.03  # with the mass of the draws that overflow left out: 0.7 off

"""Priors whose draws overflow in floating point: scales of InverseGamma(1e-3, 1e-3)."""

import jax
import numpy as np
import pymc as pm
import pytest

from scipy import integrate, stats

import pymc_anneal as pma

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
    terms = jax.vmap(compiled.log_terms)(draws)
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

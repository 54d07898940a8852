"""Draws of variables with small shape parameters follow exact laws and never underflow."""

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytest

from scipy import special, stats

import pymc_anneal as pma

from pymc_anneal.model.family import ModelFamily
from pymc_anneal.model.unconstrained_draws import LogStickBreakingRV
from tests.model.models import evaluate

SHAPES = [1e-3, 0.03, 0.7, 20.0]
N = 20_000


def draw(declare: Callable[[], object], n: int = N) -> tuple[pma.CompiledModel, np.ndarray]:
    with pm.Model() as model:
        declare()
    compiled = pma.compile_model(model)
    draws = compiled.sample_prior(np.random.SeedSequence(31), n)
    assert np.isfinite(draws).all()
    return compiled, draws


def assert_moments(draws: np.ndarray, mean: float, variance: float) -> None:
    """The mean and the variance are the exact ones, within 5 standard errors."""
    centred = draws - mean
    assert abs(centred.mean()) < 5 * np.sqrt(variance / len(draws))
    assert abs((centred**2).mean() - variance) < 5 * (centred**2).std() / np.sqrt(len(draws))


def assert_density(compiled: pma.CompiledModel, draws: np.ndarray, exact: np.ndarray) -> None:
    """The compiled log density is the exact one, far beyond where the values underflow."""
    log_prior = evaluate(compiled, draws[:500]).log_prior
    np.testing.assert_allclose(log_prior, exact[:500], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("a", SHAPES)
@pytest.mark.parametrize("family", ["gamma", "inverse_gamma", "chi_squared"])
def test_gamma_and_its_kin(family: str, a: float) -> None:
    rate, sign = {"gamma": (3.0, 1), "inverse_gamma": (3.0, -1), "chi_squared": (0.5, 1)}[family]
    declare = {
        "gamma": lambda: pm.Gamma("x", a, rate),
        "inverse_gamma": lambda: pm.InverseGamma("x", a, rate),
        "chi_squared": lambda: pm.ChiSquared("x", 2 * a),
    }[family]
    compiled, draws = draw(declare)
    log_x = sign * draws[:, 0]
    assert_moments(log_x, special.digamma(a) - np.log(rate), special.polygamma(1, a))
    scaled = log_x + np.log(rate)
    law = np.where(scaled < -30, a * scaled - special.gammaln(a + 1), 0.0)
    law = np.where(scaled < -30, np.exp(law), special.gammainc(a, np.exp(np.clip(scaled, -30, 5))))
    assert stats.kstest(law, "uniform").pvalue > 1e-6
    assert_density(compiled, draws, a * scaled - np.exp(scaled) - special.gammaln(a))


@pytest.mark.parametrize("sigma", [0.5, 400.0])
def test_log_normal(sigma: float) -> None:
    compiled, draws = draw(lambda: pm.LogNormal("x", 2.0, sigma))
    assert_moments(draws[:, 0], 2.0, sigma**2)
    assert_density(compiled, draws, stats.norm.logpdf(draws[:, 0], 2.0, sigma))


def test_a_log_normal_variable_of_heavy_tailed_scale_can_be_annealed() -> None:
    """A half-Cauchy scale is above 745 in a sixtieth of the draws."""
    with pm.Model() as model:
        scale = pm.HalfCauchy("scale", 20.0)
        a = pm.LogNormal("a", 0.0, scale, shape=4)
        pm.Normal("y", pm.math.log(1 + a), 1.0, observed=np.full(4, 0.7))
    draws = pma.compile_model(model).sample_prior(np.random.SeedSequence(5), 2000)
    assert np.isfinite(draws).all()
    assert np.abs(draws).max() > 745  # exp is zero or infinite beyond


@pytest.mark.parametrize("a", SHAPES)
@pytest.mark.parametrize("b", [0.01, 2.0])
def test_beta(a: float, b: float) -> None:
    compiled, draws = draw(lambda: pm.Beta("x", a, b))
    logit = draws[:, 0]
    mean = special.digamma(a) - special.digamma(b)
    assert_moments(logit, mean, special.polygamma(1, a) + special.polygamma(1, b))
    log_x, log_rest = -np.logaddexp(0, -logit), -np.logaddexp(0, logit)
    assert_density(compiled, draws, a * log_x + b * log_rest - special.betaln(a, b))


@pytest.mark.parametrize("a", SHAPES)
def test_dirichlet(a: float) -> None:
    alpha = a * np.array([1.0, 2.0, 0.5])
    compiled, draws = draw(lambda: pm.Dirichlet("x", alpha))
    log_g = np.column_stack([draws, -draws.sum(axis=1)])  # centred
    for i, j in [(0, 1), (1, 2), (2, 0)]:  # ratios of gamma variables
        mean = special.digamma(alpha[i]) - special.digamma(alpha[j])
        variance = special.polygamma(1, alpha[i]) + special.polygamma(1, alpha[j])
        assert_moments(log_g[:, i] - log_g[:, j], mean, variance)
    log_x = log_g - special.logsumexp(log_g, axis=1, keepdims=True)
    constant = special.gammaln(alpha.sum()) - special.gammaln(alpha).sum() + np.log(3)
    assert_density(compiled, draws, log_x @ alpha + constant)


@pytest.mark.parametrize("alpha", [0.02, 1.5])
def test_stick_breaking(alpha: float) -> None:
    _, draws = draw(lambda: pm.StickBreakingWeights("x", alpha, K=3))
    log_x = np.column_stack([draws, -draws.sum(axis=1)])
    log_x -= special.logsumexp(log_x, axis=1, keepdims=True)
    # The last weight is a product of three variables U^(1 / alpha).
    assert_moments(log_x[:, 3], -3 / alpha, 3 / alpha**2)
    log_rest = special.logsumexp(log_x[:, 1:], axis=1)  # beyond the first: Beta(alpha, 1)
    assert stats.kstest(np.exp(alpha * log_rest), "uniform").pvalue > 1e-6


def test_the_shape_of_stick_breaking_draws() -> None:
    alpha = np.array([0.5, 2.0])
    rng = np.random.default_rng(1)
    weights = np.exp(LogStickBreakingRV.rng_fn(rng, alpha, np.array(4), None))
    assert weights.shape == (2, 5)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)


@pytest.mark.parametrize("a", [0.001, 0.01, 0.3])
def test_a_count_is_as_likely_in_each_category(a: float) -> None:
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.full(4, a))
        counts = pm.Data("counts", np.array([2, 0, 0, 0]))
        pm.Potential("two of one", (counts * pm.math.log(p)).sum())
    family = ModelFamily(pma.compile_model(model), ("counts",))
    exact = a * (a + 1) / (4 * a * (4 * a + 1))
    for counts in 2 * np.eye(4, dtype=int):
        compiled = family.member({"counts": counts})
        draws = compiled.sample_prior(np.random.SeedSequence(32), N)
        likelihood = np.exp(evaluate(compiled, draws).log_likelihood)
        assert abs(likelihood.mean() - exact) < 5 * likelihood.std() / np.sqrt(N)


def test_parents_and_children_are_drawn_together() -> None:
    with pm.Model() as model:
        shape = pm.Gamma("shape", 3.0, 100.0)
        rate = pm.Gamma("rate", shape, 2.0, shape=2)
        pm.Normal("z", pm.math.log(rate).sum(), 0.01)
    compiled = pma.compile_model(model)
    draws = compiled.sample_prior(np.random.SeedSequence(33), N)
    np.testing.assert_allclose(draws[:, 3], draws[:, 1:3].sum(axis=1), atol=0.06)
    law = draws[:, 1:3] + np.log(2.0)
    a = np.exp(draws[:, :1])
    expected = special.digamma(a), special.polygamma(1, a)
    standard = (law - expected[0]) / np.sqrt(expected[1])
    assert_moments(standard.ravel(), 0.0, 1.0)


def test_the_model_is_left_as_it_was() -> None:
    with pm.Model() as model:
        a = pm.Gamma("a", 0.5, 1.0)
        b = pm.Beta("b", a, 1.0)
    pma.compile_model(model)
    assert b.owner.inputs[2] is a
    assert model.free_RVs == [a, b]


def test_a_negative_shape() -> None:
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Gamma("g", x, 1.0)
    with pytest.raises(
        ValueError, match="variable 'g' cannot be drawn .* These are its parameters for 'x' = "
    ):
        pma.compile_model(model)

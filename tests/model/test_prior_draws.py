"""Prior draws follow the prior density, restricted where a transform restricts it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pymc as pm
import pytest

from pymc.distributions import transforms
from scipy import stats

import pymc_anneal as pma

from tests.model.models import PRIORS, assert_agrees_with_pymc, build, evaluate

LINE = pm.__version__.split(".")[0]

# Priors whose density does not integrate to one in PyMC 5.
UNNORMALISED = {"lkj_cholesky": "PyMC 5 multiplies by the normaliser instead of dividing"}


CONSTANT_ETA = pytest.mark.skipif(LINE == "5", reason="PyMC 5 has no density for a random eta")


def narrower_normal(draws: np.ndarray) -> np.ndarray:
    """Log density at the draws of a narrower normal ``q``, so that q/p is bounded."""
    covariance = 0.35 * np.atleast_2d(np.cov(draws.T))
    spread = stats.iqr(draws, axis=0, scale="normal")
    shrink = np.minimum(spread / np.sqrt(np.diag(covariance) / 0.35), 1)
    covariance *= np.outer(shrink, shrink)
    return stats.multivariate_normal.logpdf(draws, np.median(draws, axis=0), covariance)


@pytest.mark.quick_cases(
    "normal",
    "half_cauchy",
    "log_normal",
    "student_t",
    "inverse_gamma",
    "beta",
    "uniform",
    "truncated",
    "half_student_t",
    "mv_student_t",
    "dirichlet",
    "lkj_cholesky",
    "ordered",
    "observed_parent",
    "zero_sum",
    "random_walk",
    "gaussian_process",
    "matrix",
    "mixture",
    "pareto",
)
@pytest.mark.parametrize("name", PRIORS)
def test_prior_draws_follow_the_prior_density(name: str) -> None:
    """``E_p[q/p] = 1`` for a density ``q`` fitted to the draws of ``p``, within 5 SE.

    The density is that of PyMC.
    """
    compiled = assert_agrees_with_pymc(build(name))
    if name in UNNORMALISED and LINE == "5":
        pytest.skip(f"not normalised: {UNNORMALISED[name]}")
    draws = compiled.sample_prior(np.random.SeedSequence(2), 5000)
    if name == "von_mises":  # periodic on the line, normalised on one period
        log_q = np.full(len(draws), -np.log(2 * np.pi))
    else:
        log_q = narrower_normal(draws)
    ratio = np.exp(log_q - evaluate(compiled, draws).log_prior)
    error = np.hypot(ratio.std() / np.sqrt(len(ratio)), compiled.log_prior_mass_mcse)
    assert error < 0.1
    assert abs(ratio.mean() - 1) < 5 * error


class TestPriorDraws:
    def test_ignore_initval(self) -> None:
        with pm.Model() as model:
            pm.Normal("x", 1.0, 2.0, initval=50.0)
            pm.HalfNormal("s", 3.0, initval=40.0)
        draws = pma.compile_model(model).sample_prior(np.random.SeedSequence(3), 5000)
        assert stats.kstest(draws[:, 0], stats.norm(1, 2).cdf).pvalue > 1e-6
        assert stats.kstest(np.exp(draws[:, 1]), stats.halfnorm(0, 3).cdf).pvalue > 1e-6

    def test_a_seed_determines_the_draws(self) -> None:
        compiled = pma.compile_model(build("gamma"))
        seed = np.random.SeedSequence(4)
        first, again = compiled.sample_prior(seed, 700), compiled.sample_prior(seed, 700)
        np.testing.assert_array_equal(first, again)
        np.testing.assert_array_equal(compiled.sample_prior(seed, 100), first[:100])
        assert len(np.unique(first)) == 700
        assert (compiled.sample_prior(np.random.SeedSequence(5), 700) != first).all()

    def test_a_hierarchy_is_drawn_from_the_top(self) -> None:
        with pm.Model() as model:
            scale = pm.Gamma("scale", 3.0, 2.0)
            x = pm.Normal("x", 0.5, scale, shape=2)
            pm.Normal("z", x.sum(), 0.01)
        draws = pma.compile_model(model).sample_prior(np.random.SeedSequence(6), 8000)
        u = stats.norm.cdf((draws[:, 1] - 0.5) / np.exp(draws[:, 0]))
        assert stats.kstest(u, "uniform").pvalue > 1e-6
        assert stats.kstest(np.exp(draws[:, 0]), stats.gamma(3, scale=0.5).cdf).pvalue > 1e-6
        np.testing.assert_allclose(draws[:, 3], draws[:, 1:3].sum(axis=1), atol=0.06)

    def test_unequal_priors_are_rejected_and_the_mass_estimated(self) -> None:
        compiled = pma.compile_model(build("ordered_unequal"))
        exact = stats.norm.logcdf(2 / np.sqrt(5))
        assert 0 < compiled.log_prior_mass_mcse < 0.01
        assert abs(compiled.log_prior_mass - exact) < 5 * compiled.log_prior_mass_mcse
        values = compiled.constrain(compiled.sample_prior(np.random.SeedSequence(8), 2000))["x"]
        assert (np.diff(values) > 0).all()
        assert any("log mass" in note for note in compiled.notes)

    def test_hardly_any_draw_is_ordered(self) -> None:
        with pm.Model() as model:
            pm.Normal("x", [9.0, -9.0], 1.0, transform=transforms.ordered, initval=[-1.0, 1.0])
        with pytest.raises(ValueError, match=r"only 0 lie on the part .*'x'"):
            pma.compile_model(model)

    def test_draws_on_the_boundary(self) -> None:
        with pm.Model() as model:
            pm.Weibull("x", 1e-4, 1.0)
        with pytest.raises(ValueError, match="prior draw of variable 'x' is -?inf"):
            pma.compile_model(model).sample_prior(np.random.SeedSequence(9), 100)

    def test_sizes_beyond_the_parameters_are_drawn_in_batches(self) -> None:
        """``shape=`` with scalar parents, for which PyTensor has no batches of its own."""
        with pm.Model() as model:
            scale = pm.Gamma("scale", 3.0, 2.0)
            x = pm.Normal("x", 0.5, scale, shape=3)
            pm.MvNormal("z", x, scale**2 * np.eye(3), shape=(2, 3))
        compiled = pma.compile_model(model)
        assert "batch" in compiled._prior._sample.func.__name__
        draws = compiled.sample_prior(np.random.SeedSequence(10), 4000)
        log_scale, x = draws[:, :1], draws[:, 1:4]
        z = draws[:, 4:].reshape(-1, 2, 3)
        for residual in (x - 0.5, (z[:, 0] - x), (z[:, 1] - x)):
            u = stats.norm.cdf(residual / np.exp(log_scale))
            assert stats.kstest(u.ravel(), "uniform").pvalue > 1e-6
            assert np.abs(np.corrcoef(u.T) - np.eye(3)).max() < 0.1
        assert np.abs(np.corrcoef(z[:, 0, 0] - x[:, 0], z[:, 1, 0] - x[:, 0])[0, 1]) < 0.1

    def test_lkj_factors_are_drawn_in_batches(self) -> None:
        with pm.Model() as model:
            scales = pm.Exponential.dist([1.0, 4.0], shape=2)
            pm.LKJCholeskyCov("factor", n=2, eta=2.0, sd_dist=scales)
        compiled = pma.compile_model(model)
        assert "batch" in compiled._prior._sample.func.__name__
        draws = compiled.sample_prior(np.random.SeedSequence(11), 4000)
        factor = compiled.constrain(draws)["factor"]
        first, second = factor[:, 0], np.hypot(factor[:, 1], factor[:, 2])
        assert stats.kstest(first, stats.expon(scale=1).cdf).pvalue > 1e-6
        assert stats.kstest(second, stats.expon(scale=1 / 4).cdf).pvalue > 1e-6
        # Beta(eta, eta) on (-1, 1) for two variables (Lewandowski, Kurowicka & Joe 2009).
        correlation = factor[:, 1] / second
        assert stats.kstest((1 + correlation) / 2, stats.beta(2, 2).cdf).pvalue > 1e-6

    @pytest.mark.parametrize("parent", [pytest.param("eta", marks=CONSTANT_ETA), "scales"])
    def test_lkj_factors_with_random_parameters(self, parent: str) -> None:
        with pm.Model() as model:
            rate = pm.Gamma("rate", 3.0, 2.0)
            scales = pm.Exponential.dist(rate if parent == "scales" else 1.0, shape=2)
            pm.LKJCholeskyCov(
                "factor", n=2, eta=1 + rate if parent == "eta" else 2.0, sd_dist=scales
            )
        compiled = pma.compile_model(model)
        how = "one_by_one" if parent == "eta" else "batch"
        assert how in compiled._prior._sample.func.__name__
        draws = compiled.sample_prior(np.random.SeedSequence(12), 600)
        rate = np.exp(draws[:, 0])
        factor = compiled.constrain(draws)["factor"]
        u = stats.expon.cdf(factor[:, 0] * (rate if parent == "scales" else 1.0))
        assert stats.kstest(u, "uniform").pvalue > 1e-6


def without_axis() -> pm.Model:
    """Return a model whose graph has no axis of draws."""
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1.0)
        pm.CustomDist("x", scale, dist=lambda s, size: pm.Normal.dist(0.0, s, size=size))
    return model


@pytest.mark.parametrize("name", ["normal", "lkj_cholesky", "without_axis"])
def test_threads_take_turns(name: str) -> None:
    """In batches, and for a graph without an axis of draws: the draws of a seed are its own."""
    compiled = pma.compile_model(without_axis() if name == "without_axis" else build(name))
    how = "one_by_one" if name == "without_axis" else "batch"
    assert how in compiled._prior._sample.func.__name__
    seeds = [np.random.SeedSequence(i) for i in range(8)]
    alone = [compiled.sample_prior(seed, 300) for seed in seeds]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda seed: compiled.sample_prior(seed, 300), seeds))
    np.testing.assert_array_equal(together, alone)

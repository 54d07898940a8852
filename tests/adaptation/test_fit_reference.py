"""References other than the prior: normalised, drawn as they say, fitted, and annealed from."""

import jax
import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.adaptation.fit_reference import fit_to_draws
from pymc_anneal.base.arviz_compat import container, group
from pymc_anneal.results.container import dataset
from tests.cases import REFERENCES, Case, parametrize
from tests.problems import by_name


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


@parametrize("case", REFERENCES)
class TestContract:
    def test_density(self, case: Case) -> None:
        reference = case.make()
        scale = np.asarray(reference.scale)
        root = scale if scale.ndim == 2 else np.diag(scale)
        x = np.random.default_rng(1).normal(size=(50, 2))
        if case.exported == "GaussianReference":
            exact = stats.multivariate_normal(reference.mean, root @ root.T)
        else:
            nu = reference.degrees_of_freedom
            exact = stats.multivariate_t(reference.mean, root @ root.T, nu)
        np.testing.assert_allclose(reference.log_density(x), exact.logpdf(x), rtol=1e-12)

    def test_draws(self, case: Case) -> None:
        """Squared distances from the centre have the distribution they should have."""
        reference = case.make()
        x = reference.sample(np.random.SeedSequence(2), 20_000)
        scale = np.asarray(reference.scale)
        z = np.linalg.solve(scale if scale.ndim == 2 else np.diag(scale), (x - reference.mean).T)
        squared = (z**2).sum(axis=0)
        exact = stats.chi2(2)
        if case.exported == "StudentTReference":
            exact, squared = stats.f(2, reference.degrees_of_freedom), squared / 2
        assert stats.kstest(squared, exact.cdf).pvalue > 1e-4
        angle = np.arctan2(z[1], z[0])
        assert stats.kstest(angle, stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > 1e-4

    def test_same_seed_same_draws(self, case: Case) -> None:
        first, second = (case.make().sample(np.random.SeedSequence(3), 5) for _ in range(2))
        np.testing.assert_array_equal(first, second)

    def test_is_a_pytree(self, case: Case) -> None:
        reference = case.make()
        x = np.zeros((3, 2))
        compiled = jax.jit(lambda r, x: r.log_density(x))
        np.testing.assert_allclose(compiled(reference, x), reference.log_density(x), rtol=1e-13)


def regression(sd: float = 100.0, d: int = 20):
    """Return a linear regression with vague priors, its log evidence and posterior."""
    rng = np.random.default_rng(d)
    x = rng.normal(size=(60, d))
    y = x @ rng.normal(size=d) + rng.normal(size=60)
    with pm.Model() as model:
        beta = pm.Normal("beta", 0, sd, shape=d)
        pm.Normal("y", pm.math.dot(x, beta), 1, observed=y)
    covariance = np.eye(60) + sd**2 * x @ x.T
    log_evidence = stats.multivariate_normal(np.zeros(60), covariance).logpdf(y)
    posterior = np.linalg.inv(x.T @ x + np.eye(d) / sd**2)
    return model, float(log_evidence), posterior @ x.T @ y, posterior


class TestFits:
    @pytest.mark.parametrize("d", [4, 100])
    def test_gaussian_posterior_is_found_exactly(self, d: int) -> None:
        """From draws of something else: the gradients tell mean and covariance."""
        model, _, mean, covariance = regression(d=d)
        compiled = pma.compile_model(model)
        draws = mean + np.random.default_rng(1).normal(size=(300, d))
        fitted = fit_to_draws(compiled, draws)
        assert np.shape(fitted.scale) == (d, d)
        np.testing.assert_allclose(fitted.mean, mean, atol=0.01 * np.sqrt(covariance.max()))

    def test_laplace(self) -> None:
        model, _, mean, covariance = regression(d=4)
        fitted = pma.laplace_reference(model, random_seed=1)
        np.testing.assert_allclose(fitted.mean, mean, atol=1e-4)
        np.testing.assert_allclose(fitted.scale @ fitted.scale.T, covariance, rtol=1e-6)

    def test_laplace_without_a_mode(self) -> None:
        with pm.Model() as model:
            x = pm.Normal("x", 0, 1)
            pm.Potential("saddle", x**2)
        with pytest.raises(ValueError, match="no mode with positive curvature"):
            pma.laplace_reference(model, random_seed=1)

    def test_family(self) -> None:
        model = regression(d=2)[0]
        draws = {"beta": np.random.default_rng(1).normal(size=(2, 50, 2))}
        idata = container({"posterior": dataset(draws, ("chain", "draw"))})
        fitted = pma.fit_reference(idata, model=model, family="student_t")
        assert isinstance(fitted, pma.StudentTReference)
        with pytest.raises(ValueError, match="Unknown `family` 'cauchy'"):
            pma.fit_reference(idata, model=model, family="cauchy")


@pytest.fixture(scope="module")
def vague():
    model, log_evidence, *_ = regression(d=10)
    return pma.compile_model(model), log_evidence


class TestSampleAIS:
    @pytest.mark.parametrize(
        "reference", [pytest.param("pilot", marks=pytest.mark.slow), "laplace", "auto"]
    )
    def test_vague_prior(self, reference, vague) -> None:
        """With a prior of sd 100 the path from a fitted reference is many times shorter."""
        model, log_evidence = vague
        idata = pma.sample_ais(
            model=model, reference=reference, progressbar=False, random_seed=[1, 2]
        )
        found = pma.log_evidence(idata)
        assert found.verdict.trusted
        assert abs(found.log_evidence - log_evidence) < 4 * found.mcse
        assert found.barrier < 3
        assert group(idata, "evidence").attrs["reference"] != "prior"

    @pytest.mark.slow
    def test_fitted_to_draws(self) -> None:
        problem = by_name("eight_schools")
        model = pma.compile_model(problem.build())
        short = {"steps": 40, "transition": pma.HMC(0.4, 4, 1.0), "schedule": "sigmoid"}
        idata = pma.sample_ais(model=model, progressbar=False, random_seed=1, **short)
        reference = pma.fit_reference(idata, model=model, family="student_t")
        again = pma.sample_ais(
            model=model, reference=reference, progressbar=False, random_seed=2, **short
        )
        found = pma.log_evidence(again)
        assert abs(found.log_evidence - problem.log_evidence) < 4 * found.mcse
        assert group(again, "evidence").attrs["reference"] == "StudentTReference"

    @pytest.mark.slow
    def test_the_prior_may_be_best(self) -> None:
        """Two modes far apart: a fitted Gaussian is no nearer than the prior."""
        problem = by_name("two_modes")
        idata = pma.sample_ais(
            model=problem.build(), reference="auto", progressbar=False, random_seed=1
        )
        found = pma.log_evidence(idata)
        assert abs(found.log_evidence - problem.log_evidence) < 4 * found.mcse
        assert group(idata, "evidence").attrs["reference_costs"].count(",") == 2

    def test_with_reverse_runs(self, vague) -> None:
        model, log_evidence = vague
        idata = pma.sample_ais(
            model=model, reference="pilot", reverse_from="draws", progressbar=False, random_seed=4
        )
        found = pma.log_evidence(idata)
        assert abs(found.log_evidence - log_evidence) < 4 * found.mcse

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"reference": "posterior"}, ValueError, "Unknown `reference` 'posterior'"),
            ({"reference": 3.0}, TypeError, "without the methods"),
        ],
    )
    def test_bad_references(self, arguments, error, message) -> None:
        with pytest.raises(error, match=message):
            pma.sample_ais(model=regression(d=2)[0], progressbar=False, **arguments)

    def test_only_with_the_geometric_path(self) -> None:
        compiled = pma.compile_model(regression(d=2)[0])
        reference = pma.GaussianReference(np.zeros(2), np.ones(2))
        path = pma.ReferencePath(compiled.log_terms, reference)
        for given in (reference, "prior"):
            with pytest.raises(ValueError, match="ReferencePath, which `reference` stands for"):
                pma.sample_ais(model=compiled, path=path, reference=given, progressbar=False)

    def test_priors_without_a_normaliser(self) -> None:
        with pm.Model() as model:
            pm.VonMises("angle", 0, 1)
        with pytest.raises(NotImplementedError, match="A reference other than the prior needs"):
            pma.sample_ais(model=model, reference="pilot", progressbar=False)

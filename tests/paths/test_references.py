"""Densities of references: normalised, and drawn as they say."""

import jax
import numpy as np

from scipy import stats

from tests.cases import REFERENCES, Case, parametrize


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
        # Squared distances from the centre and angles have known distributions.
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

"""Densities of references: normalised, and drawn as they say."""

import jax
import numpy as np
import pytest

from scipy import stats

import pymc_anneal as pma

from tests.cases import Case, parametrize
from tests.path_cases import INNER_REFERENCES, REFERENCES

# A mixture has tests of its own.
SINGLE = [case for case in REFERENCES if case.exported != "MixtureReference"]


@parametrize("case", SINGLE)
class TestFamilies:
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


@parametrize("case", [*REFERENCES, *INNER_REFERENCES])
class TestContract:
    def test_same_seed_same_draws(self, case: Case) -> None:
        first, second = (case.make().sample(np.random.SeedSequence(3), 5) for _ in range(2))
        np.testing.assert_array_equal(first, second)

    def test_is_a_pytree(self, case: Case) -> None:
        reference = case.make()
        x = np.zeros((3, 2))
        compiled = jax.jit(lambda r, x: r.log_density(x))
        np.testing.assert_allclose(compiled(reference, x), reference.log_density(x), rtol=1e-13)


FAMILIES = [pma.GaussianReference, pma.StudentTReference]
COVARIANCE = np.array([[2.0, 0.9, 0.1], [0.9, 1.0, -0.3], [0.1, -0.3, 0.5]])


@pytest.mark.parametrize("family", FAMILIES)
class TestScale:
    def test_any_root_gives_the_same_reference(self, family: type) -> None:
        lower = np.linalg.cholesky(COVARIANCE)
        rotation = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))[0]
        expected = family(np.ones(3), lower)
        x = expected.sample(np.random.SeedSequence(5), 20)
        for root in (lower @ rotation, -lower, lower * [1, -1, 1]):
            reference = family(np.ones(3), root)
            np.testing.assert_allclose(reference.scale, lower, atol=1e-12)
            np.testing.assert_allclose(reference.log_density(x), expected.log_density(x))
        np.testing.assert_array_equal(expected.scale, lower)

    def test_one_number_for_all_coordinates(self, family: type) -> None:
        x = np.random.default_rng(6).normal(size=(5, 3))
        reference, expected = family(np.ones(3), 0.5), family(np.ones(3), np.full(3, 0.5))
        np.testing.assert_array_equal(reference.log_density(x), expected.log_density(x))
        seed = np.random.SeedSequence(7)
        np.testing.assert_array_equal(reference.sample(seed, 4), expected.sample(seed, 4))

    @pytest.mark.parametrize(
        ("mean", "scale", "message"),
        [
            (np.ones(3), COVARIANCE, "symmetric, as a covariance is.*cholesky"),
            (np.ones(3), np.ones((2, 2)), r"`scale` has shape \(2, 2\), expected .* \(3,\) or"),
            (np.ones(3), np.ones(2), r"`scale` has shape \(2,\)"),
            (np.ones(3), [1.0, np.nan, 1.0], "expected finite numbers"),
            (np.ones(3), [1.0, -1.0, 1.0], "zero or negative in some direction"),
            (np.ones(2), [[1.0, 0.0], [1.0, 0.0]], "zero or negative in some direction"),
            (0.0, 1.0, r"`mean` is 0.0, expected finite numbers, shape \(d,\)"),
        ],
    )
    def test_bad_scales(self, family: type, mean, scale, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            family(mean, scale)


def test_bad_degrees_of_freedom() -> None:
    with pytest.raises(ValueError, match="`degrees_of_freedom` is 0, expected a positive number"):
        pma.StudentTReference(np.zeros(2), np.ones(2), 0)

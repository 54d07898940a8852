"""Components that are wider along a few coordinates."""

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation.wider_component import columns_to_widen, widened
from pymc_anneal.model.conditional_normal import conditional_coordinates
from pymc_anneal.paths.references import GaussianReference


@pytest.mark.parametrize("dense", [True, False])
def test_the_other_coordinates_keep_their_distribution_given_these(dense) -> None:
    rng = np.random.default_rng(6)
    root = np.tril(rng.normal(size=(5, 5))) + 3 * np.eye(5)
    scale = root if dense else np.diag(root)
    wide = np.asarray(widened(GaussianReference(np.arange(5.0), scale), np.array([1, 3])).scale)
    covariance = root @ root.T if dense else np.diag(scale**2)
    before, after = np.linalg.inv(covariance), np.linalg.inv(wide @ wide.T)
    others, chosen = np.ix_([0, 2, 4], range(5)), np.ix_([1, 3], [1, 3])
    np.testing.assert_allclose(after[others], before[others], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose((wide @ wide.T)[chosen], 4 * covariance[chosen], rtol=1e-9)


@pytest.mark.parametrize(("d", "columns"), [(1, [0]), (5, [0, 1, 2, 3, 4]), (6, [])])
def test_all_of_a_few(d, columns) -> None:
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("x", shape=d).sum(), 1, observed=0.5)
    np.testing.assert_array_equal(columns_to_widen(pma.compile_model(model)), columns)


def test_those_that_latent_normal_variables_are_given() -> None:
    with pm.Model() as model:
        sd = pm.HalfNormal("sd")
        z = pm.Normal("z", shape=6)
        pm.Normal("y", sd * z, 1, observed=np.arange(6.0))
    coordinates = conditional_coordinates(pma.compile_model(model))
    np.testing.assert_array_equal(columns_to_widen(coordinates.at(np.zeros(6))), [0])

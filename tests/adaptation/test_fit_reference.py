"""References fitted to draws and to the mode: exact for Gaussian posteriors."""

import jax
import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation.preconditioner import estimate_scale, locate, newton_step
from pymc_anneal.base.arviz_compat import container
from pymc_anneal.results.container import dataset
from pymc_anneal.sampling.fit_reference import fit_to_draws
from tests.adaptation.vague_regression import vague_regression


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("d", [4, 100])
def test_a_gaussian_posterior_is_found_from_draws_of_another_density(d: int) -> None:
    # The gradients determine mean and covariance.
    regression = vague_regression(d=d)
    draws = regression.mean + np.random.default_rng(1).normal(size=(300, d))
    fitted = fit_to_draws(pma.compile_model(regression.model), draws)
    assert np.shape(fitted.scale) == (d, d)
    tolerance = 0.01 * np.sqrt(regression.covariance.max())
    np.testing.assert_allclose(fitted.mean, regression.mean, atol=tolerance)


def test_draws_with_gradients_that_are_not_finite_are_left_out() -> None:
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1)
        pm.Potential("edge", -0.5 * (x - 1) ** 2 + 1e-12 * pm.math.sqrt(2 - x))
    draws = np.random.default_rng(1).normal(size=(300, 1))
    draws[:5] = 3.0
    fitted = fit_to_draws(pma.compile_model(model), draws)
    assert fitted.mean[0] == pytest.approx(0.5, abs=0.01)
    assert fitted.scale[0] == pytest.approx(np.sqrt(0.5), rel=0.01)


def test_draws_that_an_edge_ends_have_their_moments() -> None:
    """The slope of an exponential density leads far out of its draws, and so does a Newton step."""
    draws = -4.0 - np.random.default_rng(4).exponential(size=(400, 2))
    slope = 1.0 - 0.02 * np.exp(draws + 4.0)
    assert abs(newton_step(draws, slope, estimate_scale(draws, np.ones(400), slope))).max() > 10
    mean, scale = locate(draws, slope)
    np.testing.assert_allclose(mean, draws.mean(axis=0))
    np.testing.assert_allclose(np.diag(scale), 1.0, atol=0.15)


def test_family() -> None:
    draws = {"beta": np.random.default_rng(1).normal(size=(2, 50, 2))}
    idata, model = (
        container({"posterior": dataset(draws, ("chain", "draw"))}),
        vague_regression(d=2),
    )
    fitted = pma.fit_reference(idata, model=model.model, family="student_t")
    assert isinstance(fitted, pma.StudentTReference)
    with pytest.raises(ValueError, match="Unknown `family` 'cauchy'"):
        pma.fit_reference(idata, model=model.model, family="cauchy")


class TestLaplace:
    def test_mode_and_curvature(self) -> None:
        regression = vague_regression(d=4)
        fitted = pma.laplace_reference(model=regression.model, random_seed=1)
        np.testing.assert_allclose(fitted.mean, regression.mean, atol=1e-4)
        covariance = fitted.scale @ fitted.scale.T
        np.testing.assert_allclose(covariance, regression.covariance, rtol=1e-6)

    def test_the_model_on_the_context_stack(self) -> None:
        regression = vague_regression(d=2)
        with regression.model:
            fitted = pma.laplace_reference(random_seed=1)
        np.testing.assert_allclose(fitted.mean, regression.mean, atol=1e-4)

    def test_a_saddle_point_is_refused(self) -> None:
        with pm.Model() as model:
            x = pm.Normal("x", 0, 1)
            pm.Potential("saddle", x**2)
        with pytest.raises(ValueError, match="no mode with positive curvature"):
            pma.laplace_reference(model=model, random_seed=1)

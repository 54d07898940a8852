"""A mixture over configurations: normalised, with draws of its density."""

import jax
import numpy as np
import pytest

from scipy import stats

from pymc_anneal.paths.configuration_mixture import ConfigurationMixture


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


MIXTURE = ConfigurationMixture(
    weight=np.array([0.6, 0.3, 0.1]),
    values=np.array([[0.0, 4.0], [1.0, 4.0], [1.0, 5.0]]),
    location=np.array([[0.5], [-1.0], [3.0]]),
    scale=np.array([[[0.7]], [[-1.4]], [[2.0]]]),
    discrete=(2, 0),
    real=(1,),
)


def test_density_of_each_configuration() -> None:
    x = np.array([[4.0, 0.2, 0.0], [4.0, 0.2, 1.0], [5.0, 0.2, 1.0], [5.0, 0.2, 0.0]])
    expected = [
        np.log(w) + stats.t(7, loc=m, scale=s).logpdf(0.2)
        for w, m, s in ((0.6, 0.5, 0.7), (0.3, -1.0, 1.4), (0.1, 3.0, 2.0))
    ]
    np.testing.assert_allclose(MIXTURE.log_density(x), [*expected, -np.inf], rtol=1e-12)


def test_draws_are_of_the_density() -> None:
    draws = MIXTURE.sample(np.random.SeedSequence(1), 20_000)
    log_density = np.asarray(MIXTURE.log_density(draws))
    # E[1 / r] over a box is its volume times the number of configurations.
    inside = abs(draws[:, 1] - 0.5) < 1.0
    volume = np.where(inside, np.exp(-log_density), 0.0)
    assert abs(volume.mean() - 6.0) < 4 * volume.std() / np.sqrt(len(draws))
    share = [(draws[:, [2, 0]] == row).all(axis=1).mean() for row in MIXTURE.values]
    np.testing.assert_allclose(share, MIXTURE.weight, atol=0.015)
    uniform = stats.t(7, loc=-1.0, scale=1.4).cdf(draws[(draws[:, 2] == 1) & (draws[:, 0] == 4), 1])
    assert stats.kstest(uniform, "uniform").pvalue > 1e-4


def test_gradient_of_the_real_coordinates_alone() -> None:
    x = np.array([4.0, 0.2, 0.0])
    slope = jax.grad(lambda x: MIXTURE.log_density(x[None])[0])(x)
    z = (0.2 - 0.5) / 0.7
    np.testing.assert_allclose(slope, [0.0, -8 * z / 0.7 / (7 + z**2), 0.0], rtol=1e-10)


def test_without_real_coordinates() -> None:
    alone = ConfigurationMixture(
        np.array([0.25, 0.75]),
        np.array([[0.0], [2.0]]),
        np.empty((2, 0)),
        np.empty((2, 0, 0)),
        (0,),
        (),
    )
    found = np.exp(alone.log_density(np.array([[0.0], [1.0], [2.0]])))
    np.testing.assert_allclose(found, [0.25, 0.0, 0.75])
    draws = alone.sample(np.random.SeedSequence(0), 4000)
    np.testing.assert_allclose((draws == 2).mean(), 0.75, atol=0.03)

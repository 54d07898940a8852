"""Power posteriors against closed forms, and their sensitivity."""

from functools import cache

import matplotlib as mpl
import numpy as np
import pymc as pm
import pytest

mpl.use("Agg")

from matplotlib import pyplot
from scipy import stats

import pymc_anneal as pma

Y = np.array([2.1, 3.0, 3.9, 2.6])
SIGMA, PRIOR_MEAN, PRIOR_SD = 0.8, -1.0, 1.5
BETAS = (0.0, 0.25, 1.0, 4.0)


def normal_model() -> pm.Model:
    with pm.Model(coords={"site": ["a", "b"]}) as model:
        mu = pm.Normal("mu", PRIOR_MEAN, PRIOR_SD, dims="site")
        pm.Deterministic("difference", mu[1] - mu[0])
        pm.Normal("y", mu[0], SIGMA, observed=Y)
    return model


@cache
def compiled() -> pma.CompiledModel:
    return pma.compile_model(normal_model())


@cache
def idata():
    return pma.power_posterior(BETAS, draws=1000, model=compiled(), **QUIET)


QUIET = {"random_seed": 2, "progressbar": False}


def exact(beta: float) -> tuple[float, float]:
    """Mean and standard deviation of the first site's mu."""
    precision = PRIOR_SD**-2 + beta * len(Y) * SIGMA**-2
    mean = (PRIOR_MEAN * PRIOR_SD**-2 + beta * Y.sum() * SIGMA**-2) / precision
    return mean, precision**-0.5


def exact_log_z(beta: float) -> float:
    """Log of the integral of prior times likelihood to the power beta, by quadrature."""
    grid = np.linspace(-12, 12, 40_001)
    log_likelihood = stats.norm.logpdf(Y[:, None], grid, SIGMA).sum(axis=0)
    density = stats.norm.logpdf(grid, PRIOR_MEAN, PRIOR_SD) + beta * log_likelihood
    return float(
        np.log(np.exp(density - density.max()).sum() * (grid[1] - grid[0])) + density.max()
    )


class TestDraws:
    def test_shapes(self) -> None:
        mu = idata()["posterior"]["mu"]
        assert mu.dims == ("chain", "draw", "power", "site")
        assert mu.shape == (4, 1000, 4, 2)
        np.testing.assert_array_equal(mu["power"], BETAS)
        assert idata()["sample_stats"]["log_likelihood"].shape == (4, 1000, 4)
        np.testing.assert_array_equal(idata()["observed_data"]["y"], Y)

    @pytest.mark.parametrize("i", range(4))
    def test_moments(self, i: int) -> None:
        x = idata()["posterior"]["mu"].isel(site=0).values[..., i].ravel()
        mean, sd = exact(BETAS[i])
        ess = float(idata()["power"]["ess"][i])
        assert abs(x.mean() - mean) < 5 * sd / np.sqrt(ess)
        assert abs(x.std() / sd - 1) < 5 / np.sqrt(2 * ess)

    @pytest.mark.parametrize("i", range(1, 4))
    def test_other_temperatures_are_told_apart(self, i: int) -> None:
        x = idata()["posterior"]["mu"].isel(site=0).values[..., i].ravel()
        mean, sd = exact(BETAS[i - 1])
        assert abs(x.mean() - mean) > 5 * sd / np.sqrt(float(idata()["power"]["ess"][i]))

    @pytest.mark.parametrize("i", range(4))
    def test_normalisers(self, i: int) -> None:
        found = idata()["power"]
        error = float(found["log_z"][i]) - exact_log_z(BETAS[i])
        assert abs(error) <= 4 * float(found["mcse"][i]) + 1e-9

    def test_log_likelihood_is_that_of_the_draws(self) -> None:
        mu = idata()["posterior"]["mu"].isel(site=0).values[0, 3, 2]
        expected = stats.norm.logpdf(Y, mu, SIGMA).sum()
        found = idata()["sample_stats"]["log_likelihood"].values[0, 3, 2]
        np.testing.assert_allclose(found, expected)

    def test_one_beta(self) -> None:
        found = pma.power_posterior(2.0, draws=30, steps=20, model=compiled(), **QUIET)
        assert found["posterior"]["mu"].shape == (4, 30, 1, 2)

    def test_the_prior_alone(self) -> None:
        found = pma.power_posterior([0], draws=30, model=compiled(), **QUIET)
        assert float(found["power"]["log_z"][0]) == 0

    @pytest.mark.parametrize("betas", [[], [-1.0], [1.0, np.inf], np.nan])
    def test_bad_betas(self, betas) -> None:
        with pytest.raises(ValueError, match="`betas` is .* 0 or above"):
            pma.power_posterior(betas, model=compiled())

    def test_a_name_that_is_taken(self) -> None:
        with pm.Model() as model:
            pm.Normal("power")
        with pytest.raises(ValueError, match="'power', the name of the dimension"):
            pma.power_posterior(1.0, model=model)


class TestSensitivity:
    def test_table(self) -> None:
        table = pma.power_sensitivity(idata())
        assert list(table.index.unique("variable")) == ["mu[a]", "mu[b]", "difference"]
        assert list(table.columns) == ["mean", "sd", "lower", "upper", "slope"]
        row = table.loc[("mu[a]", 1.0)]
        mean, sd = exact(1.0)
        assert row["mean"] == pytest.approx(mean, abs=0.1)
        assert row["lower"] == pytest.approx(stats.norm.ppf(0.03, mean, sd), abs=0.1)

    @pytest.mark.parametrize("beta", [0.25, 1.0, 4.0])
    def test_slope(self, beta: float) -> None:
        h = 1e-4
        (left, _), (right, _), (_, sd) = exact(beta - h), exact(beta + h), exact(beta)
        expected = np.log(2) * beta * (right - left) / (2 * h) / sd
        found = pma.power_sensitivity(idata(), "mu").loc[("mu[a]", beta), "slope"]
        assert found == pytest.approx(expected, abs=0.08)
        other = pma.power_sensitivity(idata(), "mu").loc[("mu[b]", beta), "slope"]
        assert other == pytest.approx(0, abs=0.08)

    def test_plot(self) -> None:
        axes = pma.plot_sensitivity(idata(), ["mu"])
        assert [axis.get_ylabel() for axis in axes] == ["mu[a]", "mu[b]"]
        pyplot.close("all")
        with pytest.raises(ValueError, match="Expected 1 axes"):
            pma.plot_sensitivity(idata(), "difference", axes=pyplot.subplots(1, 2)[1])
        pyplot.close("all")

    def test_refusals(self) -> None:
        with pytest.raises(ValueError, match="group 'power', found dict"):
            pma.power_sensitivity({})
        with pytest.raises(ValueError, match="no variables \\['nu'\\]"):
            pma.power_sensitivity(idata(), "nu")

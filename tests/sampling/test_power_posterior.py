"""Power posteriors against closed forms."""

import itertools

import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group
from tests.problems import ising
from tests.sampling.power_model import (
    BETAS,
    QUIET,
    SIGMA,
    Y,
    exact_log_z,
    exact_moments,
    power_model,
    power_result,
)


@pytest.fixture(scope="module")
def result():
    return power_result()


def first_mean(result, i: int) -> np.ndarray:
    """Return the draws of the first site's mu at one temperature."""
    return group(result, "posterior")["mu"].isel(site=0).values[..., i].ravel()


def check_moments(result, i: int) -> None:
    x, (mean, sd) = first_mean(result, i), exact_moments(BETAS[i])
    ess = float(group(result, "power")["ess"][i])
    assert abs(x.mean() - mean) < 5 * sd / np.sqrt(ess)
    assert abs(x.std() / sd - 1) < 5 / np.sqrt(2 * ess)


def check_normaliser(result, i: int) -> None:
    found = group(result, "power")
    error = float(found["log_z"][i]) - exact_log_z(BETAS[i])
    assert abs(error) <= 4 * float(found["mcse"][i]) + 1e-9
    assert float(found["mcse"][i]) < 0.2


class TestDraws:
    @pytest.mark.slow
    def test_shapes(self, result) -> None:
        mu = group(result, "posterior")["mu"]
        assert mu.dims == ("chain", "draw", "power", "site")
        assert mu.shape == (4, 1000, 4, 2)
        np.testing.assert_array_equal(mu["power"], BETAS)
        assert group(result, "sample_stats")["log_likelihood"].shape == (4, 1000, 4)
        np.testing.assert_array_equal(group(result, "observed_data")["y"], Y)

    @pytest.mark.parametrize("i", range(4))
    def test_moments(self, result, i: int) -> None:
        check_moments(result, i)

    @pytest.mark.parametrize("i", range(1, 4))
    def test_moments_of_another_temperature_do_not_fit(self, result, i: int) -> None:
        mean, sd = exact_moments(BETAS[i - 1])
        ess = float(group(result, "power")["ess"][i])
        assert abs(first_mean(result, i).mean() - mean) > 5 * sd / np.sqrt(ess)

    @pytest.mark.parametrize("i", range(4))
    def test_normalisers(self, result, i: int) -> None:
        check_normaliser(result, i)

    def test_log_likelihood_is_that_of_the_draws(self, result) -> None:
        mu = group(result, "posterior")["mu"].isel(site=0).values[0, 3, 2]
        found = group(result, "sample_stats")["log_likelihood"].values[0, 3, 2]
        np.testing.assert_allclose(found, stats.norm.logpdf(Y, mu, SIGMA).sum())

    @pytest.mark.slow
    def test_one_beta(self) -> None:
        found = pma.power_posterior(2.0, draws=30, steps=20, model=power_model(), **QUIET)
        assert group(found, "posterior")["mu"].shape == (4, 30, 1, 2)

    def test_the_prior_alone(self) -> None:
        found = pma.power_posterior([0], draws=30, model=power_model(), **QUIET)
        assert float(group(found, "power")["log_z"][0]) == 0


class TestSeveralBlocks:
    """Populations of 50 particles, in eight blocks of four chains."""

    @pytest.fixture(scope="class", params=[None, "ess", 1.0], ids=["alone", "ess", "always"])
    @classmethod
    def result(cls, request):
        size = {"draws": 400, "steps": 60, "block_size": 200}
        return pma.power_posterior(
            BETAS, model=power_model(), resample=request.param, **size, **QUIET
        )

    @pytest.mark.parametrize("i", range(4))
    def test_normalisers(self, result, i: int) -> None:
        check_normaliser(result, i)

    @pytest.mark.parametrize("i", range(4))
    def test_moments(self, result, i: int) -> None:
        check_moments(result, i)

    def test_recorded_draws_differ_by_temperature(self, result) -> None:
        means = [first_mean(result, i).mean() for i in range(4)]
        assert means == sorted(means)


@pytest.mark.slow
def test_normalisers_of_resampled_populations_are_unbiased() -> None:
    # Few steps: the weights of single particles are uneven, the mean of exp(log_z) is not biased.
    ratios = []
    for seed in range(30):
        found = pma.power_posterior(
            [0.25, 1.0],
            model=power_model(),
            draws=50,
            steps=6,
            resample=1.0,
            block_size=40,
            transition=pma.HMC(0.6, 2, 0.5),
            random_seed=seed,
            progressbar=False,
        )
        log_z = group(found, "power")["log_z"].values
        ratios.append(np.exp(log_z - [exact_log_z(b) for b in (0.25, 1.0)]))
    error = np.std(ratios, axis=0) / np.sqrt(len(ratios))
    assert (np.abs(np.mean(ratios, axis=0) - 1) < 5 * error).all()
    assert (error < 0.1).all()


class TestErrors:
    @pytest.mark.parametrize("betas", [[], [-1.0], [1.0, np.inf], np.nan])
    def test_bad_betas(self, betas) -> None:
        with pytest.raises(ValueError, match="`betas` is .* 0 or above"):
            pma.power_posterior(betas, model=power_model())

    def test_a_variable_with_the_name_of_the_dimension(self) -> None:
        with pm.Model() as model:
            pm.Normal("power")
        with pytest.raises(ValueError, match="'power', the name of the dimension"):
            pma.power_posterior(1.0, model=model)

    def test_too_few_populations_to_resample(self) -> None:
        with pytest.raises(ValueError, match="`resample` leaves 2 independent populations"):
            pma.power_posterior(1.0, model=power_model(), chains=2, draws=50, resample="ess")


SPINS = np.array(list(itertools.product((0, 1), repeat=4)))


def spin_mass(power: float) -> np.ndarray:
    """Return the probability of each of ``SPINS`` in the model of ``ising(2)``, to a power."""
    s = 2 * SPINS - 1
    energy = 0.4 * (s[:, [0, 0, 3, 3]] * s[:, [1, 2, 1, 2]]).sum(axis=1) + 0.1 * s.sum(axis=1)
    mass = np.exp(power * energy)
    return mass / mass.sum()


@pytest.mark.slow
def test_discrete_variables() -> None:
    found = pma.power_posterior(
        [0.5, 3.0], model=ising(2).build(), draws=1000, random_seed=1, progressbar=False
    )
    up = group(found, "posterior")["up"]
    assert up.dtype == np.int64
    flat = up.transpose("power", "chain", "draw", ...).values.reshape(2, -1, 4)
    for power, draws in zip((0.5, 3.0), flat, strict=True):
        index = draws @ [8, 4, 2, 1]
        expected = spin_mass(power) * len(index)
        observed = np.bincount(index, minlength=16)
        common = expected > 20
        error = np.sqrt(expected[common])
        assert (np.abs(observed[common] - expected[common]) < 6 * error).all()

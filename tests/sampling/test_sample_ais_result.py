"""`sample_ais`: the container of a run."""

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group, has_group
from tests.problems import by_name
from tests.sampling.small_model import QUICK, evidence_attrs, small_model, small_result


@pytest.fixture(scope="module")
def result():
    return small_result()


class TestGroups:
    def test_names(self, result) -> None:
        for name in (
            "posterior",
            "sample_stats",
            "annealing",
            "evidence",
            "observed_data",
            "constant_data",
            "log_likelihood",
            "prior",
        ):
            assert has_group(result, name), name

    def test_extra_groups_are_made_on_request(self) -> None:
        plain = pma.sample_ais(20, model=small_model(), **QUICK)
        assert not has_group(plain, "prior")
        assert not has_group(plain, "log_likelihood")

    def test_posterior(self, result) -> None:
        posterior = group(result, "posterior")
        assert dict(posterior.sizes) == {"chain": 2, "draw": 60, "group": 2}
        assert posterior["mu"].dims == ("chain", "draw", "group")
        assert posterior["group"].values.tolist() == ["a", "b"]
        assert set(posterior.data_vars) == {"mu", "sigma", "total"}
        np.testing.assert_allclose(posterior["mu"].sum("group"), posterior["total"], rtol=1e-12)
        assert (posterior["sigma"] > 0).all()
        assert posterior.attrs["inference_library"] == "pymc_anneal"

    def test_sample_stats(self, result) -> None:
        values = group(result, "sample_stats")["log_marginal_likelihood"]
        assert values.dims == ("chain",)
        log_weight = group(result, "annealing")["log_weight"].values
        expected = np.logaddexp.reduce(log_weight, axis=1) - np.log(log_weight.shape[1])
        np.testing.assert_allclose(values, expected, rtol=1e-12)

    def test_annealing(self, result) -> None:
        data = group(result, "annealing")
        assert data["log_weight"].dims == ("chain", "particle")
        assert data["log_weight"].shape == (2, 60)
        by_step = {
            "beta",
            "log_z",
            "ess",
            "accept_rate",
            "nan_share",
            "step_size",
            "fisher_information",
            "barrier",
            "velocity",
        }
        assert set(data.data_vars) == by_step | {"log_weight"}
        for name in by_step:
            assert data[name].dims == ("chain", "step"), name
            assert data[name].shape == (2, 5)
            assert data[name].dtype == np.float64
        np.testing.assert_allclose(data["beta"].values[0], np.arange(1, 6) / 5)
        assert data["step"].values.tolist() == [1, 2, 3, 4, 5]
        assert (data["step_size"] == 0.3).all()
        assert ((data["ess"] > 0) & (data["ess"] <= 60 * (1 + 1e-9))).all()
        last = data["log_z"].isel(step=-1)
        np.testing.assert_allclose(last, group(result, "sample_stats")["log_marginal_likelihood"])

    def test_long_runs_are_thinned(self) -> None:
        data = group(
            pma.sample_ais(10, model=small_model(), **{**QUICK, "steps": 2500}), "annealing"
        )
        assert data.sizes["step"] <= 1000
        assert data["step"].values[[0, -1]].tolist() == [1, 2500]
        assert data["beta"].values[0, -1] == 1

    def test_evidence(self, result) -> None:
        data, evidence = group(result, "evidence"), pma.log_evidence(result)
        log_weight = group(result, "annealing")["log_weight"].values.ravel()
        expected = np.logaddexp.reduce(log_weight) - np.log(log_weight.size)
        assert evidence.log_evidence == pytest.approx(expected, rel=1e-12)
        assert evidence.interval[0] < evidence.log_evidence < evidence.interval[1]
        # The delta method on the weights themselves; a heavy tail only adds to it.
        relative = np.exp(log_weight - expected).std() / np.sqrt(log_weight.size)
        assert np.sqrt(np.log1p(relative**2)) * (1 - 1e-9) <= evidence.mcse < np.inf
        assert 1 <= evidence.ess <= 120
        assert evidence.barrier > 0
        assert all(v.dtype == np.float64 and v.ndim == 0 for v in data.data_vars.values())
        assert float(data["steps"]) == 5
        assert float(data["particles"]) == 120
        assert float(data["evaluations"]) == 120 * 5 * 5  # two leapfrogs in two stages, and one
        attrs = evidence_attrs(result)
        assert attrs["path"] == "GeometricPath"
        assert attrs["schedule"] == "linear_schedule"
        assert attrs["transition"] == "HMC"
        assert attrs["verdict"] == str(evidence.verdict)
        assert pm.__version__ in attrs["versions"]

    def test_data_groups(self, result) -> None:
        observed, constant = group(result, "observed_data"), group(result, "constant_data")
        np.testing.assert_array_equal(observed["y"], [0.4, 2.0, -1.3])
        assert observed["obs"].values.tolist() == [10, 20, 30]
        np.testing.assert_array_equal(constant["covariate"], [0.5, -1.0, 2.0])

    def test_prior_and_log_likelihood(self, result) -> None:
        prior = group(result, "prior")
        assert prior["mu"].shape == (2, 60, 2)
        log_likelihood = group(result, "log_likelihood")["y"]
        assert log_likelihood.dims == ("chain", "draw", "obs")
        posterior = group(result, "posterior")
        mu, sigma = posterior["mu"].values, posterior["sigma"].values[..., None]
        mean = mu[..., :1] + mu[..., 1:] * np.array([0.5, -1.0, 2.0])
        expected = -0.5 * ((np.array([0.4, 2.0, -1.3]) - mean) / sigma) ** 2
        expected -= np.log(sigma * np.sqrt(2 * np.pi))
        np.testing.assert_allclose(log_likelihood, expected, rtol=1e-5)

    def test_coords_and_dims_of_the_user(self) -> None:
        with pm.Model() as model:
            pm.Normal("x", shape=2)
        wanted = {"coords": {"side": ["left", "right"]}, "dims": {"x": ["side"]}}
        result = pma.sample_ais(10, model=model, idata_kwargs=wanted, **QUICK)
        assert group(result, "posterior")["x"].dims == ("chain", "draw", "side")
        assert group(result, "posterior")["side"].values.tolist() == ["left", "right"]

    @pytest.mark.quick_cases("no_observed")
    @pytest.mark.parametrize("model", ["empty", "no_observed"])
    def test_log_evidence_of_no_data_is_zero(self, model: str) -> None:
        with pm.Model() as empty:
            pm.Normal("x", shape=0)
        built = empty if model == "empty" else by_name("no_observed").build()
        result = pma.sample_ais(20, chains=2, random_seed=1, progressbar=False, model=built)
        evidence = pma.log_evidence(result)
        assert evidence.log_evidence == pytest.approx(0, abs=1e-12)
        assert evidence.mcse == 0
        assert evidence.barrier == pytest.approx(0, abs=1e-6)

    def test_a_model_without_free_variables(self) -> None:
        with pm.Model() as model:
            pm.Normal("y", 0.0, 1.0, observed=[0.5])
        result = pma.sample_ais(20, chains=2, random_seed=1, progressbar=False, model=model)
        exact = -0.125 - 0.5 * np.log(2 * np.pi)
        assert pma.log_evidence(result).log_evidence == pytest.approx(exact, rel=1e-6)

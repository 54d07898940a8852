"""`rbm.sample_ais`: the container of a run."""

from typing import Any

import numpy as np
import pytest
import xarray as xr

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group, has_group
from pymc_anneal.rbm.paths import GeometricRBMPath
from tests.rbm.whole_runs import MODEL, assert_same, betas_of, estimate, quick_run, rbm_at
from tests.rbm_cases import enumerate_states


@pytest.fixture(scope="module")
def result() -> Any:
    return quick_run()


def test_groups(result) -> None:
    assert all(
        has_group(result, name) for name in ("posterior", "sample_stats", "annealing", "evidence")
    )
    posterior = group(result, "posterior")["visible"]
    assert posterior.dims == ("chain", "draw", "visible_dim_0")
    assert posterior.shape == (2, 100, 8)
    assert posterior.dtype == np.int8
    assert set(np.unique(posterior)) <= {0, 1}


def test_draws_are_those_of_the_rbm(result) -> None:
    mean = group(result, "posterior")["visible"].values.mean(axis=(0, 1))
    p = enumerate_states(MODEL).moments.visible
    deviation = np.abs(mean - p) / np.sqrt(p * (1 - p) / 200)
    assert deviation.max() < 5.5
    assert (np.abs(mean - 0.5) / np.sqrt(0.25 / 200)).max() > 5.5


def test_evidence(result) -> None:
    data, found = group(result, "evidence"), pma.log_evidence(result)
    assert found.log_evidence == float(data["log_evidence"])
    assert found.interval[0] < found.log_evidence < found.interval[1]
    assert data["steps"] == 200
    assert data["particles"] == 200
    assert data["seconds"] > 0
    assert data["log_weight_variance"] > 0
    assert data["perfect_mixing_variance"] > 0
    assert data.attrs["path"] == "GeometricRBMPath"
    assert data.attrs["transition"] == "BlockedGibbs"
    assert data.attrs["schedule"] == "linear_schedule"
    assert data.attrs["reference"] == "uniform"
    assert data.attrs["unit"] == "nats"


def test_weights_and_steps(result) -> None:
    data = group(result, "annealing")
    log_z0 = 14 * np.log(2)
    mean = np.logaddexp.reduce(data["log_weight"].values, axis=1) - np.log(100) + log_z0
    per_chain = group(result, "sample_stats")["log_marginal_likelihood"].values
    np.testing.assert_allclose(per_chain, mean, rtol=1e-12)
    np.testing.assert_allclose(data["log_z"].values[:, -1], mean, rtol=1e-12)
    assert data.sizes["step"] == 200
    assert np.isnan(data["step_size"]).all()
    assert (data["accept_rate"] == 1).all()
    # Estimates by step against exact partition functions along the path.
    path = GeometricRBMPath(np.zeros(8), MODEL.astype(np.float64))
    for k in (50, 120):
        model = rbm_at(path, betas_of(result)[k - 1])
        found = data["log_z"].values[:, k - 1].mean()
        assert found == pytest.approx(enumerate_states(model).log_z, abs=0.3)


def test_verdict(result) -> None:
    assert pma.log_evidence(result).verdict.trusted
    bad = estimate(steps=2, draws=100, target_mcse=0.01)
    assert not bad.verdict.trusted


def test_netcdf(result, tmp_path) -> None:
    pytest.importorskip("netCDF4")
    import arviz as az

    path = str(tmp_path / "result.nc")
    result.to_netcdf(path)
    tree = isinstance(result, xr.DataTree)
    loaded = xr.open_datatree(path) if tree else az.from_netcdf(path)
    assert pma.log_evidence(loaded) == pma.log_evidence(result)
    assert_same(loaded, result)

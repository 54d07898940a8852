"""The estimate of a container, fresh and loaded from a file."""

from dataclasses import replace

import arviz as az
import pymc as pm
import pytest
import xarray as xr

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container, group


@pytest.fixture(scope="module")
def idata():
    """A run too short to be trusted."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 3)
        pm.Normal("y", mu, 1, observed=[1.0, 2.0])
    return pma.sample_ais(
        30, steps=4, target_mcse=1e-3, model=model, progressbar=False, random_seed=1
    )


def test_fields(idata) -> None:
    found, evidence = pma.log_evidence(idata), group(idata, "evidence")
    assert found.log_evidence == float(evidence["log_evidence"])
    assert found.interval == (evidence["interval_lower"], evidence["interval_upper"])
    assert found.bounds is None
    assert not found.verdict.trusted
    assert found.verdict.reasons
    assert evidence.attrs["verdict"] == str(found.verdict)


def test_survives_netcdf(idata, tmp_path) -> None:
    idata.to_netcdf(tmp_path / "result.nc")
    open_file = xr.open_datatree if "InferenceData" not in vars(az) else az.from_netcdf
    loaded = open_file(tmp_path / "result.nc")
    assert pma.log_evidence(loaded) == pma.log_evidence(idata)


def test_not_a_result() -> None:
    message = r"sample_ais with a group 'evidence', found \w+ with the groups \['prior'\]"
    with pytest.raises(ValueError, match=message):
        pma.log_evidence(container({"prior": xr.Dataset({"mu": ("draw", [1.0])})}))


def test_draws_of_another_sampler() -> None:
    draws = {"posterior": xr.Dataset({"mu": ("draw", [1.0])})}
    with pytest.raises(ValueError, match=r"as of pymc.sample, .*bridge_evidence\(idata, model"):
        pma.log_evidence(container(draws))
    smc = {"sample_stats": xr.Dataset({"log_marginal_likelihood": ("chain", [1.0])})}
    with pytest.raises(ValueError, match=r"pymc.sample_smc, .*from_sample_smc\(idata\)"):
        pma.log_evidence(container(draws | smc))


def test_html(idata) -> None:
    found = pma.log_evidence(idata)
    html = found._repr_html_()
    assert f"± {found.mcse:.2g} nats" in html
    assert ">more steps needed</span>" in html or ">do not trust</span>" in html
    assert "forward, reverse runs" not in html
    assert "-2.0000, -1.0000" in replace(found, bounds=(-2.0, -1.0), mcse=1e-4)._repr_html_()

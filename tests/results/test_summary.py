"""The log evidence and the posterior in one table."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_anneal as pma


@pytest.mark.slow
def test_evidence_beside_the_posterior() -> None:
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 3)
        pm.Normal("y", mu, 1, observed=[1.0, 2.0])
    idata = pma.sample_ais(100, steps=20, model=model, progressbar=False, random_seed=1)
    table, found = pma.summary(idata), pma.log_evidence(idata)
    assert table.index.tolist() == ["log_evidence", "mu"]
    assert table.loc["log_evidence", "mean"] == pytest.approx(found.log_evidence, abs=1e-3)
    assert table.loc["log_evidence", "mcse_mean"] == pytest.approx(found.mcse, abs=1e-3)
    assert float(table.loc["mu", "mean"]) == pytest.approx(1.4, abs=0.3)
    assert table.attrs["verdict"] == str(found.verdict)
    assert pma.summary(idata, kind="stats").index.tolist() == ["log_evidence", "mu"]


def test_an_error_that_is_not_known_is_left_out(reported) -> None:
    idata = reported["narrow"].copy()
    assert pma.summary(idata).loc["log_evidence", "mcse_mean"] != ""
    idata["evidence"].attrs = {**idata["evidence"].attrs, **pma.Verdict("do not trust").to_attrs()}
    assert pma.summary(idata).loc["log_evidence", "mcse_mean"] == ""


def test_an_effective_sample_size_that_is_not_known_is_left_out(reported) -> None:
    idata = reported["narrow"].copy()
    idata["evidence"] = idata["evidence"].assign(ess=xr.DataArray(np.nan))
    assert pma.summary(idata).loc["log_evidence", "ess_bulk"] == ""


def test_not_a_result() -> None:
    with pytest.raises(ValueError, match="group 'evidence'"):
        pma.summary({})

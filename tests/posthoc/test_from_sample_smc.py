"""Results of pm.sample_smc, converted."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr

from scipy.special import logsumexp

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import container, group
from pymc_anneal.posthoc.from_sample_smc import from_sample_smc


@pytest.fixture(scope="module")
def raw():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 3)
        pm.Normal("y", mu, 1, observed=[1.0, 2.0, 3.0])
    return pm.sample_smc(
        200,
        chains=3,
        cores=1,
        model=model,
        progressbar=False,
        random_seed=1,
        compute_convergence_checks=False,
    )


def result(stages: list[list[float]], dtype=object) -> object:
    """Return a result as PyMC writes it: a list of stages for each chain."""
    values = np.empty(len(stages), dtype=object)
    values[:] = stages
    if dtype is float:
        values = np.array(stages)
        data = xr.Dataset({"log_marginal_likelihood": (("chain", "stage"), values)})
    else:
        data = xr.Dataset({"log_marginal_likelihood": ("chain", values)})
    return container({"sample_stats": data})


def test_a_real_result(raw, tmp_path) -> None:
    converted = from_sample_smc(raw)
    found = pma.log_evidence(converted)
    covariance = np.eye(3) + 9
    y = np.array([1.0, 2.0, 3.0])
    exact = -0.5 * (y @ np.linalg.solve(covariance, y) + np.linalg.slogdet(covariance)[1])
    exact -= 1.5 * np.log(2 * np.pi)
    assert abs(found.log_evidence - exact) < 0.5
    assert found.interval[0] < found.log_evidence < found.interval[1]
    stats = group(converted, "sample_stats")
    assert stats["log_marginal_likelihood"].shape == (3,)
    assert stats["beta"].dims == ("chain", "stage")
    np.testing.assert_allclose(np.nanmax(stats["beta"], axis=1), 1.0)
    converted.to_netcdf(tmp_path / "result.nc")


def test_the_mean_of_the_chains() -> None:
    stages = [[np.nan, -3.0], [np.nan, np.nan, -4.0], [np.nan, -3.5]]
    found = pma.log_evidence(from_sample_smc(result(stages)))
    final = np.array([-3.0, -4.0, -3.5])
    assert found.log_evidence == pytest.approx(logsumexp(final) - np.log(3), abs=1e-12)
    z = np.exp(final)
    assert found.mcse == pytest.approx(np.sqrt(np.log1p(z.var(ddof=1) / 3 / z.mean() ** 2)))
    # Student's quantile for three chains.
    assert found.interval[1] - found.log_evidence == pytest.approx(4.302653 * found.mcse)
    assert found.verdict.status == "more evidence needed"
    assert "spread of 3 chains" in str(found.verdict)


def test_chains_of_equal_length() -> None:
    stages = [[np.nan, -3.0], [np.nan, -4.0]]
    for dtype in (object, float):
        found = pma.log_evidence(from_sample_smc(result(stages, dtype)))
        assert found.log_evidence == pytest.approx(logsumexp([-3.0, -4.0]) - np.log(2))


def test_compared_with_a_trusted_one(raw) -> None:
    ours = pma.LogEvidence(-5.6, 0.02, (-5.64, -5.56), 500, 0.1, 2.0, pma.Verdict("trust"))
    found = pma.compare({"smc": from_sample_smc(raw), "ais": ours})
    assert str(found.verdict).startswith("more evidence needed: smc: the error is the spread")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "found dict"),
        (container({"sample_stats": xr.Dataset({"lp": ("chain", [1.0])})}), r"found \['lp'\]"),
        (result([[np.nan, -3.0]]), "one chain"),
    ],
)
def test_what_is_not_a_result(value, message) -> None:
    with pytest.raises(ValueError, match=message):
        from_sample_smc(value)

"""`rbm.log_likelihood`: data under an RBM whose partition function was estimated."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal import rbm
from pymc_anneal.base.arviz_compat import container, group
from tests.rbm.whole_runs import LOG_Z, MODEL, QUICK, quick_run

DATA = rbm.sample_exact(MODEL, 50, random_seed=3)
EXACT = MODEL.log_likelihood(DATA, LOG_Z)


@pytest.fixture(scope="module")
def both() -> Any:
    draws = rbm.sample_exact(MODEL, 200, random_seed=2)
    return rbm.sample_ais(MODEL, reverse_from=draws, **QUICK)


class TestForwardRuns:
    def test_mean_and_errors(self) -> None:
        found = rbm.log_likelihood(DATA, quick_run())
        evidence = pma.log_evidence(quick_run())
        assert found.mcse == evidence.mcse
        assert abs(found.log_likelihood - EXACT.mean()) < 4 * found.mcse
        assert found.standard_error == pytest.approx(EXACT.std(ddof=1) / np.sqrt(50))
        width = evidence.interval[1] - evidence.interval[0]
        assert found.interval[1] - found.interval[0] == pytest.approx(width)
        assert found.interval[0] < found.log_likelihood < found.interval[1]
        assert found.bounds is None
        assert found.verdict.trusted

    def test_rows(self) -> None:
        found = rbm.log_likelihood(DATA, quick_run())
        np.testing.assert_allclose(found.by_row - found.by_row[0], EXACT - EXACT[0], atol=1e-4)
        one = rbm.log_likelihood(DATA[:1], quick_run())
        assert one.log_likelihood == pytest.approx(found.by_row[0])
        assert np.isnan(one.standard_error)

    def test_text(self) -> None:
        text = repr(rbm.log_likelihood(DATA, quick_run()))
        assert "nats per row" in text
        assert "50 rows" in text
        assert "bounds" not in text

    def test_no_error_beside_do_not_trust(self) -> None:
        found = rbm.log_likelihood(DATA, quick_run())
        doubtful = replace(found, verdict=pma.Verdict("do not trust", ("k",)))
        assert "error not known" in repr(doubtful)
        assert "+-" not in repr(doubtful)
        assert "interval" not in repr(doubtful)


class TestBothDirections:
    def test_the_lower_bound_is_that_of_the_reverse_runs(self, both) -> None:
        found, numbers = rbm.log_likelihood(DATA, both), group(both, "evidence")
        log_density = MODEL.log_density(DATA).mean()
        assert found.bounds == pytest.approx(
            (
                log_density - float(numbers["upper_bound"]),
                log_density - float(numbers["lower_bound"]),
            )
        )
        assert found.interval[0] < min(found.bounds)
        assert max(found.bounds) < found.interval[1]
        assert found.interval[0] < EXACT.mean() < found.interval[1]
        assert "(reverse runs)" in repr(found)

    def test_a_saved_result_is_complete(self, both, tmp_path) -> None:
        pytest.importorskip("netCDF4")
        import arviz as az
        import xarray as xr

        path = str(tmp_path / "result.nc")
        both.to_netcdf(path)
        loaded = xr.open_datatree(path) if isinstance(both, xr.DataTree) else az.from_netcdf(path)
        assert repr(rbm.log_likelihood(DATA, loaded)) == repr(rbm.log_likelihood(DATA, both))


class TestArguments:
    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (np.zeros((3, 9)), r"`data` has shape \(3, 9\), expected"),
            (np.zeros(8), r"`data` has shape \(8,\), expected"),
            (np.full((3, 8), 7), "`data` ranges from 7 to 7"),
        ],
    )
    def test_data(self, data: np.ndarray, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            rbm.log_likelihood(data, quick_run())

    def test_results_of_other_functions(self) -> None:
        with pytest.raises(ValueError, match="Expected a result of pymc_anneal.rbm.sample_ais"):
            rbm.log_likelihood(DATA, LOG_Z)
        groups = {name: group(quick_run(), name) for name in ("evidence", "constant_data")}
        groups["constant_data"] = groups["constant_data"].drop_vars("weights")
        with pytest.raises(ValueError, match="'constant_data' has no weights"):
            rbm.log_likelihood(DATA, container(groups))

"""`sample_ais`: results on disk, and results read back."""

import pytest
import xarray as xr

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group
from tests.sampling.small_model import assert_same, small_result


@pytest.fixture(scope="module")
def result():
    return small_result()


class TestSaving:
    @pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
    def test_netcdf(self, result, tmp_path, engine: str) -> None:
        for package in {"netcdf4": ["netCDF4"], "h5netcdf": ["h5netcdf", "h5py"]}[engine]:
            pytest.importorskip(package)
        import arviz as az

        path = str(tmp_path / "result.nc")
        if isinstance(result, xr.DataTree):
            result.to_netcdf(path, engine=engine)
            loaded = xr.open_datatree(path, engine=engine)
        else:
            result.to_netcdf(path, engine=engine)
            loaded = az.from_netcdf(path, engine=engine)
        assert pma.log_evidence(loaded) == pma.log_evidence(result)
        assert_same(loaded, result)

    # zarr 3 about coords that are text.
    @pytest.mark.filterwarnings("ignore:The data type:Warning")
    def test_zarr(self, result, tmp_path) -> None:
        zarr = pytest.importorskip("zarr")
        path = str(tmp_path / "result.zarr")
        if isinstance(result, xr.DataTree):
            result.to_zarr(path)
            loaded = xr.open_datatree(path, engine="zarr")
        elif int(zarr.__version__.split(".")[0]) >= 3:
            # ArviZ 0.23 writes zarr 2 only: through xarray.
            tree = xr.DataTree.from_dict({name: group(result, name) for name in result.groups()})
            tree.to_zarr(path)
            loaded = xr.open_datatree(path, engine="zarr")
        else:
            result.to_zarr(path)
            loaded = type(result).from_zarr(path)
        assert pma.log_evidence(loaded) == pma.log_evidence(result)
        assert_same(loaded, result)

    def test_every_variable_is_rectangular(self, result) -> None:
        names = result.children if isinstance(result, xr.DataTree) else result.groups()
        for name in names:
            for variable in group(result, name).variables.values():
                assert variable.dtype != object or isinstance(variable.values.flat[0], str)


class TestLogEvidence:
    def test_repr(self, result) -> None:
        text = repr(pma.log_evidence(result))
        for part in ("log evidence", "error not known", "ESS", "Pareto k", "do not trust"):
            assert part in text
        assert f"{pma.log_evidence(result).log_evidence:.2f}" in text

    @pytest.mark.parametrize("wrong", [3, {"posterior": 1}, None, xr.Dataset()])
    def test_an_object_of_another_kind(self, wrong: object) -> None:
        with pytest.raises(ValueError, match=f"sample_ais .* found {type(wrong).__name__}"):
            pma.log_evidence(wrong)

    def test_a_container_without_evidence(self, result) -> None:
        other = type(result)
        bare = (
            other.from_dict({"posterior": group(result, "posterior")})
            if isinstance(result, xr.DataTree)
            else other(posterior=group(result, "posterior"))
        )
        with pytest.raises(ValueError, match="with a group 'evidence'"):
            pma.log_evidence(bare)

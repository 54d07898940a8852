"""`sample_ais`: models with discrete variables."""

import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group
from tests.model.discrete_model import discrete_model
from tests.problems import ising

QUICK = {"discrete": "sample", "draws": 100, "chains": 2, "random_seed": 1, "progressbar": False}


@pytest.fixture(scope="module")
def result():
    return pma.sample_ais(model=discrete_model(), reverse_from="draws", **QUICK)


@pytest.mark.slow
class TestResult:
    def test_draws_keep_their_type(self, result) -> None:
        posterior = group(result, "posterior")
        assert posterior["z"].dtype == posterior["n"].dtype == np.int64
        assert posterior["z"].dims == ("chain", "draw", "site")
        assert set(np.unique(posterior["z"])) == {0, 1}
        total = posterior["z"].sum("site") + posterior["n"]
        np.testing.assert_array_equal(posterior["total"], total)

    def test_evidence_of_both_directions(self, result) -> None:
        evidence = pma.log_evidence(result)
        assert evidence.verdict.trusted
        assert evidence.mcse < 0.1

    def test_name_of_the_transition(self, result) -> None:
        attrs = group(result, "evidence").attrs
        assert attrs["transition"] == "HMC, Gibbs, JointFlip, DiscreteRandomWalk"
        assert (group(result, "annealing")["step_size"] > 0).all()

    def test_other_functions_take_the_result(self, result, tmp_path) -> None:
        again = pma.sample_ais(model=discrete_model(), steps=10, reverse_from=result, **QUICK)
        found = pma.compare({"once": result, "again": again})
        assert found.table["log_evidence"].notna().all()
        assert pma.compare_estimators(result)["agrees"].all()
        assert "z[a]" in pma.summary(result).index
        result.to_netcdf(tmp_path / "result.nc")

    def test_the_same_seed_gives_the_same_bits(self, result) -> None:
        again = pma.sample_ais(model=discrete_model(), reverse_from="draws", **QUICK)
        for name in ("z", "n", "mu"):
            np.testing.assert_array_equal(
                group(again, "posterior")[name], group(result, "posterior")[name]
            )


@pytest.mark.slow
def test_binary_variables_alone() -> None:
    problem = ising(2)
    result = pma.sample_ais(model=problem.build(), **QUICK)
    evidence = pma.log_evidence(result)
    assert abs(evidence.log_evidence - problem.log_evidence) < 4 * evidence.mcse
    assert group(result, "evidence").attrs["transition"] == "Gibbs, JointFlip"
    annealing = group(result, "annealing")
    assert np.isnan(annealing["step_size"]).all()
    assert (annealing["accept_rate"] > 0).all()
    pma.plot_annealing(result)

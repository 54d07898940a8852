"""Runs along the path of q-averages."""

import pytest

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group
from tests.pipeline.conflict import is_near, run_along


@pytest.mark.slow
def test_evidence() -> None:
    idata = run_along(pma.QPath())
    assert is_near(idata)
    assert group(idata, "evidence").attrs["path"] == "QAveragePath"


@pytest.mark.parametrize("q", [1.0, 1.5, float("nan")])
def test_q_is_below_one(q: float) -> None:
    with pytest.raises(ValueError, match="`q` is .*, expected a number below 1"):
        pma.QPath(q)

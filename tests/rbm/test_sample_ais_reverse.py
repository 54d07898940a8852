"""`rbm.sample_ais` from exact draws of the RBM down to the reference."""

from typing import Any

import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal import rbm
from pymc_anneal.base.arviz_compat import group, has_group
from pymc_anneal.rbm.exact import MAX_UNITS
from pymc_anneal.rbm.model import reference_log_partition_function
from pymc_anneal.rbm.paths import GeometricRBMPath
from tests.rbm.whole_runs import BASE, LOG_Z, MODEL, QUICK, betas_of, is_near, rbm_at
from tests.rbm_cases import enumerate_states, mean_agrees

ARGUMENTS = QUICK | {"direction": "reverse", "reference": BASE}


@pytest.fixture(scope="module")
def result() -> Any:
    return rbm.sample_ais(MODEL, **ARGUMENTS)


def test_log_partition_function(result) -> None:
    assert is_near(pma.log_evidence(result))


@pytest.mark.parametrize(
    "arguments",
    [{"schedule": "variational"}, {"reference": "uniform"}],
    ids=str,
)
def test_other_arguments(arguments: dict[str, Any]) -> None:
    found = rbm.sample_ais(MODEL, **ARGUMENTS | arguments)
    assert is_near(pma.log_evidence(found))


def test_the_other_sign_is_wrong(result) -> None:
    log_weight = group(result, "annealing")["log_weight"].values
    log_z0 = reference_log_partition_function(BASE)
    mean = np.logaddexp.reduce(log_weight, axis=None) - np.log(log_weight.size)
    assert log_z0 - mean == pytest.approx(pma.log_evidence(result).log_evidence)
    assert abs(log_z0 + mean - LOG_Z) > 5 * pma.log_evidence(result).mcse


def test_temperatures_fall_to_the_reference(result) -> None:
    np.testing.assert_allclose(betas_of(result), 1 - np.arange(1, 201) / 200, atol=1e-15)
    assert has_group(result, "prior")
    assert not has_group(result, "posterior")
    visible = group(result, "prior")["visible"].values.reshape(-1, 8)
    assert mean_agrees(visible, enumerate_states(BASE).moments.visible)
    assert not mean_agrees(visible, np.full(8, 0.5))


def test_estimates_by_step(result) -> None:
    # log Z of the RBM at each temperature, as of a forward run.
    path = GeometricRBMPath(BASE.visible_bias, MODEL.astype(np.float64))
    log_z = group(result, "annealing")["log_z"].values.mean(axis=0)
    for k in (0, 80, 150, 199):
        model = rbm_at(path, betas_of(result)[k])
        assert log_z[k] == pytest.approx(enumerate_states(model).log_z, abs=0.3)


def test_large_rbms_are_refused() -> None:
    large = rbm.uniform_reference(MAX_UNITS + 1, MAX_UNITS + 2)
    with pytest.raises(ValueError, match="smaller layer has 26 units.* at most 25"):
        rbm.sample_ais(large, **QUICK, direction="reverse")


def test_unknown_directions() -> None:
    with pytest.raises(ValueError, match="`direction` is 'down', expected \"forward\" or"):
        rbm.sample_ais(MODEL, **QUICK, direction="down")


def test_fewer_particles_than_an_effective_number_takes() -> None:
    model = rbm.RBM(np.ones(4), np.ones(3), np.full((4, 3), 0.3))
    start = [[1, 0, 1, 0], [0, 0, 1, 1]]
    run = {"chains": 1, "steps": 50, "reverse_from": start, "random_seed": 1, "progressbar": False}
    found = pma.log_evidence(rbm.sample_ais(model, 3, **run))
    assert np.isfinite([found.log_evidence, found.mcse]).all()

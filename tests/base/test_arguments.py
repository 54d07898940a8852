"""Checks of arguments: clear messages for frequent mistakes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.base.arguments import check_target, resolve
from pymc_anneal.base.contracts import Transition


def test_a_class_instead_of_an_object() -> None:
    with pytest.raises(TypeError, match=r"is the class HMC, expected an object: HMC\(\.\.\.\)"):
        resolve(pma.HMC, {"hmc": pma.HMC}, "transition", Transition)


@pytest.mark.parametrize("value", ["0.1", None, 0.0, -1.0, np.inf, np.nan])
def test_targets_that_are_not_positive_numbers(value: Any) -> None:
    with pytest.raises(ValueError, match="`target_mcse` is .*, expected a positive number of nats"):
        check_target(value)


@pytest.mark.parametrize("value", [1, 0.1, np.float32(0.1)])
def test_positive_targets(value: Any) -> None:
    check_target(value)


@pytest.mark.parametrize(
    ("function", "argument"),
    [
        (pma.find_map, "draws"),
        (pma.calibrate, "n_datasets"),
        (pma.power_posterior, "betas"),
    ],
)
def test_a_model_by_position(function: Callable[..., Any], argument: str) -> None:
    with pm.Model() as model:
        pm.Normal("x")
    with pytest.raises(TypeError, match=f"`{argument}` is a Model: pass a model by name, `model=`"):
        function(model)

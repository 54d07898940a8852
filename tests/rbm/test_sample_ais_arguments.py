"""`rbm.sample_ais`: arguments that make no sense."""

from typing import Any

import numpy as np
import pytest

from pymc_anneal import rbm
from pymc_anneal.rbm.exact import MAX_UNITS
from tests.rbm.whole_runs import MODEL, QUICK


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"draws": 0}, "`draws` is 0, expected a positive whole number"),
        ({"chains": 1.5}, "`chains` is 1.5, expected a positive whole number"),
        ({"steps": -1}, "`steps` is -1, expected a positive whole number"),
        ({"block_size": 0}, "`block_size` is 0, expected a positive whole number"),
        ({"block_size": -5}, "`block_size` is -5, expected a positive whole number"),
        ({"cores": 0}, "`cores` is 0, expected a positive whole number"),
        ({"target_mcse": -1.0}, "`target_mcse` is -1.0, expected a positive number"),
        ({"random_seed": "a"}, "`random_seed` is 'a', expected"),
        ({"schedule": "wrong"}, "Unknown `schedule` 'wrong'; expected one of .*variational"),
        ({"schedule": [0.0, 0.5]}, "starts at 0.0 and ends at 0.5, expected exactly 0 and 1"),
        ({"schedule": lambda k: np.ones(k)}, "expected exactly 0 and 1"),
        ({"path": "wrong"}, "Unknown `path` 'wrong'; expected \"geometric\""),
        ({"reference": "wrong"}, "Unknown `reference` 'wrong'; expected \"uniform\""),
        ({"reference": MODEL}, "48 of them not zero; expected an RBM .* with W = 0"),
        ({"reference": rbm.uniform_reference(8, 5)}, r"shape \(8, 5\).* of shape \(8, 6\)"),
        ({"transition": "wrong"}, "Unknown `transition` 'wrong'; expected one of .*perfect"),
        ({"schedule": "variational", "max_step": 1e-3}, "`max_step` is 0.001"),
    ],
)
def test_values(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rbm.sample_ais(MODEL, **QUICK | arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"transition": 3}, "`transition` is a int without the methods"),
        ({"path": 3}, "`path`"),
        ({"reference": np.zeros((8, 6))}, "`reference`"),
    ],
)
def test_kinds(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        rbm.sample_ais(MODEL, **QUICK | arguments)


def test_perfect_transitions_of_a_large_rbm() -> None:
    large = rbm.uniform_reference(MAX_UNITS + 1, MAX_UNITS + 2)
    with pytest.raises(ValueError, match="smaller layer has 26 units.* at most 25"):
        rbm.sample_ais(large, **QUICK | {"transition": "perfect"})

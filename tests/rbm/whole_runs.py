"""One RBM with an exact partition function, and settings of short runs on it."""

from functools import cache
from typing import Any

import jax
import numpy as np

import pymc_anneal as pma

from pymc_anneal import rbm
from pymc_anneal.base.arviz_compat import group
from pymc_anneal.rbm.exact import log_partition_function, sample_exact
from tests.rbm_cases import random_rbm

# One RBM and one size of block, so that little is compiled.
MODEL = random_rbm(8, 6, seed=4, scale=1.3, dtype=np.float32)
LOG_Z = log_partition_function(MODEL)
BASE = rbm.base_rate_reference(sample_exact(MODEL, 100, random_seed=1), 6)
QUICK: dict[str, Any] = {
    "draws": 100,
    "chains": 2,
    "steps": 200,
    "schedule": "linear",
    "random_seed": 1,
    "block_size": 100,
    "progressbar": False,
}


@cache
def quick_run() -> Any:
    """Return a run with the settings above."""
    return rbm.sample_ais(MODEL, **QUICK)


def estimate(**arguments: Any) -> pma.LogEvidence:
    """Return the estimate of a run with some settings changed."""
    return pma.log_evidence(rbm.sample_ais(MODEL, **QUICK | arguments))


def is_near(found: pma.LogEvidence, log_z: float = LOG_Z) -> bool:
    """Return whether an estimate with even weights is within four standard errors of log Z."""
    assert found.ess > 50
    assert 0 < found.mcse < 0.2
    return abs(found.log_evidence - log_z) < 4 * found.mcse


def betas_of(result: Any) -> np.ndarray:
    """Return the temperatures of a run."""
    return group(result, "annealing")["beta"].values[0]


def rbm_at(path: rbm.RBMPath, beta: float) -> rbm.RBM:
    """Return the RBM of a path at a temperature, in double precision."""
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, path.model_at(beta))


def assert_same(first: Any, second: Any) -> None:
    """Two results hold the same numbers."""
    for name in ("posterior", "sample_stats", "annealing", "evidence"):
        left, right = group(first, name), group(second, name)
        assert set(left.variables) == set(right.variables)
        for variable in set(left.variables) - {"seconds"}:
            np.testing.assert_array_equal(left[variable].values, right[variable].values)

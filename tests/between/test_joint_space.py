"""The union of the variables of two models: places, and draws of what one of them lacks."""

import numpy as np
import pymc as pm
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.between.joint_space import JointSpace, join_models


@pytest.fixture(scope="module")
def space() -> JointSpace:
    """Two variables in the first model, and the last of them with another one in the second."""
    with pm.Model() as first:
        pm.Normal("a", 5.0, 0.1)
        pm.Normal("y", pm.Normal("b"), 1.0, observed=0.4)
    with pm.Model() as second:
        b = pm.Normal("b")
        pm.Normal("y", b + pm.Normal("c", -7.0, 0.1), 1.0, observed=0.4)
    return join_models(pma.compile_model(first), pma.compile_model(second))


def test_places(space: JointSpace) -> None:
    assert space.ndim == 3
    np.testing.assert_array_equal(space.columns, [1, 2])


def test_draws_of_either_model_are_completed(space: JointSpace) -> None:
    """With the priors of what is missing, and what is given in its place."""
    seed, draws = np.random.SeedSequence(1), np.random.default_rng(1).normal(size=(500, 2))
    for complete, given, lacking, mean in (
        (space.complete_first, [0, 1], 2, -7.0),
        (space.complete_second, [1, 2], 0, 5.0),
    ):
        x = complete(seed, draws)
        np.testing.assert_array_equal(x[:, given], draws)
        assert stats.kstest(x[:, lacking], stats.norm(mean, 0.1).cdf).pvalue > 1e-4

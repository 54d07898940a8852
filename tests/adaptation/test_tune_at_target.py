"""Tuning at the posterior, from particles that were brought there before."""

import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation.tune_at_target import rescale_at_target, tune_at_target
from tests.adaptation.normal_path import normal_path, normal_pilot


@pytest.mark.quick_cases("0.01")
@pytest.mark.parametrize("spread", [1e-2, 1.0])
def test_it_finds_the_step_size_of_the_target(spread) -> None:
    """The particles have to be those of the target, of whatever scale."""
    survey = normal_pilot(pma.HMC())
    path = normal_path(1, 1.0, 0.0, spread)
    sd = (1 + spread**-2) ** -0.5
    position = sd * np.random.default_rng(1).normal(size=(500, 1))
    tuned = tune_at_target(survey, path, pma.HMC(), position, np.random.SeedSequence(2))
    assert tuned.evaluations > survey.evaluations
    assert tuned.betas is survey.betas
    for name in ("tau", "cost", "accept_rate"):
        now, before = getattr(tuned, name), getattr(survey, name)
        assert now.shape == before.shape
        np.testing.assert_array_equal(now[:-1], before[:-1])
    assert tuned.position.std() == pytest.approx(sd, rel=0.15)
    assert 0.6 < tuned.accept_rate[-1] < 0.99
    assert tuned.tau[-1] < 3


@pytest.mark.parametrize("spread", [1e-2, 1.0])
def test_the_scale_alone(spread) -> None:
    """The shortest moves, at the scale of the particles, which stay where they are."""
    survey = normal_pilot(pma.HMC())
    path = normal_path(1, 1.0, 0.0, spread)
    sd = (1 + spread**-2) ** -0.5
    position = sd * np.random.default_rng(1).normal(size=(500, 1))
    found = rescale_at_target(survey, path, pma.HMC(), position)
    np.testing.assert_array_equal(found.position, position)
    kernel = found.transition.at(1.0)
    assert int(kernel.n_steps) == 1
    assert float(np.asarray(kernel.scale).item()) == pytest.approx(sd, rel=0.1)
    assert found.evaluations == survey.evaluations + len(position)

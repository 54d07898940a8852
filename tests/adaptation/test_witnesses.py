"""The particles of a survey that are held out."""

from dataclasses import replace

import numpy as np
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.adaptation.witnesses import held_out, settled, to_fit
from tests.adaptation.normal_path import normal_path, normal_pilot


@pytest.fixture(scope="module")
def pilot():
    return normal_pilot(pma.HMC())


def test_no_particle_is_in_both_halves(pilot) -> None:
    witnesses, fitted = held_out(pilot), to_fit(pilot.position)
    assert len(witnesses.position) + len(fitted) == len(pilot.position)
    assert not np.intersect1d(witnesses.position, fitted).size
    every = dict(zip(pilot.position.ravel(), pilot.ancestor, strict=True))
    assert [every[x] for x in witnesses.position.ravel()] == witnesses.family.tolist()


def test_families_are_in_both_halves(pilot) -> None:
    """Those of one ancestor stand side by side."""
    assert (np.diff(pilot.ancestor) >= 0).all()
    large = np.flatnonzero(np.bincount(pilot.ancestor) >= 4)
    assert len(large) > 10
    assert np.isin(large, held_out(pilot).family).all()
    assert np.isin(large, to_fit(pilot.ancestor)).all()


def test_particles_settle_at_the_posterior(pilot) -> None:
    """From draws that are too narrow by half; and draws of the posterior stay such."""
    sd = (1 + 0.5**-2) ** -0.5
    posterior = stats.norm(sd**2 * 3.0 / 0.5**2, sd)
    path = normal_path(1, 1.0, 3.0, 0.5)
    exact = posterior.rvs(size=(2000, 1), random_state=1)
    for position in (exact, exact.mean() + 0.5 * (exact - exact.mean())):
        moved, spent = settled(replace(pilot, position=position), path, np.random.SeedSequence(2))
        assert spent == 16 * int(pilot.cost[-1]) * 2000
        assert stats.kstest(moved.position.ravel(), posterior.cdf).pvalue > 1e-3
        assert moved.ancestor is pilot.ancestor

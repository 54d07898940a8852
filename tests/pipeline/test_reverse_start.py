"""Starts of reverse runs."""

from types import SimpleNamespace

import numpy as np

import pymc_anneal as pma

from pymc_anneal.pipeline.reverse_start import OwnDraws, PosteriorDraws
from tests.pipeline.log_gamma_target import FIXED, LogGammaTarget, log_gamma_session

# Moves that lead nowhere: where particles start, they are found again.
STILL = pma.RandomWalkMetropolis(1e-12, 1, 1.0)


def forward(log_weight: np.ndarray) -> SimpleNamespace:
    """Return a run whose particles differ by whole numbers, as far as starts look at it."""
    position = np.arange(2 * log_weight.size, dtype=float).reshape(*log_weight.shape, 2) / 100
    run = SimpleNamespace(log_weight=log_weight, position=position)
    candidate = LogGammaTarget().candidate()
    return SimpleNamespace(run=run, pilot=None, transition=STILL, candidate=candidate)


def test_own_draws_are_taken_by_their_weights_within_each_chain() -> None:
    weight = np.ones((2, 50))
    weight[0, 7], weight[1, 30] = 1e9, 49  # all of a chain, and half of the other one
    made = forward(np.log(weight))
    with log_gamma_session(**FIXED) as session:
        found = OwnDraws().draw(session, made, np.random.SeedSequence(1))
    assert found.shape == (2, 50, 2)
    copies = np.isclose(found, [made.run.position[[0], 7], made.run.position[[1], 30]]).all(axis=2)
    assert copies[0].all()
    assert 24 <= copies[1].sum() <= 26
    assert np.isclose(found[1][:, None], made.run.position[1]).all(axis=2).any(axis=1).all()


def test_given_draws_are_evenly_spaced() -> None:
    draws = np.arange(1000.0).reshape(4, 250, 1)
    with log_gamma_session(**FIXED) as session:
        made = forward(np.zeros((2, 50)))
        found = PosteriorDraws(draws).draw(session, made, np.random.SeedSequence(1))
    assert found.shape == (2, 50, 1)
    assert np.ptp(np.diff(found.ravel())) <= 1
    assert (found.min(), found.max()) == (0, 999)

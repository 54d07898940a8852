"""Candidates of a run."""

from dataclasses import replace

import numpy as np
import pytest

from pymc_anneal.adaptation.pilot import Pilot
from pymc_anneal.pipeline.target import RunCandidate
from tests.pipeline.log_gamma_target import KERNEL, LogGammaTarget


def make_pilot(evaluations: int) -> Pilot:
    """A pilot of two steps with ``sum sqrt(D tau c) = 3``."""
    return Pilot(
        betas=np.array([0.0, 0.5, 1.0]),
        discrepancy=np.array([0.25, 1.0]),
        log_reference_mass=0.0,
        transition=KERNEL,
        tau=np.array([2.0, 1.0]),
        cost=np.array([2.0, 4.0]),
        accept_rate=np.ones(2),
        log_z=0.0,
        position=np.zeros((5, 2)),
        ancestor=np.arange(5),
        evaluations=evaluations,
    )


PLAIN = LogGammaTarget().candidate()
FIRST = replace(PLAIN, pilot=make_pilot(100))
SECOND = replace(PLAIN, pilot=make_pilot(30), built_from=FIRST)


def test_cost_is_that_of_the_best_schedule() -> None:
    assert FIRST.cost == pytest.approx(9.0)
    assert PLAIN.cost == np.inf


def test_lineage_goes_back_to_the_first_candidate() -> None:
    third = RunCandidate("third", PLAIN.draw_reference, PLAIN.path, built_from=SECOND)
    assert third.lineage == (third, SECOND, FIRST)
    assert FIRST.lineage == (FIRST,)

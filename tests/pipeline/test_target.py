"""Candidates of a run, and the evaluations that choosing among them took."""

from dataclasses import replace

import numpy as np
import pytest

from pymc_anneal.adaptation.pilot import Pilot
from pymc_anneal.pipeline.target import (
    Choice,
    RunCandidate,
    spent_elsewhere,
    spent_evaluations,
)
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
SECOND = replace(PLAIN, pilot=make_pilot(30), built_from=FIRST, fit_evaluations=7)


def test_cost_is_that_of_the_best_schedule() -> None:
    assert FIRST.cost == pytest.approx(9.0)
    assert PLAIN.cost == np.inf


def test_lineage_goes_back_to_the_first_candidate() -> None:
    third = RunCandidate("third", PLAIN.draw_reference, PLAIN.path, built_from=SECOND)
    assert third.lineage == (third, SECOND, FIRST)
    assert FIRST.lineage == (FIRST,)


class TestSpentEvaluations:
    def test_every_pilot_and_fit_counts_once(self) -> None:
        reference = Choice(SECOND, {"first": FIRST, "second": SECOND})
        path = Choice(replace(SECOND), {})
        assert spent_evaluations((reference,), SECOND.pilot) == 100 + 30 + 7
        # A copy of the candidate is another fit, but has the same pilot.
        assert spent_evaluations((reference, path), SECOND.pilot) == 100 + 30 + 2 * 7

    def test_without_choices_the_pilot_of_the_run_counts(self) -> None:
        only = Choice(PLAIN, {})
        assert spent_evaluations((only, only), make_pilot(11)) == 11
        assert spent_evaluations((only, only), None) == 0

    def test_wasted_attempts_count(self) -> None:
        choice = Choice(FIRST, {"first": FIRST}, "it was too long", wasted=19)
        assert spent_evaluations((choice, Choice(FIRST, {})), FIRST.pilot) == 100 + 19

    def test_those_in_other_coordinates(self) -> None:
        moved = replace(FIRST, pilot=replace(make_pilot(100), elsewhere=90))
        fitted = replace(PLAIN, pilot=make_pilot(5), built_from=moved)
        assert spent_elsewhere(fitted) == 90
        # The same pilot counts once.
        assert spent_elsewhere(replace(fitted, pilot=moved.pilot)) == 90

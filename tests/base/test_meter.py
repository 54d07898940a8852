"""The meter: evaluations and seconds by stage."""

from dataclasses import dataclass

import pytest

from pymc_anneal.base.meter import AbandonedError, Meter, Reading, from_json, to_json


@dataclass
class Found:
    evaluations: int


def test_stages_add_up_in_their_order() -> None:
    meter = Meter()
    meter.add("Survey", 10, 0.5)
    meter.add("Fit", 1, 0.25)
    meter.add("Survey", 5, 0.5)
    assert meter.stages == {"Survey": Reading(15, 1.0), "Fit": Reading(1, 0.25)}
    assert list(meter.stages) == ["Survey", "Fit"]
    assert meter.evaluations == 16


def test_a_computation_is_counted_and_timed() -> None:
    meter = Meter()
    assert meter.run("Fit", lambda: Found(7)).evaluations == 7
    assert meter.stages["Fit"].evaluations == 7
    assert 0 < meter.stages["Fit"].seconds < 60


def test_what_was_counted_before_counts_once() -> None:
    meter = Meter()
    survey = meter.run("Survey", lambda: Found(100))
    meter.run("Tuning", lambda: Found(130), before=survey.evaluations)
    assert [reading.evaluations for reading in meter.stages.values()] == [100, 30]


def test_an_attempt_that_was_abandoned_counts() -> None:
    meter = Meter()

    def give_up() -> Found:
        raise AbandonedError("too long", 19)

    with pytest.raises(AbandonedError, match="too long"):
        meter.run("Pilot", give_up)
    assert meter.evaluations == 19


def test_a_failure_of_another_kind_counts_its_time_only() -> None:
    meter = Meter()
    with pytest.raises(ZeroDivisionError):
        meter.run("Pilot", lambda: Found(1 // 0))
    assert meter.evaluations == 0
    assert "Pilot" in meter.stages


def test_nothing_may_be_found() -> None:
    meter = Meter()
    assert meter.run("Levels", lambda: None) is None
    assert meter.evaluations == 0


def test_evaluations_of_another_density_are_apart() -> None:
    meter = Meter()
    meter.add("Survey", 100, 0.0)
    assert meter.evaluations_of_density == 100
    meter.change_density(meter.evaluations)
    meter.add("Tuning", 30, 0.0)
    assert meter.evaluations_of_density == 30
    assert meter.evaluations == 130


def test_text_of_an_attribute() -> None:
    stages = {"Survey": Reading(10, 0.5), "Annealing": Reading(3, 1.25)}
    assert from_json(to_json(stages)) == stages
    assert from_json("{}") == {}

"""Settings of a run: checks, defaults, and the fingerprint."""

import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.pipeline.settings import Settings, resolve_resample
from pymc_anneal.schedules.named import FromPilot

SIZE = {"draws": 500, "chains": 4}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"draws": 0}, "`draws` is 0, expected a positive whole number"),
        ({"chains": 2.0}, "`chains` is 2.0"),
        ({"cores": 0}, "`cores` is 0"),
        ({"block_size": -5}, "`block_size` is -5"),
        ({"steps": 2.5}, '`steps` is 2.5, expected a positive whole number or "auto"'),
        ({"steps": 0}, "`steps` is 0"),
        ({"target_mcse": 0.0}, "`target_mcse` is 0.0, expected a positive number of nats"),
        ({"max_minutes": 0}, "`max_minutes` is 0, expected a positive number of minutes"),
        ({"max_minutes": np.nan}, "`max_minutes` is nan"),
        ({"max_minutes": None}, "`max_minutes` is None"),
        ({"max_minutes": "5"}, "`max_minutes` is '5', expected a positive number of minutes"),
        ({"max_step": 0.0}, "`max_step` is 0.0, expected a step in beta above 0 and up to 1"),
        ({"max_step": "small"}, "`max_step` is 'small'"),
        ({"steps": np.array([1, 2])}, "`steps` is array"),
        (
            {"schedule": np.array([0.0, 0.5, 1.0]), "steps": 3},
            "`steps` is 3, but the schedule has 2 steps",
        ),
        (
            {"resample": 0.5, "chains": 2, "block_size": 500},
            "`resample` leaves 4 independent populations .* at least 8 are needed",
        ),
    ],
)
def test_bad_settings(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Settings(**SIZE | changes)


class TestSteps:
    def test_planned(self) -> None:
        assert Settings(**SIZE).fixed_steps is None

    def test_given(self) -> None:
        assert Settings(**SIZE, steps=7).fixed_steps == 7
        assert Settings(**SIZE, steps=np.int64(7)).fixed_steps == 7

    @pytest.mark.parametrize("steps", ["auto", 2])
    def test_those_of_an_array(self, steps) -> None:
        schedule = np.array([0.0, 0.5, 1.0])
        assert Settings(**SIZE, schedule=schedule, steps=steps).fixed_steps == 2


@pytest.mark.parametrize(
    ("block_size", "block_draws"), [(None, 125), (2000, 500), (1000, 250), (400, 100), (1, 1)]
)
def test_blocks_are_even(block_size: int | None, block_draws: int) -> None:
    assert Settings(**SIZE, block_size=block_size).block_draws == block_draws


class TestResample:
    @pytest.mark.parametrize(
        ("given", "threshold"), [(None, 0.0), ("ess", 0.5), (0.3, 0.3), (1, 1.0)]
    )
    def test_thresholds(self, given, threshold: float) -> None:
        assert resolve_resample(given) == threshold

    @pytest.mark.parametrize("given", ["always", 0.0, -0.1, 1.5, True, [0.5]])
    def test_bad_values(self, given) -> None:
        with pytest.raises(ValueError, match="`resample` is"):
            resolve_resample(given)


class TestFingerprint:
    def test_workers_are_left_out(self) -> None:
        one, two = (Settings(**SIZE, cores=cores) for cores in (1, 2))
        assert one.fingerprint() == two.fingerprint()
        assert "cores" not in one.fingerprint()

    @pytest.mark.parametrize(
        "changes",
        [{"draws": 501}, {"max_step": 0.1}, {"stops": (0.5, 1.0)}, {"resample": 0.5}],
        ids=str,
    )
    def test_other_settings_count(self, changes: dict) -> None:
        assert Settings(**SIZE | changes).fingerprint() != Settings(**SIZE).fingerprint()

    def test_functions_are_known_by_their_values(self) -> None:
        def schedule(power: float):
            return lambda steps: pma.power_schedule(steps, power)

        prints = [
            Settings(**SIZE, schedule=schedule(power)).fingerprint()["schedule"]
            for power in (2.0, 2.0, 3.0)
        ]
        np.testing.assert_array_equal(prints[0][1], prints[1][1])
        assert (prints[0][1] != prints[2][1]).any()

    def test_schedules_of_the_pilot_are_known_by_their_names(self) -> None:
        schedule = Settings(**SIZE).fingerprint()["schedule"]
        assert schedule == FromPilot("variational")

"""The limit of time of the scripts for the papers, observed between units of work."""

import importlib.util
import math

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from pymc_anneal import Checkpoint, rbm
from pymc_anneal.annealing.block import BlockStopped
from pymc_anneal.base.arviz_compat import group
from tests.rbm.whole_runs import MODEL, QUICK

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "papers" / "clock.py"


@pytest.fixture(scope="module")
def clock() -> ModuleType:
    spec = importlib.util.spec_from_file_location("clock", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(executor, file: Path):
    settings = QUICK | {"block_size": 50, "steps": 1000}
    return rbm.sample_ais(MODEL, executor=executor, checkpoint=Checkpoint(file, 1e-3), **settings)


@pytest.mark.slow
@pytest.mark.parametrize("looks", [0, 5, 40])
def test_a_stopped_run_resumes_to_the_same_bits(clock, tmp_path, looks: int) -> None:
    class Short(clock.Clock):
        """A clock that is over after it was looked at a number of times."""

        looked = 0

        @property
        def is_over(self) -> bool:
            self.looked += 1
            return self.looked > looks

    with clock.ClockedExecutor(Short(math.inf)) as executor, pytest.raises(BlockStopped):
        run(executor, tmp_path / "stopped")
    with clock.ClockedExecutor(clock.Clock(math.inf)) as executor:
        resumed = run(executor, tmp_path / "stopped")
        alone = run(executor, tmp_path / "alone")
    np.testing.assert_array_equal(
        group(resumed, "annealing")["log_weight"], group(alone, "annealing")["log_weight"]
    )


def test_a_training_stops_after_a_part(clock) -> None:
    data = np.random.default_rng(1).random((50, 6)) < 0.4
    settings = {"updates": 100, "random_seed": 1, "progressbar": False}
    assert rbm.train(data, 3, monitor=clock.Clock(0.0), **settings).interrupted
    assert not rbm.train(data, 3, monitor=clock.Clock(math.inf), **settings).interrupted


def test_the_time_left(clock) -> None:
    clock.Clock(math.inf).check()
    clock.Clock(1.0).check()
    with pytest.raises(KeyboardInterrupt):
        clock.Clock(0.0).check()

"""Functions beside `sample_ais` on any executor, and resumed from a checkpoint, with the same bits.

They run through the same stages; small runs of each are compared number by number.
"""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal import rbm
from pymc_anneal.base.arviz_compat import group
from pymc_anneal.execution import workers
from pymc_anneal.execution.checkpoint import BlockStore
from pymc_anneal.pipeline import session
from tests.execution.test_workers import Interrupting
from tests.rbm_cases import random_rbm
from tests.sampling.power_model import power_model
from tests.serial_executor import Serial

KERNEL = pma.HMC(0.5, 2, 0.6)
RBM = random_rbm(8, 6, seed=4, scale=1.3, dtype=np.float32)
QUIET: dict[str, Any] = {"random_seed": 3, "progressbar": False}
# Runs of several blocks.
SIZE: dict[str, Any] = {"draws": 40, "chains": 2, "block_size": 20}

Numbers = dict[str, np.ndarray]


def read_groups(result: Any, *names: str) -> Numbers:
    """Return all numbers of some groups that do not depend on the clock."""
    return {
        f"{name}/{variable}": values.values
        for name in names
        for variable, values in group(result, name).data_vars.items()
        if variable != "seconds"
    }


def power_posterior(**more: Any) -> Numbers:
    settings = {"steps": 8, "transition": KERNEL, **SIZE, **QUIET, **more}
    result = pma.power_posterior([0.5, 2.0], model=power_model(), **settings)
    return read_groups(result, "posterior", "sample_stats", "power")


def planned_power_posterior(**more: Any) -> Numbers:
    """Pilot, trial, plan and resampling."""
    settings = {"transition": "random_walk", "max_minutes": np.inf, "resample": "ess"}
    settings |= {**SIZE, "draws": 80, **QUIET, **more}
    result = pma.power_posterior([0.5, 1.0], model=power_model(), **settings)
    return read_groups(result, "posterior", "sample_stats", "power")


def calibrate(**more: Any) -> Numbers:
    settings = {"steps": 8, "schedule": "linear", "transition": KERNEL, **SIZE, **QUIET, **more}
    table = pma.calibrate(3, model=power_model(), **settings).table
    return {name: table[name].to_numpy() for name in table}


def find_map(**more: Any) -> Numbers:
    settings = {"transition": "random_walk", "block_size": 25, **QUIET, **more}
    found = pma.find_map(50, power=100.0, model=power_model(), **settings)
    scalars = np.array([found.log_posterior, found.agreement, found.draws])
    return {"position": found.position, "scalars": scalars, **found.point}


def rbm_sample_ais(**more: Any) -> Numbers:
    settings = {"steps": 40, "schedule": "variational", **SIZE, **QUIET, **more}
    return read_groups(rbm.sample_ais(RBM, **settings), "posterior", "annealing", "evidence")


def reverse_rbm_sample_ais(**more: Any) -> Numbers:
    settings = {"steps": 40, "schedule": "linear", "direction": "reverse", **SIZE, **QUIET, **more}
    result = rbm.sample_ais(RBM, **settings)
    return read_groups(result, "prior", "annealing", "evidence")


RUNS = [
    power_posterior,
    pytest.param(planned_power_posterior, marks=pytest.mark.slow, id="planned_power_posterior"),
    calibrate,
    pytest.param(find_map, marks=pytest.mark.slow, id="find_map"),
    rbm_sample_ais,
    reverse_rbm_sample_ais,
]
each_run = pytest.mark.parametrize("run", RUNS, ids=lambda run: run.__name__)


@cache
def expected(run: Callable[..., Numbers]) -> Numbers:
    """Return the numbers of a run in the threads of this process."""
    return run()


def assert_same(first: Numbers, second: Numbers) -> None:
    assert first.keys() == second.keys()
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name], err_msg=name)


@each_run
class TestWorkers:
    @pytest.mark.quick_cases("power_posterior", "rbm_sample_ais")
    def test_the_number_of_cores_does_not_matter(self, run) -> None:
        assert_same(run(cores=1), expected(run))
        assert_same(run(cores=3), expected(run))

    @pytest.mark.slow
    def test_blocks_sent_through_pickles(self, run) -> None:
        executor = Serial()
        assert_same(run(executor=executor), expected(run))
        assert executor.calls >= 2

    def test_the_users_threads(self, run) -> None:
        with ThreadPoolExecutor(2) as executor:
            assert_same(run(executor=executor), expected(run))

    def test_an_object_that_is_no_executor(self, run) -> None:
        with pytest.raises(TypeError, match="`executor` is a int without a method `submit`"):
            run(executor=2)

    @pytest.mark.slow
    def test_processes(self, run) -> None:
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
            assert_same(run(executor=executor), expected(run))


@dataclass
class Interruptions:
    """Raises KeyboardInterrupt after every second finished block, for three times."""

    blocks: int = 0

    def save_if_due(self, store: BlockStore) -> None:
        self.blocks += 1
        if self.blocks in (2, 4, 6):
            raise KeyboardInterrupt


@each_run
class TestCheckpoints:
    def test_a_finished_run_is_read_back(self, run, tmp_path: Path, monkeypatch) -> None:
        where = pma.Checkpoint(tmp_path / "file", interval=1e6)  # saved at the end
        assert_same(run(checkpoint=where), expected(run))
        monkeypatch.setattr(workers, "run_block", None)
        monkeypatch.setattr(session, "run_pilot", None)
        assert_same(run(checkpoint=where), expected(run))

    def test_interrupted_over_and_over(self, run, tmp_path: Path, monkeypatch) -> None:
        where, interruptions = pma.Checkpoint(tmp_path / "file", interval=0.05), Interruptions()
        with monkeypatch.context() as patch:
            patch.setattr(BlockStore, "save_if_due", lambda store: interruptions.save_if_due(store))
            for _ in range(4):
                try:
                    run(checkpoint=where)
                except KeyboardInterrupt:
                    continue
        assert interruptions.blocks >= 2
        assert_same(run(checkpoint=where), expected(run))

    def test_another_run_is_refused(self, run, tmp_path: Path) -> None:
        path = tmp_path / "file"
        run(checkpoint=path)
        with pytest.raises(ValueError, match="belongs to another run. Differences") as caught:
            run(checkpoint=path, random_seed=4)
        assert "random_seed" in str(caught.value)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda c: power_posterior(checkpoint=c, steps=9), "setting `steps`: 8 in the file, 9 now"),
        (lambda c: power_posterior(checkpoint=c, transition="random_walk"), "setting `transition`"),
    ],
    ids=["steps", "transition"],
)
def test_what_differs_is_named(call, named: str, tmp_path: Path) -> None:
    power_posterior(checkpoint=tmp_path / "file")
    with pytest.raises(ValueError, match=named):
        call(tmp_path / "file")


def test_other_temperatures_of_the_same_shares_are_another_run(tmp_path: Path) -> None:
    # Both runs stop at a half and at the whole of their path.
    settings = {"model": power_model(), "checkpoint": tmp_path / "file", "steps": 8}
    settings |= {"transition": KERNEL, **SIZE, **QUIET}
    pma.power_posterior([0.5, 1.0], **settings)
    with pytest.raises(ValueError, match="setting `betas`"):
        pma.power_posterior([1.0, 2.0], **settings)


def test_ctrl_c_ends_a_calibration() -> None:
    # In the second block of the first data set.
    with pytest.raises(KeyboardInterrupt):
        calibrate(executor=Interrupting(1))


def test_ctrl_c_keeps_the_finished_particles_of_power_posteriors() -> None:
    with pytest.warns(pma.EvidenceWarning, match="The run was interrupted: 40 of 80 part"):
        found = power_posterior(executor=Interrupting(2))
    assert found["posterior/mu"].shape == (2, 40, 2, 2)
    assert (found["power/ess"] <= 2 * 2 * 10 * (1 + 1e-9)).all()


def test_an_interrupted_power_posterior_says_so() -> None:
    settings = {"steps": 8, "transition": KERNEL, **SIZE, **QUIET, "model": power_model()}
    whole = pma.power_posterior([0.5, 2.0], **settings)
    with pytest.warns(pma.EvidenceWarning) as caught:
        part = pma.power_posterior([0.5, 2.0], executor=Interrupting(2), **settings)
    assert {Path(w.filename).name for w in caught} == {Path(__file__).name}
    assert "interruption" not in group(whole, "power").attrs
    for name in ("posterior", "power"):
        assert "40 of 80 particles are kept" in group(part, name).attrs["interruption"]


def test_ctrl_c_keeps_the_finished_particles_of_an_rbm() -> None:
    settings = {"steps": 40, "schedule": "linear", **SIZE, **QUIET}
    result = rbm.sample_ais(RBM, executor=Interrupting(3), **settings)
    assert group(result, "annealing")["log_weight"].shape == (2, 30)
    assert "interrupted" in str(pma.log_evidence(result).verdict)


def test_ctrl_c_ends_the_pilot_of_an_rbm() -> None:
    with pytest.raises(KeyboardInterrupt):
        rbm_sample_ais(executor=Interrupting(1))

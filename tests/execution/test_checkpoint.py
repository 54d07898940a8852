"""Checkpoints: a killed run resumes to the same bits; the file of another run is refused."""

import json
import os
import subprocess
import sys
import time

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.annealing.block import Block, BlockStopped, Snapshot
from pymc_anneal.annealing.loop import Monitor, run_block
from pymc_anneal.base.progress import BlockProgress
from pymc_anneal.base.replaced_file import locked
from pymc_anneal.execution import checkpoint, workers
from pymc_anneal.execution.checkpoint import BlockStore, Checkpoint, StageLog
from pymc_anneal.execution.workers import run_blocks
from pymc_anneal.pipeline import session
from tests.annealing.log_gamma_blocks import KERNEL, PATH, assert_same
from tests.cases import log_gamma_draws

RUNGS = np.array([0, 20, 60])


def block(seed: int = 1, steps: int = 60) -> Block:
    sequence = np.random.SeedSequence(seed)
    position = log_gamma_draws(0.0, 20, np.random.default_rng(seed))
    betas = pma.power_schedule(steps, 2.0)
    return Block(PATH, KERNEL, betas, position, 2, sequence, RUNGS)


def test_the_last_snapshot_before_a_stop(tmp_path: Path) -> None:
    store = StageLog(Checkpoint(tmp_path / "file")).blocks("Annealing")

    class Stopping(Monitor):
        """Stops at the first report."""

        stopped = False

        def report(self, progress: BlockProgress) -> None:
            self.stopped = True

        def should_stop(self) -> bool:
            return self.stopped

        def offer_snapshot(self, take: Callable[[], Snapshot]) -> None:
            store.offer(0, take, last=self.stopped)

    with pytest.raises(BlockStopped):
        run_block(block(), Stopping())
    assert_same(run_block(block(), resume=store.snapshots[0]), run_block(block()))


class TestStageLog:
    def test_a_stage_is_computed_once(self, tmp_path: Path) -> None:
        where, calls = Checkpoint(tmp_path / "file"), []
        log = StageLog(where)
        for _ in range(2):
            log.stage("Pilot", lambda: calls.append(1))
        log.save()
        again = where.open({})
        again.stage("Pilot", lambda: calls.append(1))
        again.stage("Pilot", lambda: calls.append(1))
        assert len(calls) == 2
        again.stage("Pilot", lambda: calls.append(1))
        assert len(calls) == 3

    def test_without_a_file_nothing_is_stored(self) -> None:
        log, calls = StageLog(), []
        for _ in range(2):
            log.stage("Pilot", lambda: calls.append(1))
            run_blocks([block()], ThreadPoolExecutor(1), store=log.blocks("Annealing"))
        assert len(calls) == 2

    def test_finished_blocks_are_not_run_again(self, tmp_path: Path) -> None:
        where = Checkpoint(tmp_path / "file")
        log = StageLog(where)
        with ThreadPoolExecutor(2) as executor:
            first = run_blocks([block(1), block(2)], executor, store=log.blocks("A"))
            log.save()
            seen: list[int] = []
            store = where.open({}).blocks("A")
            second = run_blocks([block(1), block(2)], executor, lambda i, _: seen.append(i), store)
        assert not seen
        for a, b in zip(first, second, strict=True):
            assert_same(a, b)

    def test_after_an_interruption_nothing_is_stored(self, tmp_path: Path) -> None:
        where = Checkpoint(tmp_path / "file")
        log = StageLog(where)
        log.close()
        log.stage("Growth", lambda: "stop")
        log.save()
        assert where.open({}).stage("Growth", lambda: "go on") == "go on"

    def test_it_is_written_at_the_interval(self, tmp_path: Path) -> None:
        log = StageLog(Checkpoint(tmp_path / "file", interval=0.2))
        log.save_if_due()
        assert not (tmp_path / "file").exists()
        time.sleep(0.25)
        log.save_if_due()
        assert (tmp_path / "file").exists()
        assert os.listdir(tmp_path) == ["file"]


class TestTrouble:
    def test_a_failing_disk_is_reported_and_the_run_goes_on(self, tmp_path, monkeypatch) -> None:
        def full(path: Path, fingerprint: dict, body: bytes) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(checkpoint, "write_checkpoint", full)
        log = StageLog(Checkpoint(tmp_path / "file"))
        with pytest.warns(UserWarning, match="No space left on device"):
            log.save()
        log.save()  # warns once
        with ThreadPoolExecutor(1) as executor:
            assert run_blocks([block()], executor, store=log.blocks("A"))

    def test_a_failed_write_leaves_the_old_file(self, tmp_path: Path, monkeypatch) -> None:
        where = Checkpoint(tmp_path / "file")
        log = StageLog(where)
        log.stage("Pilot", lambda: 1)
        log.save()

        def full(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        log.stage("Plan", lambda: 2)
        with pytest.warns(UserWarning, match="could not be written"):
            log.save()
        assert where.open({}).stage("Pilot", lambda: 3) == 1

    def test_no_folder(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match="does not exist: create it first"):
            Checkpoint(tmp_path / "nowhere" / "file")

    @pytest.mark.parametrize("path", ["", ".", 5, None], ids=repr)
    def test_no_file(self, path) -> None:
        with pytest.raises(ValueError, match="`checkpoint` is .*, expected the path of a file"):
            Checkpoint(path)

    def test_no_interval(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="`interval` is 0"):
            Checkpoint(tmp_path / "file", interval=0)

    def test_what_differs_is_named(self, tmp_path: Path) -> None:
        where = Checkpoint(tmp_path / "file")
        StageLog(where, {"setting `draws`": "500", "version of jax": "1"}).save()
        with pytest.raises(ValueError, match="`draws`: 500 in the file, 600 now") as caught:
            where.open({"setting `draws`": "600", "version of jax": "1"})
        assert "jax" not in str(caught.value)


def build_model(sigma: float = 1.0, last: float = 0.9, power: float = 1.0) -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 2.0)
        tau = pm.HalfNormal("tau", sigma)
        observed = np.array([0.3, 1.4, 2.2, last])
        pm.Normal("y", mu, tau**power, observed=observed)
    return model


# A run with pilot, trial, plan, several blocks, and reverse run.
SETTINGS = {"draws": 60, "chains": 2, "target_mcse": 0.03, "block_size": 30}
SETTINGS |= {"progressbar": False, "max_minutes": np.inf, "transition": "random_walk"}
SETTINGS |= {"random_seed": 5, "reverse_from": "draws"}
# So long that it can be killed at any moment.
LONG = {"target_mcse": 0.012}


def sample(path: Path | Checkpoint | None, **changes):
    settings = {**SETTINGS, **changes}
    model = settings.pop("model", None) or compiled()
    where = Checkpoint(path, interval=0.05) if isinstance(path, Path) else path
    return pma.sample_ais(model=model, checkpoint=where, **settings)


@cache
def compiled() -> pma.CompiledModel:
    return pma.compile_model(build_model())


def arrays(idata) -> dict[str, np.ndarray]:
    """All numbers of a run that do not depend on the clock."""
    found = {
        f"{group}/{name}": value.values
        for group in ("posterior", "annealing", "evidence", "reverse_annealing", "ladder")
        for name, value in idata[group].data_vars.items()
        if name not in ("seconds",)
    }
    assert len(found) > 25
    return found


def assert_same_run(first: dict, second: dict) -> None:
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)


@cache
def uninterrupted(**changes: float) -> dict[str, np.ndarray]:
    return arrays(sample(None, **changes))


class TestSampleAis:
    def test_a_finished_run_is_read_back(self, tmp_path: Path, monkeypatch) -> None:
        where = Checkpoint(tmp_path / "file", interval=1e6)  # it is saved at the end
        assert_same_run(arrays(sample(where)), uninterrupted())
        monkeypatch.setattr(workers, "run_block", None)
        monkeypatch.setattr(session, "run_pilot", None)
        assert_same_run(arrays(sample(where)), uninterrupted())

    def test_after_ctrl_c(self, tmp_path: Path, monkeypatch) -> None:
        """Interrupted over and over, each time a little later."""
        waited = 0

        def impatient(self) -> None:
            nonlocal waited
            waited += 1
            if waited % 5 == 0:
                raise KeyboardInterrupt

        runs = 0
        with monkeypatch.context() as patch:
            patch.setattr(BlockStore, "save_if_due", impatient)
            while waited < 20:
                runs += 1
                try:
                    sample(tmp_path / "file")
                except KeyboardInterrupt:
                    continue
        assert runs > 2
        assert_same_run(arrays(sample(tmp_path / "file")), uninterrupted())

    @pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
    def test_what_was_counted_outlives_the_audit(self, error: type, tmp_path, monkeypatch) -> None:
        def stopped(*args):
            raise error

        where = Checkpoint(tmp_path / "file", interval=1e6)  # it is saved at the end
        with monkeypatch.context() as patch:
            patch.setattr("pymc_anneal.pipeline.run.hear_about_run", stopped)
            if error is KeyboardInterrupt:
                verdict = pma.log_evidence(sample(where)).verdict
                assert not verdict.trusted
                assert "interrupted: the forward run is complete and kept" in str(verdict)
            else:
                with pytest.raises(error):
                    sample(where)
        monkeypatch.setattr(workers, "run_block", None)
        assert_same_run(arrays(sample(where)), uninterrupted())

    def test_an_unknown_seed_is_kept(self, tmp_path: Path) -> None:
        small = {"steps": 3, "random_seed": None, "schedule": "linear", "reverse_from": None}
        small["transition"] = pma.RandomWalkMetropolis(0.5, 2, 1.0)
        first = sample(tmp_path / "file", **small)["annealing"]["log_weight"].values
        second = sample(tmp_path / "file", **small)["annealing"]["log_weight"].values
        np.testing.assert_array_equal(first, second)

    @pytest.mark.parametrize(
        ("changes", "named"),
        [
            ({"draws": 61}, "setting `draws`: 60 in the file, 61 now"),
            ({"random_seed": 6}, "random_seed"),
            ({"schedule": "power"}, "setting `schedule`"),
            ({"transition": "hmc"}, "setting `transition`: RandomWalkMetropolis"),
            ({"reverse_from": None}, "setting `reverse_from`"),
            ({"model": build_model(sigma=1.5)}, "log prior at prior draws"),
            ({"model": build_model(last=0.8)}, "data of 'y'"),
            ({"model": build_model(power=2.0)}, "graph of the model"),
        ],
        ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
    )
    def test_another_run_is_refused(self, tmp_path_factory, changes: dict, named: str) -> None:
        path = tmp_path_factory.getbasetemp() / "finished"
        if not path.exists():
            sample(path)
        with pytest.raises(ValueError, match="belongs to another run. Differences") as caught:
            sample(path, **changes)
        assert named in str(caught.value)

    def test_workers_may_change(self, tmp_path_factory) -> None:
        path = tmp_path_factory.getbasetemp() / "finished"
        if not path.exists():
            sample(path)
        assert_same_run(arrays(sample(path, cores=1)), uninterrupted())


SCRIPT = """
import sys
import numpy as np
from tests.execution.test_checkpoint import LONG, arrays, sample
from pathlib import Path
found = arrays(sample(Path(sys.argv[1]), **LONG))
np.savez(sys.argv[2], **{name.replace("/", "|"): value for name, value in found.items()})
"""


def start_process(path: Path, result: Path) -> subprocess.Popen:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(path), str(result)]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.Popen(command, cwd=root, env=environment)


def kill_after_writes(path: Path, result: Path, writes: int) -> bool:
    """Kill a run after so many versions of its file; return whether it was still running."""
    process, seen, last = start_process(path, result), 0, None
    while process.poll() is None and seen < writes:
        time.sleep(0.005)
        stamp = path.stat().st_mtime_ns if path.exists() else None
        seen, last = seen + (stamp != last), stamp
    running = process.poll() is None
    process.kill()
    process.wait()
    return running


def resumed(path: Path, result: Path) -> dict[str, np.ndarray]:
    assert start_process(path, result).wait() == 0
    with np.load(result) as found:
        return {name.replace("|", "/"): found[name] for name in found}


def test_the_time_of_a_run_goes_on(tmp_path: Path) -> None:
    where = Checkpoint(tmp_path / "file")
    log = where.open({})
    log._begin -= 100.0
    log.save()
    assert 100 <= where.open({}).seconds < 110
    assert StageLog().seconds < 10


def test_two_runs_on_one_file(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "file"),
        pytest.raises(RuntimeError, match="Another run is writing to the checkpoint"),
    ):
        sample(tmp_path / "file")
    assert not (tmp_path / "file").exists()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_killed_at_a_random_moment(tmp_path: Path, seed: int) -> None:
    writes = int(np.random.default_rng(seed).integers(1, 25))
    killed = kill_after_writes(tmp_path / "file", tmp_path / "result.npz", writes)
    assert killed
    assert_same_run(resumed(tmp_path / "file", tmp_path / "result.npz"), uninterrupted(**LONG))


@pytest.mark.slow
def test_killed_once(tmp_path: Path) -> None:
    assert kill_after_writes(tmp_path / "file", tmp_path / "result.npz", 4)
    head = (tmp_path / "file").read_bytes().split(b"\n")[0]
    assert json.loads(head)["fingerprint"]["setting `draws`"] == "60"
    assert_same_run(resumed(tmp_path / "file", tmp_path / "result.npz"), uninterrupted(**LONG))

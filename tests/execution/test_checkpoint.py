"""A run that was killed goes on to the same bits; another run's file is refused."""

import json
import os
import subprocess
import sys
import threading
import time

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import jax
import numpy as np
import pymc as pm
import pytest

import pymc_anneal as pma

from pymc_anneal.annealing.block import Block, BlockResult, BlockStopped, Snapshot
from pymc_anneal.annealing.loop import run_block
from pymc_anneal.execution import checkpoint as module
from pymc_anneal.execution import workers
from pymc_anneal.execution.checkpoint import BlockStore, Checkpoint, StageLog
from pymc_anneal.execution.workers import run_blocks
from pymc_anneal.pipeline import rounds
from tests.cases import log_gamma_draws, log_gamma_terms

PATH = pma.GeometricPath(log_gamma_terms)
KERNEL = pma.HMC(0.5, 2, 0.6)
RUNGS = np.array([0, 20, 60])


def block(seed: int = 1, steps: int = 60) -> Block:
    sequence = np.random.SeedSequence(seed)
    position = log_gamma_draws(0.0, 20, np.random.default_rng(seed))
    betas = pma.power_schedule(steps, 2.0)
    return Block(PATH, KERNEL, betas, position, 2, sequence, RUNGS)


def assert_same(first: BlockResult, second: BlockResult) -> None:
    """Every bit agrees; the time they took does not matter."""
    pairs = zip(
        jax.tree.leaves(first._replace(seconds=0.0)),
        jax.tree.leaves(second._replace(seconds=0.0)),
        strict=True,
    )
    for a, b in pairs:
        np.testing.assert_array_equal(a, b)


class TestSnapshot:
    @pytest.mark.parametrize("at", [0, 3, -1])
    def test_a_block_goes_on_to_the_same_bits(self, at: int) -> None:
        snapshots: list[Snapshot] = []
        expected = run_block(block(), keep=lambda take: snapshots.append(take()))
        assert snapshots[-1].done == 60
        assert_same(run_block(block(), resume=snapshots[at]), expected)

    def test_a_snapshot_can_be_used_twice(self) -> None:
        snapshots: list[Snapshot] = []
        expected = run_block(block(), keep=lambda take: snapshots.append(take()))
        for _ in range(2):
            assert_same(run_block(block(), resume=snapshots[2]), expected)

    def test_the_test_can_fail(self) -> None:
        snapshots: list[Snapshot] = []
        expected = run_block(block(), keep=lambda take: snapshots.append(take()))
        wrong = snapshots[2]
        wrong = wrong._replace(carry=wrong.carry._replace(log_weight=wrong.carry.log_weight + 1))
        with pytest.raises(AssertionError):
            assert_same(run_block(block(), resume=wrong), expected)

    def test_time_adds_up(self) -> None:
        snapshots: list[Snapshot] = []
        run_block(block(), keep=lambda take: snapshots.append(take()))
        late = snapshots[-1]._replace(seconds=100.0)
        assert run_block(block(), resume=late).seconds >= 100.0

    def test_the_last_one_before_the_stop(self, tmp_path: Path) -> None:
        store = StageLog(Checkpoint(tmp_path / "file")).blocks("Annealing")
        stop = threading.Event()
        with pytest.raises(BlockStopped):
            run_block(
                block(),
                lambda progress: stop.set(),
                stop,
                lambda take: store.offer(0, stop, take),
            )
        assert_same(run_block(block(), resume=store.snapshots[0]), run_block(block()))


class TestJournal:
    def test_stages_are_computed_once(self, tmp_path: Path) -> None:
        where, calls = Checkpoint(tmp_path / "file"), []
        journal = StageLog(where)
        for _ in range(2):
            journal.stage("Pilot", lambda: calls.append(1))
        journal.save()
        again = where.open({})
        again.stage("Pilot", lambda: calls.append(1))
        again.stage("Pilot", lambda: calls.append(1))
        assert len(calls) == 2
        again.stage("Pilot", lambda: calls.append(1))
        assert len(calls) == 3

    def test_without_a_file_nothing_is_kept(self) -> None:
        journal, calls = StageLog(), []
        for _ in range(2):
            journal.stage("Pilot", lambda: calls.append(1))
            run_blocks([block()], ThreadPoolExecutor(1), store=journal.blocks("Annealing"))
        assert len(calls) == 2

    def test_finished_blocks_are_not_run_again(self, tmp_path: Path) -> None:
        where = Checkpoint(tmp_path / "file")
        journal = StageLog(where)
        with ThreadPoolExecutor(2) as executor:
            first = run_blocks([block(1), block(2)], executor, store=journal.blocks("A"))
            journal.save()
            seen: list[int] = []
            store = where.open({}).blocks("A")
            second = run_blocks([block(1), block(2)], executor, lambda i, _: seen.append(i), store)
        assert not seen
        for a, b in zip(first, second, strict=True):
            assert_same(a, b)

    def test_after_an_interruption_nothing_is_kept(self, tmp_path: Path) -> None:
        where = Checkpoint(tmp_path / "file")
        journal = StageLog(where)
        journal.close()
        journal.stage("Growth", lambda: "stop")
        journal.save()
        assert where.open({}).stage("Growth", lambda: "go on") == "go on"

    def test_it_is_written_at_the_interval(self, tmp_path: Path) -> None:
        journal = StageLog(Checkpoint(tmp_path / "file", interval=0.2))
        journal.save_if_due()
        assert not (tmp_path / "file").exists()
        time.sleep(0.25)
        journal.save_if_due()
        assert (tmp_path / "file").exists()
        assert os.listdir(tmp_path) == ["file"]


class TestTrouble:
    def test_a_failing_disk_is_reported_and_the_run_goes_on(self, tmp_path, monkeypatch) -> None:
        def full(path: Path, content: bytes) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(module, "_replace", full)
        journal = StageLog(Checkpoint(tmp_path / "file"))
        with pytest.warns(UserWarning, match="No space left on device"):
            journal.save()
        journal.save()  # said once
        with ThreadPoolExecutor(1) as executor:
            assert run_blocks([block()], executor, store=journal.blocks("A"))

    def test_a_failed_write_leaves_the_old_file(self, tmp_path: Path, monkeypatch) -> None:
        where = Checkpoint(tmp_path / "file")
        journal = StageLog(where)
        journal.stage("Pilot", lambda: 1)
        journal.save()

        def full(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        journal.stage("Plan", lambda: 2)
        with pytest.warns(UserWarning, match="could not be written"):
            journal.save()
        assert where.open({}).stage("Pilot", lambda: 3) == 1

    def test_no_folder(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match="does not exist: create it first"):
            Checkpoint(tmp_path / "nowhere" / "file")

    def test_no_interval(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="`interval` is 0"):
            Checkpoint(tmp_path / "file", interval=0)

    @pytest.mark.parametrize("content", [b"", b"something else\n1", b'{"format": 3}\n'])
    def test_not_a_checkpoint(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(ValueError, match="is not a whole checkpoint"):
            Checkpoint(tmp_path / "file").open({})

    def test_a_damaged_file(self, tmp_path: Path) -> None:
        where = Checkpoint(tmp_path / "file")
        StageLog(where).save()
        content = (tmp_path / "file").read_bytes()
        (tmp_path / "file").write_bytes(content[:-3])
        with pytest.raises(ValueError, match="is not a whole checkpoint"):
            where.open({})

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


# A user's run: pilot, trial, plan, two rounds (the error wanted is out of reach), reverse.
SETTINGS = {"draws": 60, "chains": 2, "target_mcse": 0.012, "max_rounds": 2, "block_size": 30}
SETTINGS |= {"progressbar": False, "max_minutes": np.inf, "transition": "random_walk"}
SETTINGS |= {"random_seed": 5, "reverse_from": "draws"}


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
def left_alone() -> dict[str, np.ndarray]:
    return arrays(sample(None))


class TestSampleAis:
    def test_a_finished_run_is_read_back(self, tmp_path: Path, monkeypatch) -> None:
        where = Checkpoint(tmp_path / "file", interval=1e6)  # it is saved at the end
        assert_same_run(arrays(sample(where)), left_alone())
        monkeypatch.setattr(workers, "run_block", None)
        monkeypatch.setattr(rounds, "run_pilot", None)
        assert_same_run(arrays(sample(where)), left_alone())

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
        assert_same_run(arrays(sample(tmp_path / "file")), left_alone())

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
            ({"model": build_model(sigma=1.5)}, "log prior at these"),
            ({"model": build_model(last=0.8)}, "data of 'y'"),
            ({"model": build_model(power=2.0)}, "graph of the model"),
        ],
        ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
    )
    def test_another_run_is_refused(self, tmp_path_factory, changes: dict, named: str) -> None:
        path = tmp_path_factory.getbasetemp() / "finished"
        if not path.exists():
            sample(path)
        with pytest.raises(ValueError, match="is of another run. What differs") as caught:
            sample(path, **changes)
        assert named in str(caught.value)

    def test_workers_may_change(self, tmp_path_factory) -> None:
        path = tmp_path_factory.getbasetemp() / "finished"
        if not path.exists():
            sample(path)
        assert_same_run(arrays(sample(path, cores=1)), left_alone())


SCRIPT = """
import sys
import numpy as np
from tests.test_checkpoint import arrays, sample
from pathlib import Path
found = arrays(sample(Path(sys.argv[1])))
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_killed_at_a_random_moment(tmp_path: Path, seed: int) -> None:
    writes = int(np.random.default_rng(seed).integers(1, 25))
    killed = kill_after_writes(tmp_path / "file", tmp_path / "result.npz", writes)
    assert killed
    assert_same_run(resumed(tmp_path / "file", tmp_path / "result.npz"), left_alone())


@pytest.mark.slow
def test_killed_once(tmp_path: Path) -> None:
    assert kill_after_writes(tmp_path / "file", tmp_path / "result.npz", 4)
    head = (tmp_path / "file").read_bytes().split(b"\n")[0]
    assert json.loads(head)["fingerprint"]["setting `draws`"] == "60"
    assert_same_run(resumed(tmp_path / "file", tmp_path / "result.npz"), left_alone())

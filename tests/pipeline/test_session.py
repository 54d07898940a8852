"""The session of a run: seeds, executor, checkpoint, explained NaNs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation.pilot import Pilot
from pymc_anneal.adaptation.target_density import operations_of_density
from pymc_anneal.base.contracts import LogTerms
from pymc_anneal.evidence.held_out import effective_witnesses
from pymc_anneal.execution.blocks import make_blocks
from pymc_anneal.pipeline import session as session_module
from pymc_anneal.pipeline.session import Seeds, Session, open_session
from pymc_anneal.pipeline.settings import Settings
from pymc_anneal.pipeline.target import RunCandidate
from tests.execution.test_workers import Interrupting
from tests.pipeline.log_gamma_target import (
    FIXED,
    KERNEL,
    LogGammaTarget,
    draw_prior,
    log_gamma_session,
)
from tests.serial_executor import Serial

PILOT = Session._pilot


def state(seed: np.random.SeedSequence) -> list[int]:
    return seed.generate_state(4).tolist()


class TestSeeds:
    def test_every_stage_has_its_own(self) -> None:
        seeds = Seeds.spawn(np.random.SeedSequence(1))
        assert len({tuple(state(seed)) for seed in seeds}) == len(seeds)

    def test_they_do_not_depend_on_spawned_children(self) -> None:
        sequence = np.random.SeedSequence(1)
        first = Seeds.spawn(sequence)
        sequence.spawn(3)
        assert [state(s) for s in first] == [state(s) for s in Seeds.spawn(sequence)]

    def test_an_unused_stage_changes_no_other(self) -> None:
        with log_gamma_session(**FIXED) as session:
            before = state(session.seeds.counted)
            session.pilot(LogGammaTarget().candidate(), KERNEL, session.seeds.pilot)
            assert state(session.seeds.counted) == before


class TestPilot:
    def test_it_has_enough_particles_whatever_the_block(self) -> None:
        counts = []

        def draw(seed: np.random.SeedSequence, draws: int) -> np.ndarray:
            counts.append(draws)
            return draw_prior(seed, draws)

        candidate = RunCandidate("prior", draw, LogGammaTarget().candidate().path)
        for draws in (5, 200):
            with log_gamma_session(draws=draws, chains=2) as session:
                found = session.pilot(candidate, KERNEL, session.seeds.pilot)
            assert len(found.position) == counts[-1]
        assert counts == [256, 400]

    def test_the_same_seed_gives_the_same_pilot(self) -> None:
        with log_gamma_session(**FIXED) as session:
            first, second = (
                session.pilot(LogGammaTarget().candidate(), KERNEL, session.seeds.pilot)
                for _ in range(2)
            )
        np.testing.assert_array_equal(first.position, second.position)


class TestSurvey:
    """Repeated while few families are left, as long as it may take."""

    @staticmethod
    def surveys(
        wanted: float, monkeypatch: pytest.MonkeyPatch, operations: float = 1e12
    ) -> list[Pilot]:
        """Return the surveys that were made, and the pilot of their particles as the last."""
        monkeypatch.setattr(session_module, "_FAMILIES", wanted)
        monkeypatch.setattr(session_module, "_OPERATIONS", operations)
        monkeypatch.setattr(session_module, "_FIRST_DRAWS", 0)
        candidate, made = LogGammaTarget().candidate(), list[Pilot]()

        def record(self: Session, *given: Any) -> Pilot:
            made.append(PILOT(self, *given))
            return made[-1]

        monkeypatch.setattr(Session, "_pilot", record)
        with log_gamma_session(**FIXED) as session:
            found = session.survey(candidate, KERNEL, session.seeds.reference)
            assert session.meter.stages["Survey"].evaluations == sum(p.evaluations for p in made)
        return [*made, found.pilot]

    def test_one_is_enough(self, monkeypatch: pytest.MonkeyPatch) -> None:
        made, found = self.surveys(1.0, monkeypatch)
        np.testing.assert_array_equal(made.position, found.position)
        assert np.isnan(found.log_z)
        assert found.rough_log_z == made.log_z

    def test_until_there_are_enough(self, monkeypatch: pytest.MonkeyPatch) -> None:
        alone = effective_witnesses(self.surveys(1.0, monkeypatch)[-1].ancestor)
        *made, found = self.surveys(1.5 * alone, monkeypatch)
        assert 1 < len(made) < 5
        assert effective_witnesses(found.ancestor) >= 1.5 * alone
        assert len({p.log_z for p in made}) == len(made)
        mean = np.log(np.mean(np.exp([p.log_z for p in made])))
        assert found.rough_log_z == pytest.approx(mean)

    def test_not_beyond_what_it_may_take(self, monkeypatch: pytest.MonkeyPatch) -> None:
        one, _ = self.surveys(np.inf, monkeypatch, 0.0)
        path = LogGammaTarget().candidate().path
        each = operations_of_density(path, *one.position.shape) * one.evaluations
        *made, _ = self.surveys(np.inf, monkeypatch, 3.5 * each)
        assert 2 <= len(made) <= 4
        *made, _ = self.surveys(np.inf, monkeypatch)
        assert len(made) == session_module._MOST_SURVEYS

    def test_a_black_box_is_surveyed_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Session, "_is_smooth", False)
        assert len(self.surveys(np.inf, monkeypatch)) == 2


def nan_terms(x) -> LogTerms:
    return LogTerms(-0.5 * (x**2).sum(), jnp.where(x[0] > 0, jnp.nan, 0.0))


class TestOpenSession:
    def test_nan_is_explained_by_the_target(self) -> None:
        path = pma.GeometricPath(nan_terms)
        with (
            pytest.raises(ValueError, match=r"the density is NaN at \[\d"),
            log_gamma_session(**FIXED) as session,
        ):
            session.pilot(RunCandidate("prior", draw_prior, path), KERNEL, session.seeds.pilot)

    def test_other_errors_pass(self) -> None:
        with pytest.raises(KeyError, match="other"), log_gamma_session(**FIXED):
            raise KeyError("other")

    def test_an_object_that_is_no_executor(self) -> None:
        settings = Settings(draws=5, chains=2)
        with (
            pytest.raises(TypeError, match="`executor` is a int without a method `submit`"),
            open_session(LogGammaTarget(), settings, executor=2),
        ):
            pass

    def test_blocks_run_on_the_executor(self) -> None:
        target, executor = LogGammaTarget(), Serial()
        start = np.random.default_rng(1).normal(size=(2, 30, 2))
        found = []
        for chosen in (None, executor):
            with log_gamma_session(**FIXED) as session:
                session = replace(session, executor=chosen)
                path, seed = target.candidate().path, np.random.SeedSequence(3)
                blocks = make_blocks(path, KERNEL, np.array([0.0, 0.5, 1.0]), start, 10, seed)
                found.append(session.anneal("Annealing", blocks))
        assert executor.calls == 3
        np.testing.assert_array_equal(found[0].log_weight, found[1].log_weight)


class TestInterruption:
    """Ctrl-C in the second of three blocks."""

    @pytest.fixture
    def blocks(self):
        path, seed = LogGammaTarget().candidate().path, np.random.SeedSequence(3)
        start = np.random.default_rng(1).normal(size=(2, 30, 2))
        return make_blocks(path, KERNEL, np.array([0.0, 1.0]), start, 10, seed)

    def test_finished_blocks_are_returned(self, blocks) -> None:
        with log_gamma_session(**FIXED) as session:
            run = replace(session, executor=Interrupting(1)).anneal("Annealing", blocks)
        assert run.interrupted
        assert run.log_weight.shape == (2, 10)

    def test_a_stage_that_others_need_ends_the_call(self, blocks) -> None:
        with log_gamma_session(**FIXED) as session:
            session = replace(session, executor=Interrupting(1))
            with pytest.raises(KeyboardInterrupt):
                session.anneal_fully("Pilot", blocks)


class TestCheckpoint:
    def test_it_is_complete_at_the_end(self, tmp_path: Path) -> None:
        where = pma.Checkpoint(tmp_path / "file", interval=1e6)
        with log_gamma_session(checkpoint=where, **FIXED) as session:
            first = session.log.stage("Pilot", lambda: 5)
        with log_gamma_session(checkpoint=where, **FIXED) as session:
            assert session.log.stage("Pilot", lambda: 6) == first

    def test_the_fingerprint_names_target_settings_and_choices(self, tmp_path: Path) -> None:
        where, settings = tmp_path / "file", Settings(draws=5, chains=2)
        target, quiet = LogGammaTarget(), {"progressbar": False, "checkpoint": where}
        with open_session(target, settings, choices={"power": 2.0}, **quiet) as session:
            names = set(session.log.fingerprint)
        assert {"target", "setting `draws`", "setting `power`", "random_seed"} <= names
        with (
            pytest.raises(ValueError, match=r"setting `power`: 2.0 in the file, 3.0 now"),
            open_session(target, settings, choices={"power": 3.0}, **quiet),
        ):
            pass

    def test_without_a_seed_the_run_takes_that_of_the_file(self, tmp_path: Path) -> None:
        quiet = {"progressbar": False, "checkpoint": tmp_path / "file"}
        settings, found = Settings(draws=5, chains=2), []
        for _ in range(2):
            with open_session(LogGammaTarget(), settings, **quiet) as session:
                found.append(state(session.seeds.counted))
        assert found[0] == found[1]

    def test_nothing_is_stored_after_an_interruption(self, tmp_path: Path, monkeypatch) -> None:
        def interrupt(*args):
            raise KeyboardInterrupt

        monkeypatch.setattr("pymc_anneal.pipeline.session.anneal", interrupt)
        with log_gamma_session(checkpoint=tmp_path / "file", **FIXED) as session:
            with pytest.raises(KeyboardInterrupt):
                session.anneal("Annealing", [])
            session.log.stage("Growth", lambda: "stop")
            session.log.blocks("Reverse").add(0, "a block of an interrupted start")
        with log_gamma_session(checkpoint=tmp_path / "file", **FIXED) as session:
            session.log.blocks("Annealing")
            assert session.log.stage("Growth", lambda: "go on") == "go on"
            assert not session.log.blocks("Reverse").results

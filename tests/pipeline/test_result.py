"""The container of a run, for a target that is no PyMC model."""

import re

from dataclasses import replace

import numpy as np
import pytest

from scipy.optimize import brentq

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group, has_group
from pymc_anneal.evidence.ais import ais
from pymc_anneal.pipeline.result import build_result, draw_posterior
from pymc_anneal.pipeline.reverse_start import OwnDraws
from pymc_anneal.pipeline.run import run_candidate
from tests.cases import COUNT, EXPOSURE, log_gamma_evidence
from tests.pipeline.log_gamma_target import FIXED, KERNEL, LogGammaTarget, log_gamma_session


def run(reverse_from=None, transition=KERNEL, **settings):
    with log_gamma_session(**settings) as session:
        candidate = LogGammaTarget().candidate()
        stages = run_candidate(session, candidate, transition, reverse_from=reverse_from)
        return build_result(session, stages, 1.5)


class TestContainer:
    @pytest.fixture(scope="class")
    @classmethod
    def result(cls):
        return run(reverse_from=OwnDraws(), transition=pma.HMC(), draws=100, chains=2)

    def test_groups(self, result) -> None:
        names = "posterior sample_stats annealing evidence ladder prior reverse_annealing"
        for name in names.split():
            assert has_group(result, name), name

    def test_evidence(self, result) -> None:
        found = pma.log_evidence(result)
        assert abs(found.log_evidence - log_gamma_evidence()) < 4 * found.mcse
        assert found.verdict.trusted

    def test_scalars_and_attributes_of_the_target(self, result) -> None:
        evidence = group(result, "evidence")
        assert float(evidence["coordinates"]) == 2
        assert float(evidence["seconds"]) == 1.5
        assert evidence.attrs["notes"] == "log-gamma"
        assert evidence.attrs["reference"] == "prior"
        assert evidence.attrs["transition"] == "HMC"
        assert evidence.attrs["schedule"] == "variational"
        assert evidence.attrs["path_rejected_because"] == ""
        assert re.match(r"\d+ steps, 200 particles, -", evidence.attrs["trials"])

    def test_the_way_back_meets_the_temperatures_in_the_opposite_order(self, result) -> None:
        forward, back = (group(result, name) for name in ("annealing", "reverse_annealing"))
        sizes = np.asarray(forward["step_size"])
        assert len(np.unique(sizes)) > 1
        np.testing.assert_array_equal(back["step_size"], sizes[..., ::-1])

    def test_evaluations_of_all_stages_are_counted(self, result) -> None:
        evidence = group(result, "evidence")
        stages = pma.log_evidence(result).stages
        assert list(stages) == ["Pilot", "Trial", "Annealing", "Further moves", "Reverse"]
        assert all(reading.evaluations > 0 < reading.seconds for reading in stages.values())
        # Both directions take the same.
        assert stages["Reverse"].evaluations == stages["Annealing"].evaluations
        total = sum(reading.evaluations for reading in stages.values())
        assert float(evidence["evaluations"]) == total


class TestWeights:
    def test_all_weights_of_a_chain_are_zero(self) -> None:
        with log_gamma_session(**FIXED) as session:
            stages = run_candidate(session, LogGammaTarget().candidate(), KERNEL)
            stages.forward.run.log_weight[1] = -np.inf
            with pytest.raises(ValueError, match="All weights of a chain are zero"):
                build_result(session, stages, 0.0)

    def test_a_weight_is_infinite(self) -> None:
        with log_gamma_session(**FIXED) as session:
            stages = run_candidate(session, LogGammaTarget().candidate(), KERNEL)
            stages.forward.run.log_weight[1, 3] = np.inf
            with pytest.raises(ValueError, match=r"log likelihood is \+inf at a particle"):
                build_result(session, stages, 0.0)


class TestDrawPosterior:
    position = np.arange(40.0).reshape(2, 20, 1)

    def draw(self, log_weight: np.ndarray, population_size: int = 1) -> np.ndarray:
        with log_gamma_session(**FIXED) as session:
            return draw_posterior(session, self.position, log_weight, population_size)

    def test_draws_stay_within_their_chain(self) -> None:
        drawn = self.draw(np.zeros((2, 20)))
        assert drawn.shape == (2, 50, 1)
        assert set(drawn[0].ravel()) == set(range(20))
        assert set(drawn[1].ravel()) == set(range(20, 40))

    def test_particles_are_drawn_by_weight(self) -> None:
        log_weight = np.full((2, 20), -np.inf)
        log_weight[:, [3, 5]] = np.log([0.2, 0.8])
        drawn = self.draw(log_weight)
        assert (drawn[0] == 3).sum() == 10
        assert (drawn[0] == 5).sum() == 40

    def test_particles_that_share_ancestors_keep_their_order(self) -> None:
        together = self.draw(np.zeros((2, 20)), population_size=10)[0, :, 0]
        assert (np.diff(together) >= 0).all()

    def test_others_are_shuffled_with_copies_side_by_side(self) -> None:
        apart = np.diff(self.draw(np.zeros((2, 20)))[0, :, 0])
        assert np.count_nonzero(apart) == 19
        assert (apart < 0).any()


class TestPairs:
    """Weights and positions of one step from the prior, whose kernel does not move.

    The log weight of a particle is then ``V`` at its position.
    """

    draws, chains = 400, 3

    @pytest.fixture(scope="class")
    @classmethod
    def result(cls):
        fixed = {**FIXED, "draws": cls.draws, "chains": cls.chains, "steps": 1}
        return run(transition=pma.RandomWalkMetropolis(1e-12, 1, 1.0), **fixed)

    def values(self, result) -> list[np.ndarray]:
        """Log likelihoods of the draws of each chain."""
        x = group(result, "posterior")["x"].values
        return list(x @ COUNT - np.exp(x) @ EXPOSURE)

    def test_copies_are_the_shares_of_the_particles(self, result) -> None:
        log_weight = group(result, "annealing")["log_weight"].values
        for v, own in zip(self.values(result), log_weight, strict=True):
            copies = np.count_nonzero(np.isclose(v[:, None], own, rtol=0, atol=1e-9), axis=0)
            assert copies.sum() == self.draws
            weight = np.exp(own)
            # Systematic resampling rounds up or down.
            assert np.abs(copies - self.draws * weight / weight.sum()).max() < 1

    def test_the_shares_are_uneven(self, result) -> None:
        largest = [np.unique(v, return_counts=True)[1].max() for v in self.values(result)]
        assert min(largest) > 3


class TestVerdict:
    """The error of both directions decides, where both were run."""

    @pytest.fixture(scope="class")
    @classmethod
    def finished(cls):
        settings = {**FIXED, "draws": 500, "steps": 8, "block_size": 1000}
        with log_gamma_session(**settings) as session:
            candidate = LogGammaTarget().candidate()
            return session, run_candidate(session, candidate, KERNEL, reverse_from=OwnDraws())

    def verdict(self, finished, error: float, target: float) -> str:
        """Return the verdict on a run whose combined error is given, for a target."""
        session, stages = finished
        bridge = stages.reverse.bridge
        # The error goes with the effective number of reverse draws.
        few = brentq(lambda log_n: bridge.mcse(np.exp(log_n)) - error, -10, 20)
        known = replace(stages.reverse, bridge=bridge._replace(reverse_ess=np.exp(few)))
        aimed = replace(session, settings=replace(session.settings, target_mcse=target))
        result = build_result(aimed, replace(stages, reverse=known), 0.0)
        assert float(group(result, "evidence")["mcse"]) == pytest.approx(error)
        return pma.log_evidence(result).verdict.status

    @pytest.mark.parametrize(
        ("error", "target", "status"),
        [
            (0.8, 0.9, "trust"),
            (1.2, 1.1, "more steps needed"),
            (1.2, 0.9, "more steps needed"),
            (0.8, 1.1, "trust"),
        ],
    )
    def test_target(self, finished, error: float, target: float, status: str) -> None:
        """All are in units of the forward error."""
        forward = ais(finished[1].forward.run.log_weight).mcse
        assert self.verdict(finished, error * forward, target * forward) == status

    def test_without_a_reverse_run(self, finished) -> None:
        session, stages = finished
        forward = ais(stages.forward.run.log_weight).mcse
        for target, status in ((1.1, "trust"), (0.9, "more steps needed")):
            aimed = replace(session.settings, target_mcse=target * forward)
            alone = replace(stages, reverse=None)
            result = build_result(replace(session, settings=aimed), alone, 0.0)
            assert pma.log_evidence(result).verdict.status == status

"""The container of a run, for a target that is no PyMC model."""

import re

import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.base.arviz_compat import group, has_group
from pymc_anneal.pipeline.result import build_result, draw_posterior
from pymc_anneal.pipeline.reverse_start import OwnDraws
from pymc_anneal.pipeline.run import run_candidate
from tests.cases import log_gamma_evidence
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

    def test_evaluations_of_all_stages_are_counted(self, result) -> None:
        evidence = group(result, "evidence")
        counted = float(evidence["particles"]) * float(evidence["steps"])
        assert float(evidence["evaluations"]) > 2 * counted  # forward and reverse


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

"""An RBM as the target of a run: reference, exact draws, pilot, messages."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from pymc_anneal.pipeline.session import open_session
from pymc_anneal.pipeline.settings import Settings
from pymc_anneal.rbm.paths import GeometricRBMPath
from pymc_anneal.rbm.target import RBMTarget, run_linear_pilot
from pymc_anneal.rbm.transitions import BlockedGibbs
from tests.rbm.small_paths import GEOMETRIC, REFERENCE, TARGET
from tests.rbm_cases import enumerate_states, frequencies_agree, random_rbm

MODEL = RBMTarget(TARGET, REFERENCE)


def test_draws_of_both_ends() -> None:
    for draw, model in ((MODEL.draw_reference, REFERENCE), (MODEL.draw_target, TARGET)):
        visible = draw(np.random.SeedSequence(1), 20_000)
        assert frequencies_agree(visible, enumerate_states(model).probability)


def test_log_reference() -> None:
    assert MODEL.log_reference == pytest.approx(enumerate_states(REFERENCE).log_z, rel=1e-12)


def test_candidates_of_both_directions() -> None:
    forward = MODEL.candidate("RBM", GEOMETRIC)
    assert forward.draw_target is None
    assert MODEL.candidate("RBM", GEOMETRIC, reverse=True).draw_target is not None
    assert forward.reference == "RBM"


def test_draws_are_named_and_small() -> None:
    found = MODEL.posterior(np.ones((2, 5, 4)))["visible"]
    assert found.dims == ("chain", "draw", "visible_dim_0")
    assert found.dtype == np.int8


def test_the_parameters_are_stored() -> None:
    found = MODEL.extra_groups(np.ones((2, 5, 4)), np.random.SeedSequence(1))["constant_data"]
    np.testing.assert_array_equal(found["weights"], MODEL.model.weights)
    assert found["weights"].dims == ("visible_unit", "hidden_unit")


def test_nan_is_explained() -> None:
    message = MODEL.explain_nan(np.array([1.0, 0.0, 1.0, 1.0]))
    assert "3 active visible units of 4" in message
    assert "float64" in message


class TestFingerprint:
    def test_it_is_that_of_the_parameters(self) -> None:
        again = RBMTarget(jax.tree.map(np.copy, TARGET), REFERENCE)
        assert again.fingerprint() == MODEL.fingerprint()

    @pytest.mark.parametrize("part", ["model", "reference"])
    def test_other_parameters(self, part: str) -> None:
        other = replace(MODEL, **{part: random_rbm(4, 3, seed=8)})
        assert other.fingerprint() != MODEL.fingerprint()


class TestLinearPilot:
    @pytest.fixture(scope="class")
    @classmethod
    def pilot(cls):
        settings = Settings(draws=5, chains=3, block_size=60)
        candidate = MODEL.candidate("RBM", GEOMETRIC)
        with open_session(MODEL, settings, random_seed=1, progressbar=False) as session:
            return run_linear_pilot(session, candidate, BlockedGibbs(), session.seeds.pilot)

    def test_size(self, pilot) -> None:
        np.testing.assert_allclose(pilot.betas, np.linspace(0, 1, 1001))
        assert pilot.position.shape == (102, 4)  # 34 in each of three chains
        assert pilot.evaluations == 102 * 1000 * BlockedGibbs().cost(np.ones(1))[0]

    def test_barrier_is_the_length_of_the_path(self, pilot) -> None:
        # int sqrt(Var_beta[v]) dbeta over all visible states.
        with jax.enable_x64(True):
            path = GeometricRBMPath(REFERENCE.visible_bias, TARGET)
            grid = np.linspace(0, 1, 201)
            exact = np.trapezoid([np.sqrt(velocity_variance(path, b)) for b in grid], grid)
        assert pilot.barrier == pytest.approx(exact, rel=0.15)


def velocity_variance(path: GeometricRBMPath, beta: float) -> float:
    visible = ((np.arange(16)[:, None] >> np.arange(4)) & 1).astype(float)
    terms = path.evaluate(visible)
    log_density = np.asarray(path.log_density(terms, beta))
    mass = np.exp(log_density - log_density.max())
    velocity = np.asarray(path.velocity(terms, beta))
    mean = np.average(velocity, weights=mass)
    return float(np.average((velocity - mean) ** 2, weights=mass))

"""Particle systems: the length of a step, resampling, moves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation.particles import ParticleSystem
from pymc_anneal.adaptation.tuning import Candidate
from pymc_anneal.base.contracts import LogTerms, NanDensityError
from tests.adaptation.normal_path import normal_path
from tests.cases import GIBBS, ON_RATE, WALK, mixed_draws, mixed_terms

N = 4000
PATH = normal_path(1, 1.0, 3.0, 0.5)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def create(path, kernel, position: np.ndarray | None = None) -> ParticleSystem:
    if position is None:
        position = np.random.default_rng(1).normal(size=(N, 1))
    return ParticleSystem.create(path, kernel, jax.random.key(1), position)


def discrepancy(log_u: np.ndarray) -> float:
    u = np.exp(log_u[np.isfinite(log_u)] - log_u.max())
    return float(np.log((u**2).mean() / u.mean() ** 2))


def likelihood(position: np.ndarray) -> np.ndarray:
    return np.asarray(PATH.evaluate(position).log_likelihood)


class TestNextBeta:
    def test_the_step_has_the_wanted_discrepancy(self) -> None:
        particles = create(PATH, pma.HMC())
        beta, step = particles.next_beta(PATH, 0.0)
        log_u = beta * likelihood(particles.state.position)
        np.testing.assert_allclose(step.log_u, log_u, rtol=1e-12)
        assert float(step.discrepancy) == pytest.approx(discrepancy(log_u))
        assert discrepancy(log_u) == pytest.approx(0.25, rel=1e-6)
        assert float(step.log_mean) == pytest.approx(np.log(np.exp(log_u).mean()))

    def test_it_ends_at_one(self) -> None:
        flat = pma.GeometricPath(lambda x: LogTerms(-0.5 * (x**2).sum(), 0.01 * x[0]))
        assert create(flat, pma.HMC()).next_beta(flat, 0.3)[0] == 1.0

    def test_particles_of_zero_likelihood_count_in_the_mean_only(self) -> None:
        half = pma.GeometricPath(
            lambda x: LogTerms(-0.5 * (x**2).sum(), jnp.where(x[0] > 0, 0.0, -jnp.inf))
        )
        particles = create(half, pma.HMC())
        beta, step = particles.next_beta(half, 0.0)
        share = (np.asarray(particles.state.position) > 0).mean()
        assert beta == 1.0
        assert float(step.discrepancy) == pytest.approx(0, abs=1e-12)
        assert float(step.log_mean) == pytest.approx(np.log(share))


class TestResample:
    def test_equal_weights_and_the_scale_of_the_new_density(self) -> None:
        particles = create(PATH, pma.RandomWalkMetropolis())
        beta, step = particles.next_beta(PATH, 0.0)
        rng = np.random.default_rng(2)
        resampled = particles.resample(PATH, beta, np.asarray(step.log_u), rng)
        # The density at beta is normal.
        precision = 1 + beta / 0.25
        mean, sd = beta * 3.0 / 0.25 / precision, precision**-0.5
        position = np.asarray(resampled.state.position)
        assert position.mean() == pytest.approx(mean, abs=6 * sd / np.sqrt(0.5 * N))
        assert set(position.ravel()) <= set(np.asarray(particles.state.position).ravel())
        assert resampled.tuner.parts[0].scale[0] == pytest.approx(sd, rel=0.1)
        log_likelihood = likelihood(position)
        np.testing.assert_allclose(resampled.state.terms.log_likelihood, log_likelihood)

    def test_gradients_make_the_scale_exact(self) -> None:
        particles = create(PATH, pma.HMC())
        resampled = particles.resample(PATH, 0.5, np.zeros(N), np.random.default_rng(2))
        # The balance of sd(x) = 1 and sd(gradient) = 1 + 0.5 / 0.25 = 3, see preconditioner.py.
        assert resampled.tuner.parts[0].scale[0] == pytest.approx(3**-0.5, rel=1e-6)


class TestMoveAndTune:
    def test_every_candidate_moves_the_particles_and_tunes(self) -> None:
        particles = create(PATH, pma.HMC())
        moved = particles.move_and_tune(PATH, 0.0, jax.random.key(2), [Candidate(0, 5)])
        again = moved.move_and_tune(PATH, 0.0, jax.random.key(3), [Candidate(0, 6)])
        for first, second, level in ((particles, moved, 5), (moved, again, 6)):
            assert (first.state.position != second.state.position).mean() > 0.5
            assert np.isnan(first.tuner.parts[0].scores[level])
            assert np.isfinite(second.tuner.parts[0].scores[level])
        assert again.keep_best().tuner.parts[0].level in (5, 6)

    def test_the_diagnostics_are_those_of_each_part(self) -> None:
        path = pma.GeometricPath(mixed_terms)
        kernel = pma.Composition([ON_RATE, GIBBS, WALK])
        position = mixed_draws(0.5, N, np.random.default_rng(1))
        particles = create(path, kernel, position)
        candidates = particles.tuner.current()[:1]
        moved = particles.move_and_tune(path, 0.5, jax.random.key(2), candidates)
        assert 0 < moved.tuner.accept_rate < 1
        assert moved.tuner.tau != particles.tuner.tau
        assert (np.asarray(moved.state.position)[:, [0, 1, 3, 4]] % 1 == 0).all()

    def test_nan_at_a_proposal_is_an_error_with_its_position(self) -> None:
        path = pma.GeometricPath(
            lambda x: LogTerms(-0.5 * (x**2).sum(), jnp.where(x[0] > 0.5, jnp.nan, 0.0))
        )
        particles = create(path, pma.RandomWalkMetropolis(), np.zeros((100, 1)))
        with pytest.raises(NanDensityError, match="NaN at x") as caught:
            particles.move_and_tune(path, 1.0, jax.random.key(1), [Candidate(0, 0)])
        assert caught.value.position[0] > 0.5

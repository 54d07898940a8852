"""Particle systems: the length of a step, resampling, moves."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation.particles import ParticleSystem, _move_twice
from pymc_anneal.adaptation.tuning import Candidate
from pymc_anneal.base.contracts import KernelState, LogTerms, NanDensityError, StepInfo
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


def test_particles_know_their_ancestors() -> None:
    """Resampled twice and not moved, they are where their ancestors are."""
    particles, rng = create(PATH, pma.HMC()), np.random.default_rng(3)
    start = np.asarray(particles.state.position)
    for beta in (0.1, 0.5):
        log_u = beta * likelihood(np.asarray(particles.state.position))
        particles = particles.resample(PATH, beta, log_u, rng)
    np.testing.assert_array_equal(particles.state.position, start[particles.ancestor])
    assert 1 < len(np.unique(particles.ancestor)) < N


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

    def test_copies_by_hand(self) -> None:
        """Up to each particle, copies are proportional to the weights to within one copy."""
        particles = create(PATH, pma.RandomWalkMetropolis())
        log_u = np.random.default_rng(3).normal(size=N)
        resampled = particles.resample(PATH, 0.5, log_u, np.random.default_rng(2))
        position = np.asarray(particles.state.position)[:, 0]
        order = np.argsort(position)
        index = order[np.searchsorted(position[order], resampled.state.position[:, 0])]
        copies = np.cumsum(np.bincount(index, minlength=N))
        share = np.cumsum(np.exp(log_u)) / np.exp(log_u).sum()
        assert np.abs(copies - N * share).max() < 1.001


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Autoregression(pma.Transition):
    """A process of first order, of evaluations that are counted as three."""

    rho: float

    def cost(self, betas: np.ndarray) -> np.ndarray:
        return np.full(len(betas), 3)

    def step(self, key, state, path, beta):
        noise = jax.random.normal(key, state.position.shape)
        position = self.rho * state.position + jnp.sqrt(1 - self.rho**2) * noise
        info = StepInfo(jnp.ones(len(position)), jnp.zeros(len(position)), position)
        return KernelState(position, path.evaluate(position), ()), info


class TestMoveTwice:
    # The velocity is the coordinate itself.
    path = pma.GeometricPath(lambda x: LogTerms(-0.5 * (x**2).sum(), x[0]))

    def test_autocorrelations(self) -> None:
        particles = create(self.path, Autoregression(0.8))
        _, moves = _move_twice(
            self.path, Autoregression(0.8), particles.state, jax.random.key(1), 0.5, 0
        )
        assert float(moves.first) == pytest.approx(0.8, abs=0.04)
        assert float(moves.second) == pytest.approx(0.64, abs=0.05)

    def test_every_candidate_has_its_own_random_numbers(self) -> None:
        """Moves without memory end elsewhere after the second candidate."""
        particles, key = create(self.path, Autoregression(0.0)), jax.random.key(1)
        once, twice = (
            particles.move_and_tune(self.path, 0.5, key, count * [Candidate(0, 0)])
            for count in (1, 2)
        )
        assert (once.state.position != twice.state.position).all()

    def test_evaluations(self) -> None:
        particles = create(self.path, Autoregression(0.0))
        assert particles.evaluations(5 * [Candidate(0, 0)]) == 2 * 5 * 3 * N


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

    @pytest.mark.slow
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

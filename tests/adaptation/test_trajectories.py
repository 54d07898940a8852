"""Hamiltonian trajectories outside of a compiled loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scipy import stats

import pymc_anneal as pma

from pymc_anneal.adaptation.target_density import TargetDensity
from pymc_anneal.adaptation.trajectories import move_by_trajectories
from pymc_anneal.base import LogTerms

D, N, DF = 6, 1200, 6.0
NORMAL = pma.GaussianReference(np.full(D, 0.5), np.eye(D))


def log_student_t(x: jax.Array) -> LogTerms:
    """Return independent Student-t densities, of which the prior is a part."""
    log_prior = jax.scipy.stats.norm.logpdf(x, 0, 10).sum()
    return LogTerms(log_prior, jax.scipy.stats.t.logpdf(x, DF).sum() - log_prior)


def move(start: np.ndarray, moves: int) -> np.ndarray:
    target = TargetDensity(pma.GeometricPath(log_student_t), 400)
    return move_by_trajectories(target, start, NORMAL, np.random.SeedSequence(7), moves)


def test_the_target_is_left_invariant() -> None:
    # A step in place of a half one at either end of a trajectory fails, and so does a wrong sign.
    start = stats.t(DF).rvs((N, D), random_state=1)
    end = move(start, 4)
    assert stats.kstest(end.ravel(), stats.t(DF).cdf).pvalue > 1e-4
    squared = np.square(np.tanh(end)).mean() - stats.t(DF).expect(lambda x: np.tanh(x) ** 2)
    assert abs(squared) < 4 * np.square(np.tanh(end)).std() / np.sqrt(end.size)


def test_particles_leave_their_place() -> None:
    end = move(np.full((N, D), 0.3), 6)
    assert stats.kstest(end[:, 0], stats.t(DF).cdf).pvalue > 1e-4
    assert abs(np.corrcoef(end[:-1, 0], end[1:, 0])[0, 1]) < 0.1


def test_the_energy_is_nearly_kept() -> None:
    # 95 % of the trajectories are accepted; with a whole step of the momentum at one end, 78 %.
    def normal(x: jax.Array) -> LogTerms:
        return LogTerms(jax.scipy.stats.norm.logpdf(x).sum(), 0.0 * x[0])

    start = np.random.default_rng(5).standard_normal((4000, D))
    target = TargetDensity(pma.GeometricPath(normal), 400)
    near = pma.GaussianReference(np.zeros(D), np.eye(D))
    end = move_by_trajectories(target, start, near, np.random.SeedSequence(2), 1)
    assert (end != start).any(axis=1).mean() > 0.9


def test_a_proposal_out_of_the_support_is_rejected() -> None:
    def half(x: jax.Array) -> LogTerms:
        log_prior = jax.scipy.stats.norm.logpdf(x, 0, 1).sum()
        return LogTerms(log_prior, jnp.where(x[0] > 0, 0.0, -jnp.inf))

    rng = np.random.default_rng(2)
    start = rng.standard_normal((N, 2))
    start[:, 0] = np.abs(start[:, 0])
    target = TargetDensity(pma.GeometricPath(half), 400)
    normal = pma.GaussianReference(np.zeros(2), np.eye(2))
    end = move_by_trajectories(target, start, normal, np.random.SeedSequence(3), 3)
    assert (end[:, 0] > 0).all()
    assert stats.kstest(end[:, 0], stats.halfnorm.cdf).pvalue > 1e-4
    assert np.mean(end != start) == pytest.approx(1.0, abs=0.4)
    assert target.evaluations == N * (1 + 3 * 2)

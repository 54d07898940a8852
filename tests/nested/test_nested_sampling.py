"""Nested sampling of a known problem: the error, its checks, and runs with planted faults.

The likelihood is a function of the prior mass above it, ``log L(X) = -X^(2/d) / (2 s^2)``, a normal
density in the middle of a ball (Skilling 2006, section 3.2.2), so that points are prior masses and
ideal runs are simulated without a sampler.
"""

import numpy as np
import pytest

from scipy import stats
from scipy.special import gammaln

from pymc_anneal.nested.nested_sampling import (
    NestedRun,
    combine_runs,
    count_live,
    doubt_ranks,
    information,
    insertion_ranks,
    simulate_shrinkage,
)

DIMENSION, SCALE = 8, 0.1
# int_0^1 exp(-X^(2/d) / (2 s^2)) dX
LOG_Z = (
    DIMENSION / 2 * np.log(2 * SCALE**2)
    + gammaln(DIMENSION / 2 + 1)
    + stats.gamma.logcdf(1 / (2 * SCALE**2), DIMENSION / 2)
)


def ideal_run(rng, n_live=200, batch=1, reach=1.0):
    """Return log likelihoods at birth and death of a run whose new points are as they should be.

    With a `reach` below one they are not: they stay out of the innermost part of the contour.
    """
    mass, born = rng.uniform(size=n_live), np.ones(n_live)
    dead = []
    while mass.max() > 1e-9:
        worst = np.argsort(mass)[-batch:]
        dead += zip(born[worst], mass[worst], strict=True)
        limit = mass[worst].min()
        mass[worst], born[worst] = limit * (1 - reach * rng.uniform(size=batch)), limit
    dead += zip(born, mass, strict=True)
    born, mass = np.array(sorted(dead, key=lambda pair: -pair[1])).T
    birth = np.where(born < 1, log_likelihood(born), -np.inf)
    return birth, log_likelihood(mass)


def log_likelihood(mass):
    return -(mass ** (2 / DIMENSION)) / (2 * SCALE**2)


def estimate(rng, **kwargs):
    birth, death = ideal_run(rng, **kwargs)
    return simulate_shrinkage(death, count_live(birth, death), rng)


@pytest.mark.parametrize("batch", [pytest.param(1, marks=pytest.mark.slow), 20])
def test_the_error_covers(batch: int) -> None:
    rng = np.random.default_rng(3)
    found = [estimate(rng, batch=batch) for _ in range(40)]
    scores = np.array([(f.log_evidence - LOG_Z) / f.mcse for f in found])
    assert abs(scores.mean()) < 4 / np.sqrt(40)
    assert scores.std() == pytest.approx(1, abs=4 / np.sqrt(80))


def test_the_error_is_that_of_the_information() -> None:
    rng = np.random.default_rng(1)
    birth, death = ideal_run(rng)
    found = simulate_shrinkage(death, count_live(birth, death), rng)
    h = information(death, found.log_weight, found.log_evidence)
    assert found.mcse == pytest.approx(np.sqrt(h / 200), rel=0.2)


class Exponentials:
    """A generator whose exponential numbers are known."""

    def __init__(self, values: list[float]) -> None:
        self.values = np.array(values)

    def standard_exponential(self, shape: tuple[int, int]) -> np.ndarray:
        return np.broadcast_to(self.values[:, None], shape)


def test_shrinkage_by_hand() -> None:
    """Three live points, and then the last two: ``log t_i = -e_i / n_i``."""
    exponential, live = [0.3, 1.2, 0.6, 2.0], np.array([3, 3, 2, 1])
    log_like = np.array([-4.0, -1.0, 0.5, 2.0])
    x = [1.0, *np.exp([-0.1, -0.1 - 0.4, -0.1 - 0.4 - 0.3, -0.1 - 0.4 - 0.3 - 2.0]), 0.0]
    width = np.array([x[0] - x[2], x[1] - x[3], x[2] - x[4], x[3] - x[5]]) / 2
    weight = np.exp(log_like) * width
    found = simulate_shrinkage(log_like, live, Exponentials(exponential))
    assert found.log_evidence == pytest.approx(np.log(weight.sum()), rel=1e-12)
    assert found.mcse == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(found.log_weight, np.log(weight / weight.sum()), rtol=1e-12)


@pytest.mark.parametrize("n_live", [20, 300])
def test_step_of_the_likelihood(n_live: int) -> None:
    """The likelihood is one inside of a tenth of the prior and zero outside.

    With mean shrinkages the evidence is the mean of the two masses beside the step.
    """
    steps = np.arange(1, 30 * n_live)
    mass = np.exp(-steps / n_live)
    log_like = np.where(mass < 0.1, 0.0, -700.0)
    live = np.full(len(steps), n_live)
    found = simulate_shrinkage(log_like, live, Exponentials(np.ones(len(steps))))
    inside = np.flatnonzero(mass < 0.1)[0]
    expected = (mass[inside - 1] + mass[inside]) / 2
    assert found.log_evidence == pytest.approx(np.log(expected), abs=1e-9)
    # A twin with another live point is off by a share of log 10.
    twin = simulate_shrinkage(log_like, live + 1, Exponentials(np.ones(len(steps))))
    assert abs(twin.log_evidence - found.log_evidence) > 2 / n_live


def test_information_by_hand() -> None:
    share, log_like = np.array([0.2, 0.3, 0.5]), np.array([-3.0, 1.0, 2.0])
    log_weight = np.append(np.log(share), -np.inf) + 7.0
    found = information(np.append(log_like, -np.inf), log_weight, -0.4)
    assert found == pytest.approx(share @ log_like + 0.4, rel=1e-12)


def test_insertion_ranks_by_hand() -> None:
    """Three points, then a new one above each of two deaths; half a rank for the place inside."""

    class Middle:
        def uniform(self, size: int) -> np.ndarray:
            return np.full(size, 0.5)

    birth = np.array([-np.inf, -np.inf, -np.inf, 1.0, 2.0])
    death = np.array([1.0, 2.0, 3.0, 2.5, 4.0])
    order = np.argsort(death)
    ranks = insertion_ranks(birth[order], death[order], Middle())
    # 2.5 is drawn among 2 and 3; 4 among 2.5 and 3.
    np.testing.assert_allclose(ranks, [1.5 / 3, 2.5 / 3], rtol=1e-12)


def test_insertion_ranks_of_a_plateau() -> None:
    """Among points of the same likelihood any rank is as likely."""
    birth = np.concatenate([np.full(60, -np.inf), np.full(40, -3.0)])
    death = np.concatenate([np.full(50, -3.0), np.zeros(50)])
    rng = np.random.default_rng(1)
    ranks = np.concatenate([insertion_ranks(birth, death, rng) for _ in range(100)])
    assert len(ranks) == 4000
    assert not doubt_ranks(ranks)


def test_count_of_live_points() -> None:
    birth = np.array([-np.inf, -np.inf, -np.inf, 1.0, 2.0])
    death = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert count_live(birth, death).tolist() == [3, 3, 3, 2, 1]


@pytest.mark.parametrize("batch", [1, 20])
def test_ranks_of_ideal_runs(batch: int) -> None:
    rng = np.random.default_rng(5)
    ranks = insertion_ranks(*ideal_run(rng, batch=batch), rng)
    assert len(ranks) > 3000
    assert not doubt_ranks(ranks)


def test_points_that_are_no_draws_of_the_constrained_prior_are_noticed() -> None:
    """Planted fault: walks too short to reach the inside of the contour; the error is too small."""
    rng = np.random.default_rng(7)
    birth, death = ideal_run(rng, reach=0.9)
    found = simulate_shrinkage(death, count_live(birth, death), rng)
    assert abs(found.log_evidence - LOG_Z) > 4 * found.mcse
    [doubt] = doubt_ranks(insertion_ranks(birth, death, rng))
    assert "insertion ranks" in doubt


def run(log_z, mcse=0.1, draws=400, doubts=()):
    return NestedRun(log_z, mcse, np.zeros((draws, 1)), np.zeros(draws), 3.0, 1000, doubts)


class TestCombineRuns:
    def test_agreement(self) -> None:
        found = combine_runs([run(1.0), run(1.05)], 0.1)
        assert found.log_evidence == pytest.approx(1.025)
        assert found.mcse == pytest.approx(0.1 / np.sqrt(2))
        assert found.ess == pytest.approx(800)
        assert found.verdict.trusted

    def test_a_spread_beyond_the_errors_widens_the_error(self) -> None:
        found = combine_runs([run(1.0), run(1.3)], 0.2)
        assert found.mcse == pytest.approx(0.3 / 2)  # the standard error of the mean of the two

    def test_runs_of_different_modes(self) -> None:
        found = combine_runs([run(1.0), run(4.0)], 0.1)
        assert found.verdict.status == "do not trust"
        assert "the runs disagree" in str(found.verdict)

    def test_a_target_that_is_missed(self) -> None:
        verdict = combine_runs([run(1.0, mcse=0.4)], 0.1).verdict
        assert verdict.status == "more draws needed"
        assert "16.0 times the live points" in str(verdict)

    def test_few_effective_draws(self) -> None:
        assert "amount to 40 draws" in str(combine_runs([run(1.0, 0.01, draws=40)], 0.1).verdict)

    def test_doubts_of_a_run(self) -> None:
        verdict = combine_runs([run(1.0), run(1.0, doubts=("it is wrong",))], 0.1).verdict
        assert verdict.reasons == ("it is wrong",)
        assert verdict.status == "do not trust"

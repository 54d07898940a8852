"""The tuner: scales, step sizes and effort levels from the diagnostics of moves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pymc_anneal as pma

from pymc_anneal.adaptation.tuning import (
    Candidate,
    KernelTuning,
    MoveDiagnostics,
    Tuner,
    autocorrelation_time,
    by_temperature,
    needs_pilot,
)
from pymc_anneal.transitions.by_temperature import TunedTransition
from tests.cases import GIBBS, ON_RATE, WALK

POSITION = np.random.default_rng(1).normal(size=(400, 16))


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


class TestAutocorrelationTime:
    @pytest.mark.parametrize("rho", [0.1, 0.5, 0.8])
    def test_of_a_first_order_process(self, rho: float) -> None:
        assert autocorrelation_time(rho, rho**2) == pytest.approx((1 + rho) / (1 - rho))

    def test_of_independent_moves(self) -> None:
        assert autocorrelation_time(0.0, 0.0) == 1

    def test_antithetic_moves_count_down_to_one_half(self) -> None:
        assert autocorrelation_time(-0.1, 0.01) == pytest.approx(0.8)
        assert autocorrelation_time(-0.9, 0.8) == 0.5

    def test_a_slow_component_lengthens_it_up_to_a_limit(self) -> None:
        # The ratio of autocorrelations counts as at most 0.95.
        assert autocorrelation_time(0.2, 0.1) == pytest.approx(1 + 2 * 0.2 / 0.5)
        assert autocorrelation_time(0.2, 0.4) == pytest.approx(1 + 2 * 0.2 / 0.05)

    def test_noise_of_the_second_lag_does_not_shorten_it(self) -> None:
        assert autocorrelation_time(0.5, -0.3) == autocorrelation_time(0.5, 0.25)

    def test_it_stays_finite(self) -> None:
        assert np.isfinite(autocorrelation_time(1.0, 1.0))


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (pma.HMC(), True),
        (pma.HMC(0.1, 2), True),
        (pma.HMC(0.1, 2, 1.0), False),
        (GIBBS, False),
        (pma.Composition([ON_RATE, GIBBS, WALK]), False),
        (pma.Composition([ON_RATE, GIBBS, pma.DiscreteRandomWalk([3])]), True),
        (pma.BlockTransition(pma.MALA(), [0]), True),
    ],
)
def test_a_pilot_is_needed_if_a_parameter_of_a_part_is_free(kernel, expected: bool) -> None:
    assert needs_pilot(kernel) == expected


def create(kernel, position: np.ndarray = POSITION) -> KernelTuning:
    return KernelTuning.create(kernel, position)


class TestKernelTuning:
    @pytest.mark.parametrize(
        ("kernel", "step"),
        [
            (pma.HMC(), 1.2 * 16**-0.25),
            (pma.RandomWalkMetropolis(), 2.4 * 16**-0.5),
            (pma.BlockTransition(pma.RandomWalkMetropolis(), [0, 3, 4, 5]), 1.2),
            (pma.DiscreteRandomWalk(range(16)), 2.4),  # coordinates move singly
        ],
        ids=["hmc", "random_walk", "block", "discrete_walk"],
    )
    def test_the_first_step_has_the_optimal_scaling(self, kernel, step: float) -> None:
        assert create(kernel).step_limit == pytest.approx(step)

    def test_parameters_of_a_level(self) -> None:
        both = create(pma.HMC()).parameters(3)
        step_size, n_steps = pma.HMC().effort(3, 0.6)
        assert both == {"step_size": step_size, "n_steps": n_steps}
        assert create(pma.HMC(step_size=0.1)).parameters(3) == {"n_steps": 4}
        assert create(pma.HMC(n_steps=2)).parameters(3) == {"step_size": pytest.approx(0.6)}
        assert create(pma.HMC(0.1, 2)).parameters(3) == {}

    @pytest.mark.parametrize("kernel", [pma.HMC(), pma.RandomWalkMetropolis(), pma.MALA()])
    def test_effort_grows_by_level(self, kernel) -> None:
        tuning = create(kernel)
        costs = [tuning.cost(level) for level in range(24)]
        assert costs == sorted(costs)
        assert costs[23] > 20 * costs[0]
        limits = [tuning.parameters(level)["step_size"] for level in range(24)]
        assert max(limits) <= tuning.step_limit * (1 + 1e-12)

    def test_only_free_parameters_are_set(self) -> None:
        kernel = create(pma.HMC(n_steps=7)).build(0)
        assert kernel.n_steps == 7
        assert float(kernel.step_size) > 0
        assert kernel.scale.shape == (16, 16)
        fixed = pma.HMC(0.1, 2, 1.0)
        assert create(fixed).build(0) is fixed

    @pytest.mark.parametrize(("particles", "shape"), [(400, (16, 16)), (20, (16,))])
    def test_the_scale_keeps_its_form(self, particles, shape) -> None:
        """A matrix if all particles would do for correlations, though those with weight do not."""
        position, weight = POSITION[:particles], np.zeros(particles)
        weight[:10] = 1.0
        tuning = create(pma.RandomWalkMetropolis(), position)
        scale = tuning.rescale(position, weight, None).scale
        assert tuning.scale.shape == scale.shape == shape
        if scale.ndim == 2:
            assert np.count_nonzero(scale) == 16

    def test_scale_is_the_spread_of_the_weighted_particles(self) -> None:
        position = np.vstack([POSITION, 100 + POSITION])
        weight = np.repeat([1.0, 0.0], len(POSITION))
        kernel = pma.BlockTransition(pma.RandomWalkMetropolis(), [2, 5])
        scale = create(kernel, position).rescale(position, weight, None).scale
        np.testing.assert_allclose(scale @ scale.T, np.eye(2), atol=0.2)
        given = create(pma.HMC(scale=3.0), position)
        assert given.rescale(position, weight, None) is given

    def test_a_low_acceptance_shortens_the_step(self) -> None:
        tuning = create(pma.HMC())
        low, right, high = (tuning.update(5, 0.0, rate, 0.0) for rate in (0.5, 0.92, 0.999))
        assert low.step_limit < right.step_limit < high.step_limit

    def test_stuck_particles_shorten_the_step(self) -> None:
        tuning = create(pma.HMC())
        free, stuck = (tuning.update(5, 0.0, 0.92, share) for share in (0.0, 0.1))
        assert stuck.step_limit < free.step_limit
        walk = create(pma.RandomWalkMetropolis())  # does not check them
        steps = [walk.update(0, 0.0, 0.3, share).step_limit for share in (0.0, 0.1)]
        assert steps[0] == steps[1]

    def test_scores_are_smoothed(self) -> None:
        once = create(pma.HMC()).update(5, 2.0, 0.9, 0.0)
        twice = once.update(5, 3.0, 0.9, 0.0)
        assert once.scores[5] == 2.0
        assert twice.scores[5] == pytest.approx(0.7 * 2.0 + 0.3 * 3.0)

    def test_it_moves_to_the_best_neighbouring_level(self) -> None:
        tuning = create(pma.HMC())
        assert tuning.keep_best().level == tuning.level == 5
        for level, score in ((4, 3.0), (5, 2.0), (6, 1.0), (7, 0.0)):
            tuning = tuning.update(level, score, 0.9, 0.0)
        assert tuning.keep_best().level == 6
        fixed = create(pma.HMC(n_steps=2)).update(6, 0.0, 0.9, 0.0)
        assert fixed.keep_best().level == fixed.level

    def test_levels_to_try(self) -> None:
        assert create(pma.HMC()).levels(3) == [5, 4, 6]
        assert create(pma.MALA()).levels(4) == [0, 0, 1, 0]
        assert create(pma.HMC(n_steps=2)).levels(2) == [5, 5]


class TestTuner:
    transition = pma.Composition([pma.BlockTransition(pma.HMC(), [2]), GIBBS, pma.MALA(0.1, 1)])

    def test_candidates_are_levels_of_the_free_parts(self) -> None:
        tuner = Tuner.create(self.transition, POSITION)
        assert tuner.candidates(3) == [
            *(Candidate(0, level) for level in (5, 4, 6)),
            *[Candidate(2, 0)] * 3,
        ]
        assert len(tuner.candidates(7)) == 14
        assert tuner.current() == [Candidate(0, 5), Candidate(1, 0), Candidate(2, 0)]

    def test_a_kernel_without_free_parameters_is_measured_only(self) -> None:
        tuner = Tuner.create(GIBBS, POSITION)
        assert tuner.candidates(3) == [Candidate(0, 0)] * 3
        assert tuner.build() == GIBBS

    def test_a_candidate_changes_one_part(self) -> None:
        tuner = Tuner.create(self.transition, POSITION)
        block, gibbs, _ = tuner.build(Candidate(0, 8)).parts
        assert int(block.kernel.n_steps) > int(tuner.build().parts[0].kernel.n_steps)
        assert gibbs == GIBBS

    def test_cost_is_that_of_all_parts(self) -> None:
        tuner = Tuner.create(self.transition, POSITION)
        assert tuner.cost == tuner.build().cost(np.zeros(1))[0]

    def test_the_score_is_the_cost_of_an_independent_move(self) -> None:
        """Of the whole transition, with the level of the candidate."""
        tuner = Tuner.create(self.transition, POSITION)
        moves = MoveDiagnostics(np.full(3, 0.9), np.zeros(3), 0.8, 0.64)
        cost = {k: tuner.build(Candidate(0, k)).cost(np.zeros(1))[0] for k in (5, 8)}
        assert cost[5] != cost[8]
        for level in cost:
            found = tuner.update(Candidate(0, level), moves).parts[0].scores[level]
            assert found == pytest.approx(np.log(cost[level] * autocorrelation_time(0.8, 0.64)))

    def test_only_moves_at_the_current_level_count_for_the_autocorrelation_time(self) -> None:
        tuner = Tuner.create(pma.HMC(), POSITION)
        moves = MoveDiagnostics(np.array([0.9]), np.array([0.0]), 0.8, 0.64)
        assert tuner.update(Candidate(0, 6), moves).tau == tuner.tau
        found = tuner.update(Candidate(0, 5), moves)
        assert found.tau == pytest.approx(np.sqrt(9.0 * tuner.tau))
        assert found.accept_rate == pytest.approx(0.9)

    def test_gradients_are_taken_only_if_a_scale_uses_them(self) -> None:
        calls = []

        def gradient() -> np.ndarray:
            calls.append(1)
            return -POSITION

        weight = np.ones(len(POSITION))
        for kernel, count in (
            (pma.RandomWalkMetropolis(), 0),
            (pma.HMC(scale=1.0), 0),
            (pma.HMC(), 1),
        ):
            Tuner.create(kernel, POSITION).rescale(POSITION, weight, gradient)
            assert len(calls) == count


class TestByTemperature:
    def test_a_kernel_without_free_parameters_stays_as_it_is(self) -> None:
        kernel = pma.HMC(0.1, 2, 1.0)
        assert by_temperature([0.5, 1.0], [Tuner.create(kernel, POSITION)] * 2) is kernel

    def test_one_set_of_parameters_for_each_temperature(self) -> None:
        position = POSITION[:, :2]
        first = Tuner.create(pma.HMC(), position)
        moves = MoveDiagnostics(np.array([0.2]), np.array([0.0]), 0.5, 0.25)
        second = first.update(Candidate(0, 5), moves)
        tuned = by_temperature([0.5, 1.0], [first, second])
        assert isinstance(tuned, TunedTransition)
        for beta, tuner in ((0.5, first), (1.0, second)):
            at, expected = tuned.at(jnp.asarray(beta)), tuner.build()
            assert float(at.step_size) == pytest.approx(float(expected.step_size))
            assert int(at.n_steps) == int(expected.n_steps)
        assert tuned.at(jnp.asarray(1.0)).step_size < tuned.at(jnp.asarray(0.5)).step_size

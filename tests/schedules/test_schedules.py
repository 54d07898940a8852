"""Annealing schedules."""

import numpy as np
import pytest

from scipy import integrate

import pymc_anneal as pma

from pymc_anneal.schedules.named import SCHEDULES as NAMED
from pymc_anneal.schedules.named import resolve_schedule
from pymc_anneal.schedules.optimal_binned import optimal_binned_from_lengths
from pymc_anneal.schedules.variational import _make_strictly_increasing
from tests.cases import Case, parametrize
from tests.schedule_cases import INNER_SCHEDULES, SCHEDULES


@pytest.mark.parametrize("steps", [1, 2, 7, 1000])
@parametrize("case", [*SCHEDULES, *INNER_SCHEDULES])
def test_contract(case: Case, steps: int) -> None:
    betas = case.make(steps)
    assert betas.shape == (steps + 1,)
    assert betas.dtype == np.float64
    assert betas[0] == 0.0
    assert betas[-1] == 1.0
    assert (np.diff(betas) > 0).all()


@pytest.mark.parametrize("name", NAMED)
def test_fixed_schedules_by_name(name: str) -> None:
    assert resolve_schedule(name) is getattr(pma, f"{name}_schedule")


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("variational", pma.variational_schedule),
        ("optimal_binned", optimal_binned_from_lengths),
    ],
)
def test_schedules_from_a_pilot_by_name(name: str, function) -> None:
    betas, length = np.array([0.0, 0.1, 0.4, 1.0]), np.array([2.0, 1.0, 0.3])
    found = resolve_schedule(name).build(betas, length, 20, 0.1)
    np.testing.assert_array_equal(found, function(betas, length, 20, max_step=0.1))


@pytest.mark.parametrize("steps", [0, -3, 2.0, True, "ten"])
@parametrize(
    "case", [c for c in SCHEDULES if c.name in ("linear", "power", "geometric", "sigmoid")]
)
def test_invalid_steps(case: Case, steps: object) -> None:
    with pytest.raises(ValueError, match="`steps` is .*positive whole number"):
        case.make(steps)


def test_closed_forms() -> None:
    k = np.arange(11) / 10
    np.testing.assert_allclose(pma.linear_schedule(10), k, atol=1e-15)
    np.testing.assert_allclose(pma.power_schedule(10, 3.0), k**3, atol=1e-15)
    geometric = pma.geometric_schedule(10, 1e-3)
    assert geometric[1] == pytest.approx(1e-3)
    np.testing.assert_allclose(np.diff(np.log(geometric[1:])), np.log(1e3) / 9)
    sigmoid = pma.sigmoid_schedule(10, 4.0)
    logistic = 1 / (1 + np.exp(-4.0 * (2 * k - 1)))
    rescaled = (logistic - logistic[0]) / (logistic[-1] - logistic[0])
    np.testing.assert_allclose(sigmoid, rescaled, atol=1e-14)
    np.testing.assert_allclose(sigmoid + sigmoid[::-1], 1, atol=1e-14)


def test_salakhutdinov_murray_proportions() -> None:
    betas = pma.salakhutdinov_murray_schedule(14500)
    assert betas[500] == pytest.approx(0.5, abs=1e-12)
    assert betas[4500] == pytest.approx(0.9, abs=1e-12)
    np.testing.assert_allclose(np.diff(betas)[:500], 0.5 / 500)
    np.testing.assert_allclose(np.diff(betas)[500:4500], 0.4 / 4000)
    np.testing.assert_allclose(np.diff(betas)[4500:], 0.1 / 10000)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pma.power_schedule(5, 0.0), "`power` is 0.0"),
        (lambda: pma.power_schedule(5, np.nan), "`power` is nan"),
        (lambda: pma.geometric_schedule(5, 1.0), "`first` is 1.0"),
        (lambda: pma.geometric_schedule(5, -0.1), "`first` is -0.1"),
        (lambda: pma.sigmoid_schedule(5, -1.0), "`scale` is -1.0"),
    ],
)
def test_invalid_parameters(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


class TestVariational:
    """The variational schedule against closed forms of the Fisher information ``g``.

    Gaussian pair of unit variance, ``d`` apart, geometric path: ``g = d^2``. Prior N(0, s^2), one
    observation y with unit error: with ``v = 1/(1/s^2 + beta)``,
    ``V = -(y - x)^2/2``, ``g = v^2/2 + v (y - m)^2``, ``m = v beta y``.
    """

    s, y = 20.0, 9.0

    def fisher(self, beta: np.ndarray) -> np.ndarray:
        v = 1 / (self.s**-2 + beta)
        return v**2 / 2 + v * (self.y - v * beta * self.y) ** 2

    def measured(self, bins: int = 3000) -> tuple[np.ndarray, np.ndarray]:
        betas = np.concatenate([[0.0], np.geomspace(1e-7, 1.0, bins)])
        length = [
            integrate.quad(lambda b: np.sqrt(self.fisher(b)), a, c)[0]
            for a, c in zip(betas[:-1], betas[1:], strict=True)
        ]
        return betas, np.array(length)

    def schedule(self, steps: int) -> np.ndarray:
        return pma.variational_schedule(*self.measured(), steps)

    def test_constant_information_is_linear(self) -> None:
        betas = np.array([0.0, 0.1, 0.35, 1.0])
        schedule = pma.variational_schedule(betas, 3.0 * np.diff(betas), 50)
        np.testing.assert_allclose(schedule, pma.linear_schedule(50), atol=1e-12)

    def test_inverse_square_information_is_geometric(self) -> None:
        # sqrt(g) = 1/(beta + c): G = log(1 + beta/c), beta(t) = c ((1 + 1/c)^t - 1).
        c = 1e-3
        betas = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 4000)])
        length = np.diff(np.log1p(betas / c))
        t = np.linspace(0, 1, 101)
        expected = c * ((1 + 1 / c) ** t - 1)
        np.testing.assert_allclose(
            pma.variational_schedule(betas, length, 100), expected, rtol=1e-6, atol=1e-15
        )

    def test_speed_is_constant(self) -> None:
        schedule = self.schedule(200)
        speed = [
            integrate.quad(lambda b: np.sqrt(self.fisher(b)), a, c)[0]
            for a, c in zip(schedule[:-1], schedule[1:], strict=True)
        ]
        np.testing.assert_allclose(speed, np.mean(speed), rtol=1e-3)

    def test_euler_lagrange_equation(self) -> None:
        # Kiwaki (2015), eq. 9: beta'' + beta'^2/2 d log g/d beta = 0, by central differences.
        steps = 2000
        schedule = self.schedule(steps)
        first = (schedule[2:] - schedule[:-2]) * steps / 2
        second = (schedule[2:] - 2 * schedule[1:-1] + schedule[:-2]) * steps**2
        middle = schedule[1:-1]
        h = 1e-5 * middle
        slope = (np.log(self.fisher(middle + h)) - np.log(self.fisher(middle - h))) / (2 * h)
        residual = second + 0.5 * first**2 * slope
        inner = slice(steps // 10, -steps // 10)
        assert np.median(np.abs(residual[inner] / second[inner])) < 0.01
        linear = 0.5 * slope  # wrong twin: beta' = 1, beta'' = 0
        assert np.median(np.abs(linear[inner] / second[inner])) > 0.5

    def functional(self, schedule: np.ndarray) -> float:
        """Return ``J = int beta'^2 g dt`` of a piecewise linear schedule."""
        steps = len(schedule) - 1
        pieces = [
            integrate.quad(self.fisher, a, c)[0] * (c - a)
            for a, c in zip(schedule[:-1], schedule[1:], strict=True)
        ]
        return steps * float(np.sum(pieces))

    def test_functional_falls_to_the_squared_length(self) -> None:
        barrier = self.measured()[1].sum()
        excess = [self.functional(self.schedule(k)) / barrier**2 - 1 for k in (20, 80, 640)]
        assert excess[0] > excess[1] > excess[2] > 0
        assert excess[2] < 1e-3
        for other in (pma.linear_schedule, pma.power_schedule, pma.sigmoid_schedule):
            assert self.functional(other(640)) > 1.1 * barrier**2

    def test_tiny_first_steps(self) -> None:
        betas = np.concatenate([[0.0], np.geomspace(1e-13, 1.0, 14)])
        schedule = pma.variational_schedule(betas, np.ones(14), 28)
        assert 0 < schedule[1] < 1e-12
        np.testing.assert_allclose(schedule[2::2][:10], betas[1:11], rtol=1e-6)

    def test_max_step_decelerates(self) -> None:
        schedule = pma.variational_schedule(*self.measured(200), 50, max_step=0.03)
        assert np.diff(schedule).max() <= 0.03 * (1 + 1e-9)

    def test_linear_if_all_lengths_are_zero(self) -> None:
        schedule = pma.variational_schedule(np.array([0.0, 0.3, 1.0]), np.zeros(2), 10)
        np.testing.assert_allclose(schedule, pma.linear_schedule(10))

    @pytest.mark.parametrize(
        ("betas", "length", "message"),
        [
            ([0.0, 0.5, 0.9], [1.0, 1.0], "ends at 0.9"),
            ([0.1, 0.5, 1.0], [1.0, 1.0], "starts at 0.1"),
            ([0.0, 0.7, 0.5, 1.0], [1.0, 1.0, 1.0], r"not increasing: beta\[1\] = 0.7"),
            ([0.0, 0.5, 0.5, 1.0], [1.0, 1.0, 1.0], "Remove repeated values"),
            ([0.0, np.nan, 1.0], [1.0, 1.0], "not increasing"),
            ([[0.0, 1.0]], [1.0], "shape"),
            ([1.0], [], "shape"),
            ([0.0, 0.5, 1.0], [1.0], "expected 2 finite lengths"),
            ([0.0, 0.5, 1.0], [1.0, -1.0], "smallest value -1.0"),
            ([0.0, 0.5, 1.0], [1.0, np.inf], "finite lengths"),
        ],
    )
    def test_bad_inputs(self, betas, length, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            pma.variational_schedule(betas, length, 10)


class TestDecelerate:
    """Kiwaki (2015), Algorithm 3."""

    @pytest.mark.parametrize("max_step", [0.0201, 0.03, 0.06, 0.2])
    def test_properties(self, max_step: float) -> None:
        schedule = pma.power_schedule(50, 5.0)
        result = pma.decelerate(schedule, max_step)
        before, after = np.diff(schedule), np.diff(result)
        assert after.sum() == pytest.approx(1, abs=1e-12)
        assert after.max() <= max_step * (1 + 1e-9)
        free = after < max_step * (1 - 1e-9)
        # Steps that are not clipped keep their proportions, and none shrinks.
        np.testing.assert_allclose(after[free] / before[free], (after[free] / before[free])[0])
        assert (after[free] >= before[free] * (1 - 1e-12)).all()
        assert (before[~free] >= before[free].max()).all()

    def test_short_steps_are_unchanged(self) -> None:
        schedule = pma.sigmoid_schedule(20)
        np.testing.assert_allclose(pma.decelerate(schedule, 0.9), schedule, atol=1e-14)

    @pytest.mark.parametrize("betas", [[0, 0, 0.5, 0.5, 1, 1], [0, 0.5, 0.5, 0.5, 1]])
    def test_values_that_rounding_made_equal(self, betas: list[float]) -> None:
        result = _make_strictly_increasing(np.array(betas, dtype=float))
        assert (np.diff(result) > 0).all()
        np.testing.assert_allclose(result, betas, atol=1e-15)
        assert (result[0], result[-1]) == (0, 1)

    def test_smallest_max_step_is_linear(self) -> None:
        result = pma.decelerate(pma.power_schedule(20), 1 / 20)
        np.testing.assert_allclose(result, pma.linear_schedule(20), atol=1e-12)

    @pytest.mark.parametrize("max_step", [0.0, -1.0, 0.0499, np.nan])
    def test_infeasible(self, max_step: float) -> None:
        with pytest.raises(ValueError, match="`max_step` is .* 20 steps.*at least 0.05"):
            pma.decelerate(pma.linear_schedule(20), max_step)


class TestOptimalBinned:
    """Theorem 3 of Grosse et al. (2013) on the geometric path between two Gaussians."""

    knots = np.linspace(0.0, 1.0, 7)

    def costs(self) -> np.ndarray:
        """Return ``(eta_{j+1} - eta_j).(s_{j+1} - s_j)``."""
        eta = np.array([[0.0, -0.5], [4.0 / 0.09, -0.5 / 0.09]])  # of N(0, 1) and N(4, 0.3)
        eta = (1 - self.knots)[:, None] * eta[0] + self.knots[:, None] * eta[1]
        variance = -0.5 / eta[:, 1]
        mean = eta[:, 0] * variance
        moments = np.stack([mean, mean**2 + variance], axis=1)
        return (np.diff(eta, axis=0) * np.diff(moments, axis=0)).sum(axis=1)

    def counts(self, schedule: np.ndarray) -> np.ndarray:
        return np.diff(np.searchsorted(schedule, self.knots))

    def test_fractions(self) -> None:
        steps = 100_000
        costs = self.costs()
        schedule = pma.optimal_binned_schedule(self.knots, costs, steps)
        expected = np.sqrt(costs) / np.sqrt(costs).sum()
        counts = self.counts(schedule)
        assert counts.sum() == steps
        np.testing.assert_allclose(counts / steps, expected, atol=len(costs) / steps)
        assert counts[0] > 3 * counts[-1]

    def test_linear_inside_the_bins(self) -> None:
        schedule = pma.optimal_binned_schedule(self.knots, self.costs(), 500)
        assert np.isin(self.knots, schedule).all()
        edges = np.searchsorted(schedule, self.knots)
        for low, high in zip(edges[:-1], edges[1:], strict=True):
            steps = np.diff(schedule[low : high + 1])
            np.testing.assert_allclose(steps, steps[0], rtol=1e-9)

    def test_the_cost_is_smallest(self) -> None:
        # sum_j cost_j / K_j, the bias of Theorem 3, for its K_j and for other allocations.
        costs, steps = self.costs(), 5000
        best = (costs / self.counts(pma.optimal_binned_schedule(self.knots, costs, steps))).sum()
        even = (costs / (steps / len(costs))).sum()
        proportional = (costs / (steps * costs / costs.sum())).sum()
        assert best == pytest.approx(np.sqrt(costs).sum() ** 2 / steps, rel=1e-3)
        assert best < 0.9 * min(even, proportional)

    def test_each_bin_has_a_step(self) -> None:
        costs = np.array([1.0, 0.0, 1e-12, 0.0, 5.0, 0.0])
        counts = self.counts(pma.optimal_binned_schedule(self.knots, costs, 6))
        assert (counts == 1).all()
        assert (self.counts(pma.optimal_binned_schedule(self.knots, costs, 60)) >= 1).all()

    def test_bins_are_even_if_all_costs_are_zero(self) -> None:
        counts = self.counts(pma.optimal_binned_schedule(self.knots, np.zeros(6), 60))
        assert (counts == 10).all()

    @pytest.mark.parametrize(
        ("knots", "costs", "steps", "message"),
        [
            ([0.0, 0.5, 1.0], [1.0], 10, "expected 2 numbers >= 0"),
            ([0.0, 0.5, 1.0], [1.0, -1.0], 10, "expected 2 numbers >= 0"),
            ([0.0, 0.5, 1.0], [1.0, np.nan], 10, "expected 2 numbers >= 0"),
            ([0.0, 0.5, 1.0], [np.inf, 1.0], 10, "expected 2 numbers >= 0, finite"),
            ([0.0, 0.5, 1.0], [1.0, 1.0], 1, "at least one for each of 2 bins"),
            ([0.0, 0.5, 1.0], [1.0, 1.0], 2.5, "`steps` is 2.5"),
            ([0.0, 0.5], [1.0], 5, "ends at 0.5"),
            ([0.0, 0.5, 0.4, 1.0], [1.0, 1.0, 1.0], 5, "not increasing"),
        ],
    )
    def test_bad_inputs(self, knots, costs, steps, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            pma.optimal_binned_schedule(knots, costs, steps)


class TestOptimalBinnedFromLengths:
    """The optimal binned schedule from lengths, ``sqrt(g) = 1 / (beta + 0.01)``."""

    betas = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 400)])
    length = np.diff(np.log(betas + 0.01))

    def test_costs_from_lengths_equal_costs_from_moments(self) -> None:
        """The moments are the integral of ``g``."""
        schedule = optimal_binned_from_lengths(self.betas, self.length, 1000)
        width = np.diff(schedule)
        edges = np.flatnonzero(~np.isclose(width[1:], width[:-1], rtol=1e-6)) + 1
        knots = schedule[[0, *edges, 1000]]
        costs = np.diff(knots) * np.diff(-1 / (knots + 0.01))
        counts = np.diff([0, *edges, 1000])
        expected = 1000 * np.sqrt(costs) / np.sqrt(costs).sum()
        np.testing.assert_allclose(counts, expected, atol=3)

    def test_many_bins_approach_the_variational_schedule(self) -> None:
        binned = optimal_binned_from_lengths(self.betas, self.length, 2000, bins=200)
        smooth = pma.variational_schedule(self.betas, self.length, 2000)
        np.testing.assert_allclose(binned, smooth, atol=0.02)

    def test_variance_is_near_the_optimum(self) -> None:
        """``K sum g dbeta^2`` is near its minimum, the squared length of the path."""
        best = self.length.sum() ** 2

        def variance(schedule: np.ndarray) -> float:
            middle = 0.5 * (schedule[1:] + schedule[:-1])
            return len(middle) * float((np.diff(schedule) ** 2 / (middle + 0.01) ** 2).sum())

        assert variance(optimal_binned_from_lengths(self.betas, self.length, 2000)) < 1.1 * best
        assert variance(pma.linear_schedule(2000)) > 4 * best

    def test_few_steps_and_temperatures(self) -> None:
        assert len(optimal_binned_from_lengths(np.array([0.0, 1.0]), np.array([2.0]), 5)) == 6
        assert len(optimal_binned_from_lengths(self.betas, self.length, 3)) == 4
        np.testing.assert_allclose(
            optimal_binned_from_lengths(np.linspace(0, 1, 9), np.zeros(8), 4), np.linspace(0, 1, 5)
        )

    def test_largest_step(self) -> None:
        schedule = optimal_binned_from_lengths(self.betas, self.length, 100, max_step=0.02)
        assert np.diff(schedule).max() <= 0.02 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("schedule", "name"),
    [
        (lambda: pma.power_schedule(1000, 200.0), "power"),
        (lambda: pma.sigmoid_schedule(100, 200.0), "scale"),
    ],
)
def test_temperatures_that_rounding_makes_equal(schedule, name: str) -> None:
    with pytest.raises(
        ValueError, match=f"`{name}` is 200.0, and some of .* are equal for rounding"
    ):
        schedule()

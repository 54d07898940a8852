"""Fits to given moments, and moment-average splines."""

from typing import Any

import jax
import numpy as np
import pytest

from pymc_anneal import rbm
from pymc_anneal.rbm.model import RBM
from pymc_anneal.rbm.moment_spline import (
    MomentSpline,
    binned_costs,
    fit_moments_exact,
    moment_spline,
)
from pymc_anneal.rbm.moments import average_moments, data_moments, reference_moments
from pymc_anneal.rbm.state_sums import Moments
from pymc_anneal.rbm.training import fit_moments_pcd
from pymc_anneal.schedules.validate import check_schedule
from tests.rbm_cases import (
    enumerate_states,
    exact_draws,
    flat,
    independent_units,
    parameters,
    random_rbm,
)

TARGET = random_rbm(4, 3, seed=3, scale=0.8)
START = rbm.uniform_reference(4, 3, np.float32)


def distance(model: RBM, target: Moments) -> float:
    return float(np.abs(flat(enumerate_states(model).moments) - flat(target)).max())


class TestMomentFits:
    wanted = enumerate_states(TARGET).moments

    @pytest.mark.slow
    def test_by_persistent_contrastive_divergence(self) -> None:
        assert distance(START, self.wanted) > 0.2
        found = fit_moments_pcd(
            self.wanted, START, updates=8000, learning_rate=0.05, particles=400, random_seed=1
        )
        assert found.weights.dtype == np.float32
        assert distance(found, self.wanted) < 0.02

    def test_exactly(self) -> None:
        found = fit_moments_exact(self.wanted, START)
        assert found.weights.dtype == np.float32
        assert distance(found, self.wanted) < 5e-5
        double = fit_moments_exact(self.wanted, START.astype(np.float64))
        assert double.weights.dtype == np.float64
        assert distance(double, self.wanted) < 2e-5
        # An exponential family: the moments determine the parameters.
        np.testing.assert_allclose(parameters(double), parameters(TARGET), atol=0.02)

    def test_few_iterations_are_not_enough(self) -> None:
        found = fit_moments_exact(self.wanted, START, max_iterations=2)
        assert distance(found, self.wanted) > 1e-3

    def test_a_start_in_double_precision(self) -> None:
        found = fit_moments_pcd(
            self.wanted, START.astype(np.float64), updates=100, particles=400, random_seed=1
        )
        assert found.weights.dtype == np.float64

    @pytest.mark.parametrize("function", [fit_moments_pcd, fit_moments_exact])
    def test_moments_of_another_shape(self, function) -> None:
        with pytest.raises(ValueError, match="shape"):
            function(enumerate_states(random_rbm(3, 3)).moments, START)

    @pytest.mark.parametrize("name", ["updates", "particles"])
    def test_bad_counts(self, name: str) -> None:
        with pytest.raises(ValueError, match=f"`{name}` is 0, expected a positive whole number"):
            fit_moments_pcd(self.wanted, START, **{name: 0})


REFERENCE = independent_units(4, 3, hidden=True)
KNOTS = [0.2, 0.5, 0.9]


@pytest.fixture(scope="module")
def spline() -> MomentSpline:
    return moment_spline(TARGET, REFERENCE, knots=KNOTS, method="exact")


def path_cost(knots: np.ndarray, models: list[RBM]) -> float:
    """Cost functional of a spline: each bin's divergence over its width."""
    costs = binned_costs(models, [enumerate_states(m).moments for m in models])
    return float((costs / np.diff(knots)).sum())


class TestMomentSpline:
    def test_ends_and_knots(self, spline: MomentSpline) -> None:
        np.testing.assert_allclose(spline.knots, [0.0, *KNOTS, 1.0])
        assert len(spline.models) == len(spline.moments) == 5
        np.testing.assert_array_equal(parameters(spline.models[0]), parameters(REFERENCE))
        np.testing.assert_array_equal(parameters(spline.models[-1]), parameters(TARGET))
        with jax.enable_x64(True):
            for knot, model in zip(spline.knots, spline.models, strict=True):
                at = jax.tree.map(np.asarray, spline.path.model_at(knot))
                np.testing.assert_allclose(parameters(at), parameters(model), atol=1e-6)

    def test_moments_of_the_knots_are_averages(self, spline: MomentSpline) -> None:
        first, last = (flat(enumerate_states(m).moments) for m in (REFERENCE, TARGET))
        for knot, model, averaged in zip(spline.knots, spline.models, spline.moments, strict=True):
            expected = (1 - knot) * first + knot * last
            np.testing.assert_allclose(flat(averaged), expected, rtol=1e-10)
            np.testing.assert_allclose(flat(enumerate_states(model).moments), expected, atol=2e-5)

    def test_a_geometric_average_is_not_one_of_moments(self, spline: MomentSpline) -> None:
        middle = jax.tree.map(lambda a, b: 0.5 * a + 0.5 * b, REFERENCE, TARGET)
        assert distance(middle, spline.moments[2]) > 1e-3

    def test_theorem_2(self, spline: MomentSpline) -> None:
        # Moment averages and averages of parameters cost the same, (eta_1 - eta_0).(s_1 - s_0).
        first, last = (flat(enumerate_states(m).moments) for m in (REFERENCE, TARGET))
        expected = (parameters(TARGET) - parameters(REFERENCE)) @ (last - first)
        assert path_cost(spline.knots, spline.models) == pytest.approx(expected, rel=1e-3)
        geometric = [
            jax.tree.map(lambda a, b, k=k: (1 - k) * a + k * b, REFERENCE, TARGET)
            for k in spline.knots
        ]
        assert path_cost(spline.knots, geometric) == pytest.approx(expected, rel=1e-9)

    def test_theorem_2_is_about_these_paths(self, spline: MomentSpline) -> None:
        detour = [*spline.models[:2], random_rbm(4, 3, seed=9, scale=0.3), *spline.models[3:]]
        assert path_cost(spline.knots, detour) > 1.05 * path_cost(spline.knots, spline.models)

    def test_costs_by_hand(self) -> None:
        models = [RBM([0.0], [0.0], [[0.0]]), RBM([1.0], [2.0], [[3.0]])]
        expected = [Moments([0.5], [0.5], [[0.25]]), Moments([0.6], [0.8], [[0.55]])]
        np.testing.assert_allclose(binned_costs(models, expected), [0.1 + 0.6 + 0.9])

    @pytest.mark.parametrize("steps", [4, 5, 100, 1001])
    def test_optimal_binned_schedule(self, spline: MomentSpline, steps: int) -> None:
        betas = spline.optimal_binned_schedule(steps)
        assert betas.shape == (steps + 1,)
        check_schedule(betas)
        counts = np.histogram(betas[:-1] + 1e-12, bins=spline.knots)[0]
        assert (counts >= 1).all()
        share = np.sqrt(binned_costs(spline.models, spline.moments))
        ideal = 1 + (steps - 4) * share / share.sum()
        assert np.abs(counts - ideal).max() <= 1

    def test_too_few_steps(self, spline: MomentSpline) -> None:
        with pytest.raises(ValueError, match="at least one for each of 4 bins"):
            spline.optimal_binned_schedule(3)

    def test_persistent_contrastive_divergence(self) -> None:
        model, reference = TARGET.astype(np.float32), REFERENCE
        arguments = {"updates": 5000, "learning_rate": 0.05, "particles": 400, "random_seed": 1}
        found = moment_spline(model, reference, knots=[0.5], **arguments)
        assert distance(found.models[1], found.moments[1]) < 0.03
        again = moment_spline(model, reference, knots=[0.5], **arguments)
        np.testing.assert_array_equal(parameters(found.models[1]), parameters(again.models[1]))
        leaves = jax.tree.leaves((found.path.start, found.path.change))
        assert {leaf.dtype for leaf in leaves} == {np.dtype(np.float32)}

    def test_double_precision(self) -> None:
        found = moment_spline(TARGET, REFERENCE, knots=[0.5], updates=100, random_seed=1)
        assert {m.weights.dtype for m in found.models} == {np.dtype(np.float64)}
        assert found.path.start.weights.dtype == np.float64

    def test_given_target_moments(self) -> None:
        data = exact_draws(TARGET, 500, np.random.default_rng(1))
        target = data_moments(TARGET, data)
        found = moment_spline(TARGET, REFERENCE, knots=[0.5], target=target, method="exact")
        np.testing.assert_array_equal(flat(found.moments[-1]), flat(target))
        averaged = average_moments(reference_moments(REFERENCE), target, 0.5)
        assert distance(found.models[1], averaged) < 2e-5

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"method": "wrong"}, "Unknown `method` 'wrong'; expected \"pcd\" or"),
            ({"knots": [0.5, 0.4]}, "not increasing"),
            ({"knots": [0.0, 0.5]}, "not increasing"),
            ({"reference": TARGET}, "12 nonzero weights; expected an RBM with W = 0"),
            ({"reference": rbm.uniform_reference(4, 2)}, "shape"),
            ({"random_seed": "a"}, "`random_seed` is 'a'"),
            ({"method": "pcd", "updates": 0}, "`updates` is 0, expected a positive whole number"),
        ],
    )
    def test_bad_input(self, arguments: dict[str, Any], message: str) -> None:
        models = {"model": TARGET.astype(np.float32), "reference": REFERENCE}
        arguments = models | {"method": "exact", "knots": [0.5]} | arguments
        with pytest.raises(ValueError, match=message):
            moment_spline(**arguments)

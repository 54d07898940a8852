"""Moments of references, of data and of Gibbs chains."""

from typing import Any

import numpy as np
import pytest

from scipy.special import expit

from pymc_anneal.rbm.model import RBM
from pymc_anneal.rbm.moments import average_moments, data_moments, gibbs_moments, reference_moments
from pymc_anneal.rbm.state_sums import Moments
from tests.rbm_cases import enumerate_states, flat, independent_units, random_rbm, states


class TestMoments:
    @pytest.mark.parametrize("hidden", [False, True])
    def test_of_a_reference(self, hidden: bool) -> None:
        reference = independent_units(4, 3, hidden=hidden)
        expected = flat(enumerate_states(reference).moments)
        np.testing.assert_allclose(flat(reference_moments(reference)), expected, rtol=1e-12)

    def test_of_a_reference_with_weights(self) -> None:
        with pytest.raises(ValueError, match="12 nonzero weights; expected an RBM with W = 0"):
            reference_moments(random_rbm(4, 3))

    def test_average(self) -> None:
        first, second = (enumerate_states(random_rbm(4, 3, seed=s)).moments for s in (1, 2))
        found = average_moments(first, second, 0.3)
        assert isinstance(found, Moments)
        np.testing.assert_allclose(flat(found), 0.7 * flat(first) + 0.3 * flat(second))
        np.testing.assert_allclose(flat(average_moments(first, second, 0.0)), flat(first))
        np.testing.assert_allclose(flat(average_moments(first, second, 1.0)), flat(second))

    def test_of_data_by_hand(self) -> None:
        model = RBM([0.0, 0.0], [1.0], [[2.0], [-1.0]])
        found = data_moments(model, [[1, 0], [1, 1]])
        h = expit(np.array([3.0, 2.0]))
        np.testing.assert_allclose(found.visible, [1.0, 0.5])
        np.testing.assert_allclose(found.hidden, [h.mean()])
        np.testing.assert_allclose(found.products, [[h.mean()], [h[1] / 2]])

    def test_of_weighted_data(self) -> None:
        model, data = random_rbm(4, 3), states(4)
        exact = enumerate_states(model)
        for scale in (1.0, 7.0):
            found = data_moments(model, data, scale * exact.probability)
            np.testing.assert_allclose(flat(found), flat(exact.moments), rtol=1e-12)
        twice = data_moments(model, data[[3, 3, 5]])
        np.testing.assert_allclose(flat(data_moments(model, data[[3, 5]], [2, 1])), flat(twice))
        assert not np.allclose(flat(data_moments(model, data[[3, 5]])), flat(twice))

    @pytest.mark.parametrize(
        "weights",
        [[1.0], [1.0, -1.0], [0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [[1.0, 1.0]], [1.0] * 3],
    )
    def test_bad_weights_of_data(self, weights) -> None:
        with pytest.raises(ValueError, match=r"`weights` has shape .*, expected \(2,\) numbers"):
            data_moments(random_rbm(4, 3), np.zeros((2, 4)), weights)


class TestGibbsMoments:
    RUNS = 20
    ARGUMENTS = {"chains": 100, "steps": 150, "burn_in": 50}

    @pytest.fixture(scope="class")
    @classmethod
    def runs(cls) -> tuple[RBM, np.ndarray]:
        model = random_rbm(4, 3, scale=0.8, dtype=np.float32)
        found = [gibbs_moments(model, random_seed=i, **cls.ARGUMENTS) for i in range(cls.RUNS)]
        return model, np.array([flat(f) for f in found])

    def agrees(self, runs: np.ndarray, expected: np.ndarray) -> bool:
        error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
        return bool((np.abs(runs.mean(axis=0) - expected) < 6 * error).all())

    def test_against_exact_ones(self, runs) -> None:
        model, values = runs
        assert self.agrees(values, flat(enumerate_states(model).moments))
        assert values.std(axis=0).max() < 0.02

    def test_wrong_twins_are_found(self, runs) -> None:
        model, values = runs
        other = RBM(model.visible_bias, model.hidden_bias, model.weights + 0.1)
        assert not self.agrees(values, flat(enumerate_states(other).moments))
        assert not self.agrees(values, flat(enumerate_states(model).moments) * 1.02)

    def test_seeds_and_types(self, runs) -> None:
        model, values = runs
        again = gibbs_moments(model, random_seed=0, **self.ARGUMENTS)
        assert isinstance(again, Moments)
        assert [np.shape(m) for m in again] == [(4,), (3,), (4, 3)]
        np.testing.assert_array_equal(flat(again), values[0])
        assert (values[0] != values[1]).all()

    def test_burn_in_forgets_the_start(self) -> None:
        # Strong weights: short chains stay near their start.
        model = RBM(np.full(2, -2.0), np.full(2, -2.0), 4 * np.eye(2))
        exact = enumerate_states(model).moments.visible
        start = np.ones((500, 2))
        arguments = {"chains": 500, "start": start, "random_seed": 1}
        cold = gibbs_moments(model, steps=2, burn_in=0, **arguments).visible
        warm = gibbs_moments(model, steps=400, burn_in=200, **arguments).visible
        assert (cold > 0.65).all()
        assert (exact < 0.55).all()
        np.testing.assert_allclose(warm, exact, atol=0.05)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"chains": 0}, "`chains` is 0, expected a positive whole number"),
            ({"steps": 0}, "`steps` is 0, expected a positive whole number"),
            ({"burn_in": 150}, "`burn_in` is 150, expected at least 0 and below `steps`, 150"),
            ({"burn_in": -1}, "`burn_in` is -1, expected at least 0"),
            ({"start": np.zeros((100, 3))}, "shape"),
            ({"start": np.zeros((7, 4))}, "`start`"),
        ],
    )
    def test_bad_input(self, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            gibbs_moments(random_rbm(4, 3), **self.ARGUMENTS | arguments)

"""Restricted Boltzmann machines: arguments, densities, Gibbs sampling, files, references."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from scipy.special import expit, logsumexp

from pymc_anneal import rbm
from pymc_anneal.rbm.model import RBM, reference_log_partition_function
from tests.rbm_cases import (
    enumerate_states,
    frequencies_agree,
    independent_units,
    random_rbm,
    states,
)

DTYPES = [np.float32, np.float64]
TOLERANCE = {np.float32: 2e-6, np.float64: 1e-13}


class TestConstruction:
    def test_lists_become_arrays_of_float64(self) -> None:
        model = RBM([0, 1], [1], [[2], [3]])
        assert all(x.dtype == np.float64 for x in jax.tree.leaves(model))
        assert (model.n_visible, model.n_hidden) == (2, 1)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_the_weights_decide_the_type(self, dtype: type) -> None:
        model = RBM(np.zeros(2), np.zeros(1, np.float32), np.zeros((2, 1), dtype))
        assert all(x.dtype == dtype for x in jax.tree.leaves(model))

    def test_astype(self) -> None:
        model = random_rbm(3, 2)
        single = model.astype(np.float32)
        assert isinstance(single, RBM)
        assert all(x.dtype == np.float32 for x in jax.tree.leaves(single))
        np.testing.assert_array_equal(single.weights, model.weights.astype(np.float32))

    def test_units_are_drawn_in_no_other_type(self) -> None:
        """Uniform numbers of 16 bits would be NaN, and all units 0."""
        model = RBM(np.zeros(3), np.zeros(2), np.ones((3, 2), np.float16))
        assert model.weights.dtype == np.float64
        for dtype in (np.float16, np.longdouble, int):
            with pytest.raises(ValueError, match=r"`dtype` is .*, expected float32 or float64"):
                model.astype(dtype)

    def test_parameters_too_large_for_a_type(self) -> None:
        with pytest.raises(ValueError, match="`visible_bias` has 1 entries that are NaN or inf"):
            RBM([1e39], [0.0], [[1.0]]).astype(np.float32)

    def test_is_a_pytree(self) -> None:
        model = random_rbm(3, 2)
        doubled = jax.tree.map(lambda x: 2 * x, model)
        assert isinstance(doubled, RBM)
        np.testing.assert_array_equal(doubled.hidden_bias, 2 * model.hidden_bias)
        np.testing.assert_array_equal(jax.tree.leaves(model)[2], model.weights)

    @pytest.mark.parametrize("name", ["visible_bias", "hidden_bias", "weights"])
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_entries_that_are_not_numbers(self, name: str, value: float) -> None:
        parts = {
            "visible_bias": np.zeros(3),
            "hidden_bias": np.zeros(2),
            "weights": np.zeros((3, 2)),
        }
        parts[name].flat[1] = value
        message = f"`{name}` has 1 entries that are NaN or infinite; expected finite numbers"
        with pytest.raises(ValueError, match=message):
            RBM(**parts)

    @pytest.mark.parametrize(
        ("visible", "hidden", "weights"),
        [
            ((3,), (2,), (2, 3)),
            ((3,), (2,), (6,)),
            ((3, 2), (), (3, 2)),
            ((), (3,), (3, 3)),
            ((3,), (2,), (3, 2, 1)),
            ((4,), (2,), (3, 2)),
            ((3,), (1,), (3, 2)),
        ],
    )
    def test_shapes_that_do_not_fit(self, visible, hidden, weights) -> None:
        with pytest.raises(ValueError, match="have shapes") as caught:
            RBM(np.zeros(visible), np.zeros(hidden), np.zeros(weights))
        assert f"{visible}, {hidden} and {weights}" in str(caught.value)
        assert "expected (n_visible,), (n_hidden,) and (n_visible, n_hidden)" in str(caught.value)


METHODS = ["log_density", "free_energy", "hidden_probability"]


class TestBadData:
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("shape", [(5, 4), (2,), (), (3, 1)])
    def test_number_of_units(self, method: str, shape: tuple[int, ...]) -> None:
        with pytest.raises(ValueError, match="`visible` has shape") as caught:
            getattr(random_rbm(3, 2), method)(np.zeros(shape))
        assert f"shape {shape}, expected (..., 3)" in str(caught.value)

    @pytest.mark.parametrize(
        ("low", "high"), [(-0.1, 0.5), (0.0, 1.01), (0, 255), (np.nan, 0.5), (0.0, np.inf)]
    )
    @pytest.mark.parametrize("method", METHODS)
    def test_values(self, method: str, low: float, high: float) -> None:
        data = np.array([[low, high, high]])
        with pytest.raises(ValueError, match="expected binary values or probabilities") as found:
            getattr(random_rbm(3, 2), method)(data)
        assert f"`visible` ranges from {data.min()} to {data.max()}" in str(found.value)

    def test_start_of_a_sample(self) -> None:
        with pytest.raises(ValueError, match=r"`start` has shape \(4, 2\)"):
            random_rbm(3, 2).sample(4, start=np.zeros((4, 2)), steps=1)

    def test_log_likelihood(self) -> None:
        with pytest.raises(ValueError, match="ranges from 0.0 to 7.0"):
            random_rbm(3, 2).log_likelihood([[0.0, 7.0, 1.0]], 1.0)


@pytest.mark.parametrize("dtype", DTYPES)
class TestDensity:
    def summed(self, model: RBM, visible: np.ndarray) -> np.ndarray:
        """Log density by enumerating the hidden layer."""
        model, hidden = model.astype(np.float64), states(model.n_hidden)
        table = hidden @ model.hidden_bias + visible @ model.weights @ hidden.T
        return visible @ model.visible_bias + logsumexp(table, axis=-1)

    @pytest.mark.parametrize(("n_visible", "n_hidden"), [(4, 3), (3, 5), (1, 1)])
    def test_of_every_state(self, dtype: type, n_visible: int, n_hidden: int) -> None:
        model, visible = random_rbm(n_visible, n_hidden, dtype=dtype), states(n_visible)
        expected = self.summed(model, visible)
        np.testing.assert_allclose(
            model.log_density(visible.astype(dtype)), expected, atol=20 * TOLERANCE[dtype]
        )
        np.testing.assert_allclose(
            model.free_energy(visible.astype(dtype)), -expected, atol=20 * TOLERANCE[dtype]
        )

    def test_of_probabilities(self, dtype: type) -> None:
        model, grey = random_rbm(4, 3, dtype=dtype), np.random.default_rng(2).uniform(size=(6, 4))
        expected = self.summed(model, grey)
        np.testing.assert_allclose(model.log_density(grey), expected, atol=20 * TOLERANCE[dtype])

    @pytest.mark.parametrize("kind", [bool, np.int8, np.uint8, np.int64, np.float32])
    def test_of_any_type_of_data(self, dtype: type, kind: type) -> None:
        model, visible = random_rbm(4, 3, dtype=dtype), states(4)
        expected = self.summed(model, visible)
        found = model.log_density(visible.astype(kind))
        np.testing.assert_allclose(found, expected, atol=20 * TOLERANCE[dtype])

    def test_shapes(self, dtype: type) -> None:
        model = random_rbm(4, 3, dtype=dtype)
        assert np.shape(model.log_density(np.zeros(4))) == ()
        assert model.log_density(np.zeros((2, 5, 4))).shape == (2, 5)
        assert model.log_density(np.zeros((0, 4))).shape == (0,)
        assert model.hidden_probability(np.zeros((2, 5, 4))).shape == (2, 5, 3)
        assert model.visible_probability(np.zeros((2, 5, 3))).shape == (2, 5, 4)

    def test_log_likelihood_is_a_log_probability(self, dtype: type) -> None:
        model = random_rbm(4, 3, dtype=dtype)
        exact = enumerate_states(model)
        found = model.log_likelihood(states(4), exact.log_z)
        np.testing.assert_allclose(
            np.exp(found), exact.probability, rtol=50 * TOLERANCE[dtype], atol=0
        )

    def test_conditionals(self, dtype: type) -> None:
        model = random_rbm(4, 3, dtype=dtype)
        double, v, h = model.astype(np.float64), states(4), states(3)
        table = (v @ double.visible_bias)[:, None] + h @ double.hidden_bias
        joint = np.exp(table + v @ double.weights @ h.T)
        hidden = joint @ h / joint.sum(axis=1, keepdims=True)
        visible = joint.T @ v / joint.sum(axis=0)[:, None]
        np.testing.assert_allclose(model.hidden_probability(v), hidden, rtol=10 * TOLERANCE[dtype])
        np.testing.assert_allclose(
            model.visible_probability(h), visible, rtol=10 * TOLERANCE[dtype]
        )

    def test_large_fields_do_not_overflow(self, dtype: type) -> None:
        model = RBM(np.zeros(2), [500.0, -500.0], np.full((2, 2), 300.0, dtype))
        found = model.log_density([[0, 0], [1, 1]])
        np.testing.assert_allclose(found, [500.0, 1100.0 + 100.0])


class TestSampling:
    def frequent(self, model: RBM, steps: int, exact: RBM | None = None) -> bool:
        draws = model.sample(20_000, steps=steps, random_seed=3)
        return frequencies_agree(draws, enumerate_states(exact or model).probability)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_frequencies(self, dtype: type) -> None:
        assert self.frequent(random_rbm(4, 3, scale=0.7, dtype=dtype), 40)

    def test_a_reference_takes_one_step(self) -> None:
        assert self.frequent(independent_units(4, 3), 1)

    def test_wrong_twins_are_found(self) -> None:
        model = random_rbm(4, 3, scale=0.7)
        wrong = RBM(model.visible_bias, -model.hidden_bias, model.weights)
        assert not self.frequent(wrong, 40, model)
        assert not self.frequent(random_rbm(4, 3, scale=2.0), 1)  # not converged

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_type_and_shape(self, dtype: type) -> None:
        draws = random_rbm(4, 3, dtype=dtype).sample(7, steps=2, random_seed=1)
        assert draws.shape == (7, 4)
        assert draws.dtype == dtype
        assert set(np.unique(draws)) <= {0, 1}

    def test_a_seed_is_a_result(self) -> None:
        first, again, other = (
            random_rbm(4, 3).sample(50, steps=2, random_seed=s) for s in (1, 1, 2)
        )
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()

    def test_start(self) -> None:
        start = states(4)[[3, 9, 15]]
        np.testing.assert_array_equal(random_rbm(4, 3).sample(3, start=start, steps=0), start)
        # Units that are held by strong weights stay as they are.
        held = RBM(np.full(2, -50.0), np.full(2, -50.0), 100 * np.eye(2))
        for start in states(2):
            draws = held.sample(6, start=np.tile(start, (6, 1)), steps=5, random_seed=1)
            np.testing.assert_array_equal(draws, np.tile(start, (6, 1)))


class TestFiles:
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("name", ["weights.npz", "weights", "weights.rbm"])
    def test_round_trip(self, dtype: type, name: str, tmp_path) -> None:
        model = random_rbm(4, 3, dtype=dtype)
        model.save(tmp_path / name)
        loaded = RBM.load(tmp_path / name)
        assert [p.name for p in tmp_path.iterdir()] == [name]
        for left, right in zip(jax.tree.leaves(model), jax.tree.leaves(loaded), strict=True):
            assert left.dtype == right.dtype == dtype
            np.testing.assert_array_equal(left, right)

    def test_a_path_that_is_text(self, tmp_path) -> None:
        random_rbm(2, 1).save(str(tmp_path / "a.npz"))
        assert RBM.load(str(tmp_path / "a.npz")).n_visible == 2


class TestFromSklearn:
    def test_parameters(self) -> None:
        model = random_rbm(4, 3)
        fitted = SimpleNamespace(
            components_=model.weights.T.copy(),
            intercept_visible_=model.visible_bias,
            intercept_hidden_=model.hidden_bias,
        )
        found = RBM.from_sklearn(fitted)
        for left, right in zip(jax.tree.leaves(model), jax.tree.leaves(found), strict=True):
            np.testing.assert_array_equal(left, right)

    def test_single_precision_is_kept(self) -> None:
        fitted = SimpleNamespace(
            components_=np.zeros((3, 4), np.float32),
            intercept_visible_=np.zeros(4, np.float32),
            intercept_hidden_=np.zeros(3, np.float32),
        )
        assert RBM.from_sklearn(fitted).weights.dtype == np.float32

    def test_not_fitted(self) -> None:
        class BernoulliRBM:
            pass

        with pytest.raises(ValueError, match="This BernoulliRBM has no weights yet; fit it first"):
            RBM.from_sklearn(BernoulliRBM())


class TestReferences:
    def test_uniform(self) -> None:
        reference = rbm.uniform_reference(4, 3)
        np.testing.assert_allclose(enumerate_states(reference).probability, 1 / 16)
        assert reference.weights.dtype == np.float64
        assert rbm.uniform_reference(4, 3, np.float32).weights.dtype == np.float32

    def test_base_rates_by_hand(self) -> None:
        data = np.array([[1, 0, 1], [1, 0, 0], [1, 0, 1], [1, 0, 0]])
        reference = rbm.base_rate_reference(data, 2, smoothing=0.5)
        rate = np.array([4.5, 0.5, 2.5]) / 5
        np.testing.assert_allclose(expit(reference.visible_bias), rate)
        np.testing.assert_allclose(enumerate_states(reference).moments.visible, rate)
        assert reference.weights.shape == (3, 2)
        assert not reference.weights.any()
        assert not reference.hidden_bias.any()

    def test_default_smoothing(self) -> None:
        reference = rbm.base_rate_reference(np.ones((10, 1)), 1)
        assert expit(reference.visible_bias[0]) == pytest.approx(15 / 20)

    @pytest.mark.parametrize("kind", [bool, np.uint8, np.float32])
    def test_type_of_data(self, kind: type) -> None:
        data = np.random.default_rng(4).integers(0, 2, (300, 3))
        expected = rbm.base_rate_reference(data, 2).visible_bias
        np.testing.assert_allclose(
            rbm.base_rate_reference(data.astype(kind), 2).visible_bias, expected
        )

    def test_probabilities(self) -> None:
        grey = np.array([[0.25, 1.0], [0.75, 0.5]])
        reference = rbm.base_rate_reference(grey, 2, smoothing=1.0)
        np.testing.assert_allclose(expit(reference.visible_bias), [0.5, 2.5 / 4])

    def test_bad_data(self) -> None:
        with pytest.raises(ValueError, match="`data` ranges from 0.0 to 255.0, expected binary"):
            rbm.base_rate_reference(np.array([[0.0, 255.0]]), 2)

    @pytest.mark.parametrize("hidden", [False, True])
    def test_log_partition_function(self, hidden: bool) -> None:
        reference = independent_units(4, 3, hidden=hidden)
        exact = enumerate_states(reference).log_z
        assert reference_log_partition_function(reference) == pytest.approx(exact, rel=1e-13)
        single = reference_log_partition_function(reference.astype(np.float32))
        assert single == pytest.approx(exact, rel=1e-6)

    def test_log_partition_function_of_a_uniform_one(self) -> None:
        found = reference_log_partition_function(rbm.uniform_reference(784, 500))
        assert found == pytest.approx(1284 * np.log(2), rel=1e-14)


SMALL = rbm.uniform_reference(3, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SMALL.sample(-1), "`draws` is -1"),
        (lambda: SMALL.sample(2.5), "`draws` is 2.5, expected a positive whole number"),
        (lambda: SMALL.sample(2, steps=-1), "`steps` is -1, expected at least 0"),
        (lambda: SMALL.sample(2, steps=0.5), "`steps` is 0.5"),
        (lambda: SMALL.sample(2, steps=0.0), "`steps` is 0.0"),
        (lambda: rbm.sample_exact(SMALL, 2.5), "`draws` is 2.5"),
        (lambda: rbm.gibbs_moments(SMALL, steps=10, burn_in=2.5), "`burn_in` is 2.5"),
        (lambda: rbm.gibbs_moments(SMALL, steps=10, burn_in=False), "`burn_in` is False"),
        (lambda: rbm.gibbs_moments(SMALL, steps=10, burn_in=10), "below `steps`, 10"),
        (lambda: rbm.uniform_reference(0, 2), "`n_visible` is 0"),
        (lambda: rbm.base_rate_reference(np.eye(2), 1.5), "`n_hidden` is 1.5"),
        (lambda: SMALL.visible_probability([0.0, 1.0, 1.0]), r"`hidden` has shape \(3,\)"),
        (lambda: SMALL.visible_probability([0.0, 2.0]), "`hidden` ranges from 0.0 to 2.0"),
    ],
)
def test_counts_and_units_that_are_none(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_no_sweep_returns_the_start() -> None:
    start = np.eye(3)
    np.testing.assert_array_equal(SMALL.sample(3, steps=0, start=start), start)


@pytest.mark.parametrize("content", [{"done": 3}, None])
def test_a_file_of_something_else(content, tmp_path) -> None:
    path = tmp_path / "file.npz"
    with path.open("wb") as file:
        np.savez(file, **content) if content else np.save(file, np.eye(2))
    with pytest.raises(ValueError, match=r"expected \['visible_bias', .* as `RBM.save` writes"):
        RBM.load(path)
